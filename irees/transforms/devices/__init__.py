"""Passes for multi-device programs: placement of ops, transfers, and outlining per device."""
