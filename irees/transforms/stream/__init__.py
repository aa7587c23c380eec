"""Passes that turn the host program into allocations and dispatches."""
