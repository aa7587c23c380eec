"""
Loads and stores with unchecked indices.

Out-of-bounds accesses are undefined in MLIR. In irees, indices of loads are clamped (a load from an
empty buffer yields 0), and out-of-bounds stores do nothing. `irees-bufferize-dispatch` and
`irees-convert-to-stream` create `memref.load` and `memref.store` with these helpers, so that no
access of a program leaves its buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, complex, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue

from irees.transforms.utils.shapes import IndexBuilder, buffer_dim, constant_value


def load_inside(
    buffer: SSAValue, indices: Sequence[SSAValue], here: IndexBuilder, outside: IndexBuilder
) -> SSAValue:
    """
    Returns buffer[indices] with clamped indices, or 0 if the buffer is empty.

    Constants in bounds are not clamped. Neither are loop indices of the same block, since
    `irees-insert-shape-checks` verifies the loop bounds. Inside a branch they are clamped: the
    branch may exist because the loop exceeds the buffer. Sizes are computed at `outside`.
    """
    inside: list[SSAValue] = []
    filled: SSAValue | None = None
    block = here.point.block
    assert isinstance(buffer.type, MemRefType)
    for axis, index in enumerate(indices):
        known, size = constant_value(index), buffer.type.get_shape()[axis]
        counts = isinstance(index.owner, linalg.IndexOp) and index.owner.parent_block() is block
        if counts or (known is not None and 0 <= known < size):
            inside.append(index)
            continue
        if size == 0:
            return here.insert(zero(buffer.type.element_type)).results[0]
        extent = buffer_dim(buffer, axis, outside)
        last = outside.sub(extent, 1)
        inside.append(here.value(here.maximum(here.minimum(index, last), 0)))
        if size == DYNAMIC_INDEX:
            some = arith.CmpiOp(outside.value(extent), outside.value(0), "sgt")
            some = outside.insert(some).results[0]
            if filled is not None:
                some = outside.insert(arith.AndIOp(filled, some)).results[0]
            filled = some
    load = memref.LoadOp.get(buffer, inside)
    if filled is None:
        return here.insert(load).results[0]
    nothing = zero(buffer.type.element_type)
    branch = scf.IfOp(
        filled,
        [buffer.type.element_type],
        [load, scf.YieldOp(load)],
        [nothing, scf.YieldOp(nothing)],
    )
    return here.insert(branch).results[0]


def store_inside(
    value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue], builder: IndexBuilder
) -> None:
    """buffer[indices] = value, without effect if an index is out of bounds."""
    assert isinstance(buffer.type, MemRefType)
    inside: SSAValue | None = None
    for axis, index in enumerate(indices):
        known, size = constant_value(index), buffer.type.get_shape()[axis]
        if known is not None and 0 <= known < size:
            continue
        extent = builder.value(buffer_dim(buffer, axis, builder))
        # As an unsigned number, a negative index is large.
        fits = builder.insert(arith.CmpiOp(index, extent, "ult")).results[0]
        inside = fits if inside is None else builder.insert(arith.AndIOp(inside, fits)).results[0]
    store = memref.StoreOp.get(value, buffer, indices)
    builder.insert(store if inside is None else scf.IfOp(inside, [], [store, scf.YieldOp()]))


def zero(kind: Attribute) -> Operation:
    """Returns the constant 0 of a scalar type, or of a vector of real numbers."""
    if isinstance(kind, VectorType):
        number = 0.0 if isinstance(kind.element_type, AnyFloat) else 0
        return arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, [number]))
    if isinstance(kind, ComplexType):
        part = kind.element_type
        number = IntegerAttr(0, part) if isinstance(part, IntegerType) else FloatAttr(0.0, part)
        return complex.ConstantOp(ArrayAttr([number, number]), kind)
    if isinstance(kind, IntegerType | IndexType):
        return arith.ConstantOp(IntegerAttr(0, kind))
    return arith.ConstantOp(FloatAttr(0.0, kind))
