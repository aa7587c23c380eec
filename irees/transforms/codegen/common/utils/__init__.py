"""Code shared by several code generation passes."""
