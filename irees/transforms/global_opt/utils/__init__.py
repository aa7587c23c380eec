"""Helpers that several passes of this folder use."""
