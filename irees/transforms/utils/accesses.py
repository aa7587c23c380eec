"""
Loads and stores with unchecked indices.

Out-of-bounds accesses are undefined in MLIR. In irees, indices of loads are clamped (a load from an
empty buffer yields 0), and out-of-bounds stores do nothing. `irees-bufferize-dispatch` and
`irees-convert-to-stream` create `memref.load` and `memref.store` with these helpers, so that no
access of a program leaves its buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, cf, complex, memref, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from irees.analysis.integer_ranges import IntegerRanges
from irees.dialects.storage import IN_BOUNDS, NOT_EMPTY
from irees.transforms.utils.shapes import (
    IndexBuilder,
    Size,
    buffer_dim,
    constant_value,
    same_size,
)

SLT, SGE = 2, 5
"""Predicates of `arith.cmpi`: signed less than, signed greater or equal."""


def load_inside(
    buffer: SSAValue,
    indices: Sequence[SSAValue],
    here: IndexBuilder,
    outside: IndexBuilder,
    extract: tensor.ExtractOp | None = None,
) -> SSAValue:
    """
    Returns buffer[indices] with clamped indices, or 0 if the buffer is empty. What is known of the
    tensor that `extract` reads saves clamps and the comparison with 0.

    Indices whose range is in bounds are not clamped. Neither are loop indices of the same block,
    since `irees-insert-shape-checks` verifies the loop bounds. Inside a branch they are clamped:
    the branch may exist because the loop exceeds the buffer. Sizes are computed at `outside`.
    """
    inside: list[SSAValue] = []
    filled: SSAValue | None = None
    block, known, not_empty = here.point.block, (), False
    if extract is not None:
        listed = extract.attributes.get(IN_BOUNDS)
        known = listed.get_values() if isinstance(listed, DenseArrayBase) else ()
        not_empty = NOT_EMPTY in extract.attributes
    assert isinstance(buffer.type, MemRefType)
    for axis, index in enumerate(indices):
        size = buffer.type.get_shape()[axis]
        counts = isinstance(index.owner, linalg.IndexOp) and index.owner.parent_block() is block
        if counts or axis in known or is_below(index, size):
            inside.append(index)
            continue
        if size == 0:
            return here.insert(zero(buffer.type.element_type)).results[0]
        extent = buffer_dim(buffer, axis, outside)
        inside.append(clamped(index, extent, here, outside))
        if size == DYNAMIC_INDEX and not not_empty:
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


def is_below(index: SSAValue, size: int) -> bool:
    """Whether the range of an index is within [0, size); False for a dynamic size."""
    low, high = IntegerRanges().interval(index)
    return 0 <= low and high < size


def clamped(index: SSAValue, extent: Size, here: IndexBuilder, outside: IndexBuilder) -> SSAValue:
    """
    Returns the nearest index in [0, extent), or 0 if an assert requires the index to be in bounds.

    The second form takes a single operation after the comparisons of the assert. Both are right:
    the results of a program whose assert fails are discarded.
    """
    if (checked := asserted_bounds(index, extent, here.point)) is not None:
        return here.insert(arith.SelectOp(checked, index, here.value(0))).results[0]
    last = outside.sub(extent, 1)
    return here.value(here.maximum(here.minimum(index, last), 0))


def asserted_bounds(index: SSAValue, extent: Size, point: InsertPoint) -> SSAValue | None:
    """Returns the condition 0 <= index < extent if an assert before `point` requires it."""
    if not any(isinstance(use.operation, arith.CmpiOp) for use in index.uses):
        return None
    op = point.block.last_op if point.insert_before is None else point.insert_before.prev_op
    while op is not None:
        if isinstance(op, cf.AssertOp) and isinstance(both := op.arg.owner, arith.AndIOp):
            parts = both.lhs.owner, both.rhs.owner
            if {_bound(x, index, extent) for x in parts} == {"low", "high"}:
                return both.result
        op = op.prev_op
    return None


def _bound(op: Operation | Block, index: SSAValue, extent: Size) -> str | None:
    """Returns which bound of an index an op compares with: 0 <= index, index < extent."""
    if not isinstance(op, arith.CmpiOp) or op.lhs is not index:
        return None
    known, predicate = constant_value(op.rhs), op.predicate.value.data
    if predicate == SGE and known == 0:
        return "low"
    same = same_size(op.rhs if known is None else known, extent)
    return "high" if predicate == SLT and same else None


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
