"""Code generation for CPUs: tiling, vectorization, prefetching."""
