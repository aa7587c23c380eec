"""Helpers shared by the CPU passes."""
