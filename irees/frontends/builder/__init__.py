"""
The library that frontends lower to: numpy-like functions that emit linalg on tensors.

    b = Builder(block)
    y = reductions.sum(b, b.map(lambda v: v * v, x), [1])

It does not depend on any framework. Each function takes the `Builder` first, then `Tensor`s; its
docstring gives its equation.
"""

from .core import Builder, Size, Tensor, same, tensor_type
from .dtypes import DType
from .scalars import Body, Scalar

__all__ = ["Body", "Builder", "DType", "Scalar", "Size", "Tensor", "same", "tensor_type"]
