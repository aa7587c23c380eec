"""Passes that print what an analysis knows, for lit files."""
