"""Helpers shared by passes: shapes of values, loops of structured ops, IR building."""
