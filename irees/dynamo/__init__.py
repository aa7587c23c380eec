"""
`torch.compile(model, backend="irees")`.

PyTorch finds the backend through the entry point `torch_dynamo_backends`, without an import.
"""

from .backend import backend

__all__ = ["backend"]
