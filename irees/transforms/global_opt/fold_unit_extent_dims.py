"""
Removes unit dims (of size 1) from structured ops.

Frontends emit unit batch dims and keepdim axes. They hide that two ops have the same loops, and the
reshapes between the ops block fusion. The pass drops the unit loops of each generic and the unit
dims of its operands. The reshapes that it inserts only add or drop unit dims, and cancel. A pad
(a slice inserted into a fill) drops unit dims, too. A convolution whose window is one element reads
a slice as long as its result, unless the image is known to be that long.

    %e = tensor.expand_shape %m [[0, 1]] : tensor<512xf32> into tensor<512x1xf32>
    %r = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i, 0), (i, j) -> (i, j)]} ins(%x, %e)
  =>
    %r = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i), (i, j) -> (i, j)]} ins(%x, %m)

Dynamic dims stay, even if they are 1 at run time. MLIR: `linalg-fold-unit-extent-dims`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.paddings import is_background
from irees.analysis.value_bounds import ValueBounds
from irees.dialects.storage import is_grouping, is_undefined
from irees.rewrites import Fuel, may_rewrite
from irees.transforms.utils.shapes import IndexBuilder, dim, mixed
from irees.transforms.utils.structured import (
    generic,
    iterators,
    loop_sources,
    maps,
    static_ranges,
)
from irees.transforms.utils.tensors import TensorBuilder, insert_slice
from irees.transforms.utils.unit_dims import collapse, expand

NAME = "irees-fold-unit-extent-dims"


def window_dims(op: linalg.GenericOp, ranges: Sequence[int]) -> dict[tuple[int, int], int]:
    """
    Returns the (operand, dim) that a loop indexes once all unit loops are 0 but that may be longer
    than the loop => the loop. Without d0, a window `d0 * 2 + d1` is no plain `d1`, whose range is
    that of the whole dim.
    """
    zero = [
        AffineExpr.constant(0) if r == 1 else AffineExpr.dimension(i) for i, r in enumerate(ranges)
    ]
    sources, found = loop_sources(op), dict[tuple[int, int], int]()
    for position, indexing in enumerate(maps(op)):
        for axis, expr in enumerate(indexing.results):
            if isinstance(expr, AffineDimExpr):
                continue
            left = expr.replace_dims_and_symbols(zero, []).simplify(len(ranges), 0)
            if isinstance(left, AffineDimExpr):
                loop = sources[left.position]
                if loop is None or not _are_equal(op, loop, (position, axis)):
                    found[position, axis] = left.position
    return found


def first_elements(op: linalg.GenericOp, windows: Mapping[tuple[int, int], int]) -> None:
    """Replaces operands by the slices of them that windows of one element read."""
    at, sources = TensorBuilder(op), loop_sources(op)
    for position in dict.fromkeys(position for position, _ in windows):
        value = op.operands[position]
        assert isinstance(value.type, TensorType)
        sizes = [dim(value, axis, at) for axis in range(value.type.get_num_dims())]
        for (operand, axis), loop in windows.items():
            if operand == position:
                source = sources[loop]
                assert source is not None
                sizes[axis] = dim(op.operands[source[0]], source[1], at)
        op.operands[position] = at.extract_slice(value, [0] * len(sizes), sizes)


def _are_equal(op: linalg.GenericOp, *dims: tuple[int, int]) -> bool:
    """Whether two dims of operands, as (operand, dim), are provably equal."""
    bounds = ValueBounds()
    first, second = (bounds.expression(op.operands[position], axis) for position, axis in dims)
    return first.same(second)


def is_affine(expr: AffineExpr) -> bool:
    """Whether an index multiplies and divides by constants only, so that it can be simplified."""
    if not isinstance(expr, AffineBinaryOpExpr):
        return True
    sides = (expr.lhs, expr.rhs)
    if not all(map(is_affine, sides)):
        return False
    if expr.kind is AffineBinaryOpKind.Mul:
        return any(isinstance(side, AffineConstantExpr) for side in sides)
    return expr.kind is AffineBinaryOpKind.Add or isinstance(expr.rhs, AffineConstantExpr)


def drop_unit_dims(op: linalg.GenericOp) -> bool:
    """generic over loops of 1  =>  expand(generic(collapse(operands)))"""
    if is_background(op) or not all(is_affine(e) for m in maps(op) for e in m.results):
        return False
    ranges = static_ranges(op)
    windows, sources = window_dims(op, ranges), loop_sources(op)
    if any(sources[loop] is None for loop in windows.values()):
        return False
    kept_loops = [i for i, r in enumerate(ranges) if r != 1]
    reduced = _reduced_maps(op, kept_loops, windows)
    if reduced is None or not may_rewrite(NAME, op, "drop_unit_dims of linalg.generic"):
        return False
    first_elements(op, windows)
    new_maps, kept_dims = reduced
    builder = IndexBuilder(InsertPoint.before(op))
    operands = [
        _reduced(v, kept, builder) if isinstance(v.type, TensorType) else v
        for v, kept in zip(op.operands, kept_dims, strict=True)
    ]
    count = len(op.inputs)
    body = op.detach_region(op.body)
    _renumber_indices(body, kept_loops)
    kinds = [iterators(op)[i] for i in kept_loops]
    new = generic(operands[:count], operands[count:], new_maps, kinds, body)
    new.attributes.update(op.attributes)
    new.location = op.location
    builder.insert(new)
    values = [
        expand(result, old.type, kept, builder)
        for result, old, kept in zip(new.res, op.res, kept_dims[count:], strict=True)
    ]
    Rewriter.replace_op(op, [], values)
    return True


def _reduced_maps(
    op: linalg.GenericOp, kept_loops: Sequence[int], windows: Container[tuple[int, int]]
) -> tuple[list[AffineMap], list[list[int]]] | None:
    """
    Returns the maps over the kept loops, and the kept dims of each operand.

    None if nothing is dropped, if a loop would lose its size, or if an index becomes a loop of
    another size than its dim, as `w * 0 + k` does: MLIR has plain indices cover their dims.
    """
    indexing, ranges = maps(op), static_ranges(op)
    replacements: list[AffineExpr] = [AffineExpr.constant(0)] * len(ranges)
    for new, old in enumerate(kept_loops):
        replacements[old] = AffineExpr.dimension(new)
    kept_dims: list[list[int]] = []
    new_maps: list[AffineMap] = []
    for shape, indexing_map in zip(_shapes(op, windows), indexing, strict=True):
        exprs = [
            e.replace_dims_and_symbols(replacements, []).simplify(len(kept_loops), 0)
            for e in indexing_map.results
        ]
        if not _cover(exprs, shape, [ranges[loop] for loop in kept_loops]):
            return None
        kept = _kept(exprs, shape)
        kept_dims.append(kept)
        new_maps.append(AffineMap(len(kept_loops), 0, tuple(exprs[d] for d in kept)))
    results = tuple(e for m in new_maps for e in m.results)
    if len(kept_loops) == len(ranges) and len(results) == sum(len(m.results) for m in indexing):
        return None
    if AffineMap(len(kept_loops), 0, results).inverse_permutation() is None and kept_loops:
        return None
    return new_maps, kept_dims


def _shapes(op: linalg.GenericOp, windows: Container[tuple[int, int]]) -> list[list[int]]:
    """Returns the shape of each operand; the dims of `windows`, which are sliced, are dynamic."""
    shapes = [o.type.get_shape() if isinstance(o.type, TensorType) else () for o in op.operands]
    return [
        [DYNAMIC_INDEX if (n, d) in windows else size for d, size in enumerate(shape)]
        for n, shape in enumerate(shapes)
    ]


def _cover(exprs: Sequence[AffineExpr], shape: Sequence[int], ranges: Sequence[int]) -> bool:
    """Whether no index that is a loop is known to have another range than its dim."""
    plain = (
        (e, size) for e, size in zip(exprs, shape, strict=True) if isinstance(e, AffineDimExpr)
    )
    return not any(0 <= ranges[e.position] != size >= 0 for e, size in plain)


def _kept(exprs: Sequence[AffineExpr], shape: Sequence[int]) -> list[int]:
    """The dims that are not of size 1 with index 0."""
    zeros = (isinstance(e, AffineConstantExpr) and e.value == 0 for e in exprs)
    pairs = enumerate(zip(zeros, shape, strict=True))
    return [d for d, (is_zero, size) in pairs if size != 1 or not is_zero]


def _renumber_indices(body: Region, kept_loops: Sequence[int]) -> None:
    """linalg.index of a kept loop  =>  of its new number;  of another loop  =>  0"""
    for index in [o for o in body.walk() if isinstance(o, linalg.IndexOp)]:
        loop = index.dim.value.data
        at = IndexBuilder(InsertPoint.before(index))
        if loop in kept_loops:
            new_index = at.insert(linalg.IndexOp(kept_loops.index(loop))).results[0]
        else:
            new_index = at.value(0)
        Rewriter.replace_op(index, [], [new_index])


def _dims_of_pad(op: tensor.InsertSliceOp) -> list[int] | None:
    """Returns the non-unit dims of a pad, or None if the unit dims cannot be dropped."""
    assert isinstance(op.dest.type, TensorType)
    assert isinstance(op.source.type, TensorType)
    shape, source = op.dest.type.get_shape(), op.source.type.get_shape()
    kept = [d for d, size in enumerate(shape) if size != 1]
    # A destination that is not a fill may be updated in place; a reshape would prevent this.
    if not is_background(op.dest.owner) or len(kept) == len(shape) or not kept:
        return None
    if len(source) != len(shape) or any(stride != 1 for stride in op.static_strides.get_values()):
        return None
    return kept if all(source[d] == 1 for d in range(len(shape)) if d not in kept) else None


def drop_unit_dims_of_pad(op: tensor.InsertSliceOp) -> bool:
    """insert_slice x into fill : 1xN  =>  expand(insert_slice collapse(x) into fill : N)"""
    kept, kind = _dims_of_pad(op), op.dest.type
    if kept is None or not may_rewrite(NAME, op, "drop_unit_dims_of_pad of tensor.insert_slice"):
        return False
    assert isinstance(kind, TensorType)
    builder = IndexBuilder(InsertPoint.before(op))
    part, target = (_reduced(v, kept, builder) for v in (op.source, op.dest))
    offsets = mixed(op.static_offsets.get_values(), op.offsets)
    sizes = mixed(op.static_sizes.get_values(), op.sizes)
    new = insert_slice(part, target, [offsets[d] for d in kept], [sizes[d] for d in kept], builder)
    new.owner.location = op.location
    Rewriter.replace_op(op, [], [expand(new, kind, kept, builder)])
    return True


def _reduced(value: SSAValue, kept: Sequence[int], builder: IndexBuilder) -> SSAValue:
    assert isinstance(value.type, TensorType)
    if is_background(value.owner) and len(kept) < len(value.type.get_shape()):
        return _reduced_fill(value, kept, builder)
    if not is_undefined(value.owner):
        return collapse(value, kept, builder)
    kind = value.type
    assert isinstance(kind, TensorType)
    result = TensorType(kind.get_element_type(), [kind.get_shape()[d] for d in kept])
    return builder.insert(tensor.EmptyOp(list(value.owner.dynamic_sizes), result)).results[0]


def _reduced_fill(value: SSAValue, kept: Sequence[int], builder: IndexBuilder) -> SSAValue:
    """collapse(fill(empty))  =>  fill(smaller empty)"""
    fill = value.owner
    assert isinstance(fill, linalg.GenericOp)
    assert isinstance(value, OpResult)
    empty = _reduced(fill.outputs[value.index], kept, builder)
    rank = len(kept)
    scalars = AffineMap(rank, 0, ())
    body = fill.body.clone()
    new = generic(
        fill.inputs,
        [empty],
        [*([scalars] * len(fill.inputs)), AffineMap.identity(rank)],
        ["parallel"] * rank,
        body,
    )
    new.location = fill.location
    return builder.insert(new).results[0]


def only_unit_dims(op: Operation) -> bool:
    """Whether a reshape only adds or drops unit dims."""
    if not is_grouping(op):
        return False
    source, result = op.operands[0].type, op.results[0].type
    assert isinstance(source, TensorType)
    assert isinstance(result, TensorType)
    return _without_ones(source) == _without_ones(result)


def _without_ones(kind: TensorType) -> list[int]:
    return [s for s in kind.get_shape() if s != 1]


def merge_reshapes(op: Operation) -> bool:
    """reshape(reshape(x))  =>  x, or one reshape, where both only add or drop unit dims"""
    if not only_unit_dims(op):
        return False
    inner = op.operands[0]
    if not isinstance(inner, OpResult) or not only_unit_dims(inner.op):
        return False
    source = inner.op.operands[0]
    start, end = source.type, op.results[0].type
    assert isinstance(start, TensorType)
    assert isinstance(end, TensorType)
    smaller = _embedding(end.get_shape(), start.get_shape())
    larger = _embedding(start.get_shape(), end.get_shape())
    if smaller is None and larger is None:
        return False
    if not may_rewrite(NAME, op, f"merge_reshapes of {op.name}"):
        return False
    new, builder = source, IndexBuilder(InsertPoint.before(op))
    if start != end and smaller is not None:
        new = collapse(source, smaller, builder)
    elif start != end and larger is not None:
        new = expand(source, end, larger, builder)
    Rewriter.replace_op(op, [], [new])
    return True


def _embedding(small: Sequence[int], large: Sequence[int]) -> list[int] | None:
    """Returns the dims of `large` that equal `small` if all other dims are 1, else None."""
    kept: list[int] = []
    for position, size in enumerate(large):
        if len(kept) < len(small) and small[len(kept)] == size:
            kept.append(position)
        elif size != 1:
            return None
    return kept if len(kept) == len(small) else None


@dataclass(frozen=True)
class FoldUnitExtentDimsPass(ModulePass):
    """Drops unit loops and dims of structured ops, and cancels reshapes of unit dims."""

    name = "irees-fold-unit-extent-dims"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            if inner.res:
                drop_unit_dims(inner)
        for inner in [o for o in op.walk() if isinstance(o, tensor.InsertSliceOp)]:
            drop_unit_dims_of_pad(inner)
        self._merge_reshapes(op)

    def _merge_reshapes(self, op: ModuleOp) -> None:
        changed, fuel = True, Fuel.of(self.name, op)
        while changed and not fuel.is_spent:
            changed = False
            for inner in [o for o in op.walk() if is_grouping(o)]:
                if inner.results[0].uses:
                    if merge_reshapes(inner):
                        changed = True
                        fuel.burn("merge_reshapes")
                elif may_rewrite(self.name, inner, f"erasure of dead {inner.name}"):
                    Rewriter.erase_op(inner)
