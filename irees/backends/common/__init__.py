"""Common parts of the backends: printing kernel IR as C, and running compilers."""
