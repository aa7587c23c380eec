"""Code shared by the GPU code generation passes."""
