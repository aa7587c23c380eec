"""Passes that lower the host program to allocations and dispatches."""
