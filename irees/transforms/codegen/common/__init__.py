"""Code generation passes that CPUs and GPUs share."""
