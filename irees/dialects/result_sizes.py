"""
The sizes of an op's result, in terms of its operands: one row per op.

    tensor.pad %x low[%a] high[1]             Dim(%x, 0) + Scalar(%a) + 1
    tensor.collapse_shape %x [[0, 1]]         Dim(%x, 0) * Dim(%x, 1)

`transforms/utils/shapes.py` emits them as index arithmetic, `analysis/value_bounds.py` reads them
as linear forms. A result of an op in destination-passing style has the sizes of its init
(`tied_init`), so structured ops and those of plug-ins need no row. MLIR:
`ReifyRankedShapedTypeOpInterface`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType, TensorType
from xdsl.ir import OpResult, SSAValue

from irees.dialects.sizes import Dim, Expr, Scalar, kept_dims, product, term, total


def size(value: SSAValue, axis: int) -> Expr:
    """Returns one dim: an int if it is static, else a `Dim`."""
    assert isinstance(value.type, ShapedType)
    known = value.type.get_shape()[axis]
    return Dim(value, axis) if known == DYNAMIC_INDEX else known


def sizes(value: SSAValue) -> list[Expr]:
    """Returns all dims of a tensor or memref."""
    assert isinstance(value.type, ShapedType)
    return [size(value, axis) for axis in range(value.type.get_num_dims())]


def mixed(static: Sequence[int], dynamic: Sequence[SSAValue]) -> list[Expr]:
    """Returns the static numbers with each `?` replaced by the next operand."""
    values = iter(dynamic)
    return [Scalar(next(values)) if n == DYNAMIC_INDEX else n for n in static]


def reassociation(op: Any) -> list[list[int]]:
    """Returns the dims that a reshape joins or splits, one group per dim of the other shape."""
    return [[i.value.data for i in group.data] for group in op.reassociation.data]


def like(name: str) -> Row:
    """Returns the row of an op whose result has the dims of an operand."""

    def row(op: Any) -> list[Expr] | None:
        source: SSAValue = getattr(op, name)
        return sizes(source) if isinstance(source.type, ShapedType) else None

    return row


def given(name: str) -> Row:
    """Returns the row of an op whose operands of that name are the dynamic dims of its result."""
    return lambda op: mixed(op.results[0].type.get_shape(), getattr(op, name))


def expand(op: Any) -> list[Expr]:
    """tensor.expand_shape, memref.expand_shape"""
    return mixed(op.static_output_shape.get_values(), op.operands[1:])


def collapse(op: Any) -> list[Expr]:
    """tensor.collapse_shape, memref.collapse_shape: products, of the static dims first."""
    found = []
    for group in reassociation(op):
        parts = [size(op.src, axis) for axis in group]
        found.append(product(sorted(parts, key=lambda part: not isinstance(part, int))))
    return found


def reshape(op: Any) -> list[Expr]:
    """tensor.reshape"""
    return [Scalar(op.shape, at) for at in range(op.shape.type.get_shape()[0])]


def sliced(op: Any) -> list[Expr]:
    """tensor.extract_slice, memref.subview, iree_tensor_ext.dispatch.tensor.load"""
    lengths = mixed(op.static_sizes.get_values(), op.sizes)
    return [lengths[axis] for axis in kept_dims(lengths, op.results[0].type.get_shape())]


def parts(op: Any) -> list[Expr]:
    """irees.view_parts: the dims of the source, with or without the last dim of 2"""
    return [*sizes(op.source), 2][: len(op.result.type.get_shape())]


def pad(op: Any) -> list[Expr]:
    """tensor.pad: dim + low + high"""
    low = mixed(op.static_low.get_values(), op.low)
    high = mixed(op.static_high.get_values(), op.high)
    parts = zip(sizes(op.source), low, high, strict=True)
    return [term("add", term("add", n, a), b) for n, a, b in parts]


def concat(op: Any) -> list[Expr]:
    """tensor.concat: the sum along `dim`"""
    found = sizes(op.inputs[0])
    along = op.dim.value.data
    found[along] = total(size(value, along) for value in op.inputs)
    return found


Row = Callable[[Any], list[Expr] | None]

ROWS: dict[str, Row] = {
    "iree_encoding.set_encoding": like("source"),
    "iree_encoding.unset_encoding": given("result_dims"),
    "iree_tensor_ext.dispatch.tensor.load": sliced,
    "irees.view_bytes": like("source"),
    "irees.view_parts": parts,
    "linalg.pack": like("dest"),
    "linalg.softmax": like("output"),
    "linalg.unpack": like("dest"),
    "memref.alloc": given("dynamic_sizes"),
    "memref.alloca": given("dynamic_sizes"),
    "memref.cast": like("source"),
    "memref.collapse_shape": collapse,
    "memref.expand_shape": expand,
    "memref.subview": sliced,
    "tensor.cast": like("source"),
    "tensor.collapse_shape": collapse,
    "tensor.concat": concat,
    "tensor.empty": given("dynamic_sizes"),
    "tensor.expand_shape": expand,
    "tensor.extract_slice": sliced,
    "tensor.generate": given("dynamic_extents"),
    "tensor.insert": like("dest"),
    "tensor.insert_slice": like("dest"),
    "tensor.pad": pad,
    "tensor.reshape": reshape,
}
"""Op name => row: the size of each dim of its first result, or None if a size is unknown."""


def tied_init(value: OpResult) -> SSAValue | None:
    """Returns the init that a result of a destination-style op is tied to, or None."""
    outputs = getattr(value.op, "outputs", None)
    if outputs is None:
        return None
    inits = [init for init in outputs if isinstance(init.type, TensorType)]
    return inits[value.index] if len(inits) == len(value.op.results) else None


def result_size(value: OpResult, axis: int) -> Expr | None:
    """Returns one dim of a result from the operands of its op; None if its op has no row."""
    init = tied_init(value)
    if init is not None:
        return size(init, axis)
    row = ROWS.get(value.op.name)
    found = None if row is None else row(value.op)
    return None if found is None else found[axis]
