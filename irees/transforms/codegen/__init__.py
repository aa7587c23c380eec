"""Passes that turn kernels into loops over vectors, scalars and threads."""
