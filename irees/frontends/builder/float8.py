"""Conversions between f32 and 8-bit floats, which are represented by their integer codes."""

from __future__ import annotations

from xdsl.ir import Operation

from irees.transforms.utils import narrow_floats
from irees.transforms.utils.tensors import ScalarBuilder

from .dtypes import F32, Float8
from .scalars import Body, Scalar


class _Located(ScalarBuilder):
    """A builder at the end of a body that gives its ops the body's location."""

    def __init__(self, body: Body):
        super().__init__(body.block)
        self.location = body.location

    def insert(self, op: Operation) -> Operation:
        """Appends an op."""
        if self.location is not None:
            op.location = self.location
        return super().insert(op)


def widened(x: Scalar) -> Scalar:
    """Decodes an 8-bit float to f32, exactly."""
    return Scalar(x.body, narrow_floats.widened(_Located(x.body), x.value, x.dtype.name), F32)


def rounded(x: Scalar, dtype: Float8) -> Scalar:
    """
    Encodes an f32 as the nearest 8-bit float, ties to even. Overflow gives infinity in `f8E5M2`,
    the largest number in `f8E4M3FN`, and NaN in the other formats, as in PyTorch's CPU conversions.
    """
    code = narrow_floats.rounded(
        _Located(x.body), x.value, dtype.name, saturate=dtype.name == "f8E4M3FN"
    )
    return Scalar(x.body, code, dtype)
