"""Passes that group ops into kernels and outline them."""
