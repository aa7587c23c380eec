"""
Proofs that accesses to memory stay inside of their buffers.

`polynomials` and `terms` are the language, `prover` searches for proofs, `walk` reads kernels and
host functions, `certificate` writes down what was found.
"""
