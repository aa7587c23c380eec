"""Passes on the whole program, on tensors."""
