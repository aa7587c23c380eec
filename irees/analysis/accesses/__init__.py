"""
Proves that memory accesses are in bounds.

`polynomials` and `terms` define the logic, `prover` searches for proofs, `samples` refutes goals
that have none, `walk` visits kernels, `host` visits host functions, and `certificate` prints the
proofs as JSON.
"""
