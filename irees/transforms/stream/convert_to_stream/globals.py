"""Bufferizes mutable globals. Part of `irees-convert-to-stream`."""

from __future__ import annotations

from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
)
from xdsl.rewriter import Rewriter

from irees import limits
from irees.dialects import util
from irees.errors import UnsupportedError
from irees.transforms.stream.convert_to_stream.control_flow import buffer_type
from irees.transforms.utils.shapes import element_bytes


def convert_global(op: util.GlobalOp) -> None:
    """
    util.global mutable @g = v : tensor  =>  memref.global @g = v : memref

    Raises LimitExceededError for a global that is too large, UnsupportedError for a type without a
    size in bytes.
    """
    if not isinstance(op.type, TensorType | AnyFloat | ComplexType | IndexType | IntegerType):
        raise UnsupportedError(f"a mutable global of type {op.type}", op=op)
    kind = op.type if isinstance(op.type, TensorType) else TensorType(op.type, [])
    size = prod(kind.get_shape()) * element_bytes(kind)
    limits.check("constant_bytes", size, f"a mutable global of {size} bytes", op=op)
    value = op.initial_value
    if value is None or isinstance(value, IntegerAttr | FloatAttr):
        number = 0 if value is None else value.value.data
        parts = (number, number) if isinstance(kind.element_type, ComplexType) else number
        value = DenseIntOrFPElementsAttr.from_list(kind, [parts])  # type: ignore[call-overload]
    glob = memref.GlobalOp.get(
        StringAttr(op.sym_name.data), buffer_type(kind), value, sym_visibility=StringAttr("private")
    )
    glob.location = op.location
    Rewriter.replace_op(op, glob)
