"""
Loops of structured ops: iterator types, trip counts, and indexing maps of operands.

All helpers use xDSL's `LinalgStructuredOperation`, so they treat named ops and `linalg.generic`
alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, cf
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    MemRefType,
    ShapedType,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.rewriter import InsertPoint

from irees.transforms.utils.shapes import IndexBuilder, Size

Structured = LinalgStructuredOperation


def asserts(op: Operation) -> bool:
    """
    Whether an op may stop the program, itself or in its regions. It must then run, also if nothing
    reads its results, and for all elements.
    """
    return any(isinstance(inner, cf.AssertOp) for inner in op.walk())


def maps(op: Structured) -> list[AffineMap]:
    """Returns the indexing maps, one per operand, inputs first."""
    return [attr.data for attr in op.get_indexing_maps()]


def iterators(op: Structured) -> list[str]:
    """Returns `parallel`, `reduction` or `window` for each loop."""
    return [str(kind.data) for kind in op.get_iterator_types()]


def is_parallel(op: Structured) -> bool:
    """Whether every loop is parallel."""
    return all(kind == "parallel" for kind in iterators(op))


def copied_input(op: linalg.GenericOp) -> int | None:
    """Returns the index of the input that an op yields unchanged, or None."""
    (*body, end) = op.body.block.ops
    source = end.operands[0]
    if body or not isinstance(source, BlockArgument) or source.owner is not op.body.block:
        return None
    return source.index if source.index < len(op.inputs) else None


def writes_along_reduction(op: Structured) -> bool:
    """
    Whether a non-parallel loop indexes an output. If so, its accumulator is not loop-invariant:
    each iteration loads and stores the element, in loop order.
    """
    kinds, count = iterators(op), len(op.operands) - len(op.outputs)
    return any(kinds[loop] != "parallel" for m in maps(op)[count:] for loop in m.used_dims())


def loop_sources(op: Structured) -> list[tuple[int, int] | None]:
    """Returns an (operand, dim) with the trip count of each loop; a static dim if possible."""
    indexing = maps(op)
    found: list[tuple[int, int] | None] = [None] * len(iterators(op))
    for position, (operand, indexing_map) in enumerate(zip(op.operands, indexing, strict=True)):
        if not isinstance(operand.type, ShapedType):
            continue
        shape = operand.type.get_shape()
        for axis, expr in enumerate(indexing_map.results):
            if not isinstance(expr, AffineDimExpr):
                continue
            known = found[expr.position]
            if known is None or (shape[axis] >= 0 and _size(op, known) < 0):
                found[expr.position] = (position, axis)
    return found


def _size(op: Operation, source: tuple[int, int]) -> int:
    operand_type = op.operands[source[0]].type
    assert isinstance(operand_type, ShapedType)
    return operand_type.get_shape()[source[1]]


def static_ranges(op: Structured) -> list[int]:
    """Returns the trip count of each loop, -1 if dynamic."""
    return [-1 if source is None else _size(op, source) for source in loop_sources(op)]


def is_reused(op: Structured, position: int) -> bool:
    """Whether iterations of an op may read the same element of an operand again."""
    indexing = maps(op)[position]
    used = indexing.used_dims()
    others = (size for loop, size in enumerate(static_ranges(op)) if loop not in used)
    return not indexing.is_projected_permutation() or any(size != 1 for size in others)


def generic(
    inputs: Sequence[SSAValue],
    outputs: Sequence[SSAValue],
    indexing: Sequence[AffineMap],
    kinds: Sequence[str],
    body: Region,
) -> linalg.GenericOp:
    """Returns a `linalg.generic` on tensors (typed as its outputs) or memrefs (no results)."""
    return linalg.GenericOp(
        inputs,
        outputs,
        body,
        ArrayAttr(AffineMapAttr(m) for m in indexing),
        ArrayAttr(IteratorTypeAttr(IteratorType(kind)) for kind in kinds),
        [o.type for o in outputs if isinstance(o.type, TensorType)],
    )


def element_type(value: SSAValue) -> Attribute:
    """Returns the element type of a shaped value, or the type of a scalar."""
    if isinstance(value.type, TensorType | MemRefType):
        return value.type.get_element_type()
    return value.type


def copy_region(element_types: Sequence[Attribute], source: int, target_type: Attribute) -> Region:
    """Returns a body that yields argument number `source` unchanged."""
    block = Block(arg_types=element_types)
    assert block.args[source].type == target_type
    block.add_op(linalg.YieldOp(block.args[source]))
    return Region(block)


def filled_value(op: linalg.GenericOp) -> arith.ConstantOp | None:
    """
    Returns the scalar constant with which an op fills its only output, or None. The constant may be
    in the body or an input.
    """
    if len(op.outputs) != 1 or not is_parallel(op):
        return None
    if maps(op)[-1] != AffineMap.identity(len(op.iterator_types)):
        return None
    inside = dict(zip(op.body.block.args, op.inputs))
    (yielded,) = op.body.block.last_op.operands
    value = inside.get(yielded, yielded)
    is_scalar = not isinstance(value.type, ShapedType)
    return value.owner if is_scalar and isinstance(value.owner, arith.ConstantOp) else None


def is_zero(constant: arith.ConstantOp) -> bool:
    """Whether a scalar constant is 0, but not -0."""
    data = getattr(getattr(constant.value, "value", None), "data", None)
    return data == 0 and str(data) != "-0.0"


def is_zero_fill(op: linalg.GenericOp) -> bool:
    """Whether an op fills its only output with +0."""
    constant = filled_value(op)
    return constant is not None and is_zero(constant)


def affine_value(expr: AffineExpr, dims: Sequence[Size], builder: IndexBuilder) -> Size:
    """Computes an affine expression of non-negative dims."""
    if isinstance(expr, AffineConstantExpr):
        return expr.value
    if isinstance(expr, AffineDimExpr):
        return dims[expr.position]
    assert isinstance(expr, AffineBinaryOpExpr)
    lhs = affine_value(expr.lhs, dims, builder)
    rhs = affine_value(expr.rhs, dims, builder)
    match expr.kind:
        case AffineBinaryOpKind.Add:
            return builder.add(lhs, rhs)
        case AffineBinaryOpKind.Mul:
            return builder.mul(lhs, rhs)
    if has_negative(expr.lhs) and isinstance(lhs, SSAValue):
        return _divided_below_zero(expr.kind, lhs, rhs, builder)
    match expr.kind:
        case AffineBinaryOpKind.Mod:
            return builder.rem(lhs, rhs)
        case AffineBinaryOpKind.FloorDiv:
            return builder.floordiv(lhs, rhs)
        case _:
            assert isinstance(rhs, int)
            return builder.ceildiv(lhs, rhs)


def has_negative(expr: AffineExpr) -> bool:
    """Whether an expression of non-negative dims may be negative."""
    return any(isinstance(e, AffineConstantExpr) and e.value < 0 for e in expr.dfs())


def _divided_below_zero(kind: AffineBinaryOpKind, lhs: Size, rhs: Size, b: IndexBuilder) -> Size:
    """Computes lhs mod, floordiv or ceildiv rhs, for lhs of either sign and rhs > 0."""
    if kind is AffineBinaryOpKind.CeilDiv:
        lhs = b.sub(0, lhs)
    by = b.value(rhs)
    rest = b.insert(arith.RemSIOp(b.value(lhs), by)).results[0]
    # RemSI has the sign of lhs: make the remainder non-negative, then subtract it.
    rest = b.insert(arith.RemSIOp(b.value(b.add(rest, by)), by)).results[0]
    if kind is AffineBinaryOpKind.Mod:
        return rest
    quotient = b.insert(arith.DivSIOp(b.value(b.sub(lhs, rest)), by)).results[0]
    return b.sub(0, quotient) if kind is AffineBinaryOpKind.CeilDiv else quotient


def captured_values(op: Operation) -> list[SSAValue]:
    """Returns the values used in the regions of an op but defined outside it, without repeats."""
    found: dict[SSAValue, None] = {}
    for inner in op.walk():
        if inner is op:
            continue
        for operand in inner.operands:
            owner = operand.block if isinstance(operand, BlockArgument) else operand.owner
            if not _inside(owner, op):
                found[operand] = None
    return list(found)


def _inside(node: Operation | Block, op: Operation) -> bool:
    current: Operation | Block | Region | None = node
    while current is not None:
        if current is op:
            return True
        current = current.parent
    return False


def shift_indices(op: Operation, offsets: dict[int, Size]) -> None:
    """linalg.index d  =>  linalg.index d + offset of the tile"""
    for index in [o for o in op.walk() if isinstance(o, linalg.IndexOp)]:
        offset = offsets.get(index.dim.value.data, 0)
        if isinstance(offset, int) and offset == 0:
            continue
        builder = IndexBuilder(InsertPoint.after(index))
        add = arith.AddiOp(index.result, builder.value(offset))
        builder.insert(add)
        index.result.replace_uses_with_if(add.result, lambda use, add=add: use.operation is not add)
