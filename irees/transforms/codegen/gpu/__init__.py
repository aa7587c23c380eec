"""Code generation for NVIDIA GPUs: workgroups, threads, shared memory, matrix instructions."""
