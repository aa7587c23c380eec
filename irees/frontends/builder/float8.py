"""Conversions between numbers and floats of one byte, whose elements are codes here."""

from __future__ import annotations

from xdsl.ir import Operation

from irees.transforms.utils import narrow_floats
from irees.transforms.utils.tensors import ScalarBuilder

from .dtypes import F32, Float8
from .scalars import Body, Scalar


class _Located(ScalarBuilder):
    """A builder at the end of a body, whose ops have the location of the body."""

    def __init__(self, body: Body):
        super().__init__(body.block)
        self.location = body.location

    def insert(self, op: Operation) -> Operation:
        """Appends an op."""
        if self.location is not None:
            op.location = self.location
        return super().insert(op)


def widened(x: Scalar) -> Scalar:
    """The number of a code in f32, exactly."""
    return Scalar(x.body, narrow_floats.widened(_Located(x.body), x.value, x.dtype.name), F32)


def rounded(x: Scalar, dtype: Float8) -> Scalar:
    """
    The code nearest to an f32, ties to even. What is too large becomes infinity in `f8E5M2`, the
    largest number in `f8E4M3FN`, and NaN in the others, as PyTorch's conversions on a CPU do it.
    """
    code = narrow_floats.rounded(
        _Located(x.body), x.value, dtype.name, saturate=dtype.name == "f8E4M3FN"
    )
    return Scalar(x.body, code, dtype)
