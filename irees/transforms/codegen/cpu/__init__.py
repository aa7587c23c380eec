"""Code generation for CPUs: tiles, vectors, prefetches."""
