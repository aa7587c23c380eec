"""Helpers shared by the passes on devices."""
