"""Helpers shared by the passes of this folder."""
