"""Mutable globals on buffers, a part of `irees-convert-to-stream`."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
)
from xdsl.rewriter import Rewriter

from irees.dialects import util
from irees.transforms.stream._control_flow import buffer_type


def convert_global(op: util.GlobalOp) -> None:
    """util.global mutable @g = v : tensor  =>  memref.global @g = v : memref"""
    kind = op.type if isinstance(op.type, TensorType) else TensorType(op.type, [])
    value = op.initial_value
    if value is None or isinstance(value, IntegerAttr | FloatAttr):
        number = 0 if value is None else value.value.data
        value = DenseIntOrFPElementsAttr.from_list(kind, [number])
    glob = memref.GlobalOp.get(
        StringAttr(op.sym_name.data), buffer_type(kind), value, sym_visibility=StringAttr("private")
    )
    glob.location = op.location
    Rewriter.replace_op(op, glob)
