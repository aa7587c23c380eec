"""Whole-program optimizations on tensors."""
