"""Passes that print analysis results, for lit files."""
