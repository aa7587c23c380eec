"""
`torch.compile(model, backend="irees")`.

PyTorch finds the back end by the entry point `torch_dynamo_backends`; nothing has to be imported.
"""

from .backend import backend

__all__ = ["backend"]
