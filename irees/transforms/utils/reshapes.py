"""
Propagates reshapes toward loads and stores, past structured ops and slices, and folds them.

Loops can always be expanded: a loop over a collapsed dim becomes one loop per source dim, and the
collapse moves behind the op. Conversely, a consumer that expands the result is replaced by more
loops of the op.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

from xdsl.dialects import memref, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from irees.dialects.iree_tensor_ext import BitCastOp
from irees.dialects.storage import is_slice, is_undefined
from irees.transforms.utils.shapes import (
    IndexBuilder,
    Size,
    dim,
    mixed,
    reassociation,
    reassociation_attr,
    split,
)
from irees.transforms.utils.structured import Structured, generic, iterators, maps

Groups = Sequence[Sequence[int]]


class Refused(Exception):
    """The reason why a rewrite does not apply."""


def consecutive(counts: Sequence[int]) -> list[list[int]]:
    """Returns groups of consecutive dims, with `counts` dims each."""
    result: list[list[int]] = []
    at = 0
    for count in counts:
        result.append(list(range(at, at + count)))
        at += count
    return result


def collapse(
    value: SSAValue, groups: Groups, type: TensorType | MemRefType, at: IndexBuilder
) -> SSAValue:
    """tensor.collapse_shape or memref.collapse_shape"""
    kind = memref if isinstance(type, MemRefType) else tensor
    op = kind.CollapseShapeOp.build(
        operands=[value],
        properties={"reassociation": reassociation_attr(groups)},
        result_types=[type],
    )
    return at.insert(op).results[0]


def expand(
    value: SSAValue,
    groups: Groups,
    sizes: Sequence[Size],
    type: TensorType | MemRefType,
    at: IndexBuilder,
) -> SSAValue:
    """tensor.expand_shape or memref.expand_shape; `sizes` has the dynamic dims of `type`."""
    kind = memref if isinstance(type, MemRefType) else tensor
    shape = type.get_shape()
    dynamic = [at.value(s) for s, n in zip(sizes, shape, strict=True) if n == DYNAMIC_INDEX]
    op = kind.ExpandShapeOp.build(
        operands=[value, dynamic],
        properties={
            "reassociation": reassociation_attr(groups),
            "static_output_shape": DenseArrayBase.from_list(i64, list(shape)),
        },
        result_types=[type],
    )
    return at.insert(op).results[0]


def configured(*ops: Operation | None) -> bool:
    """Whether an op has a lowering config, which fixes its loops."""
    return any(op is not None and "lowering_config" in op.attributes for op in ops)


def reshape(value: SSAValue, shape: Sequence[int], at: IndexBuilder) -> SSAValue:
    """Reshapes a tensor in row-major order; both shapes are static and not empty."""
    kind = value.type
    assert isinstance(kind, TensorType)
    old, shape = list(kind.get_shape()), list(shape)
    if old == shape:
        return value
    if (groups := joined_dims(old, shape)) is not None:
        return collapse(value, groups, TensorType(kind.element_type, shape), at)
    if (groups := joined_dims(shape, old)) is not None:
        return expand(value, groups, shape, TensorType(kind.element_type, shape), at)
    return reshape(reshape(value, [prod(shape)], at), shape, at)


def joined_dims(fine: Sequence[int], coarse: Sequence[int]) -> list[list[int]] | None:
    """Returns the group of fine dims of each coarse dim, or None if no grouping exists."""
    if not coarse:
        return [] if set(fine) <= {1} else None
    groups: list[list[int]] = []
    at = 0
    for size in coarse:
        group, count = [at], fine[at] if at < len(fine) else 0
        while 0 < count < size and at + len(group) < len(fine):
            count *= fine[at + len(group)]
            group.append(at + len(group))
        if count != size:
            return None
        groups.append(group)
        at += len(group)
    if any(size != 1 for size in fine[at:]):
        return None
    groups[-1] += range(at, len(fine))
    return groups


@dataclass(frozen=True)
class Expansion:
    """How an operand is expanded."""

    groups: Groups
    kind: TensorType
    sizes: Sequence[Size | None]
    """The sizes of the new dims, None for dims that stay."""

    def of(self, value: SSAValue, at: IndexBuilder) -> SSAValue:
        """expand(value); the source of a value that is collapsed in the same way"""
        source = value.owner
        if (
            isinstance(source, tensor.CollapseShapeOp)
            and source.src.type == self.kind
            and reassociation(source) == self.groups
        ):
            return source.src
        known = [
            dim(value, axis, at) if s is None else s
            for axis, group in enumerate(self.groups)
            for s in (self.sizes[i] for i in group)
        ]
        return expand(value, self.groups, known, self.kind, at)


def expand_loops(
    op: linalg.GenericOp | linalg.CopyOp | linalg.FillOp,
    loops: Mapping[int, Sequence[Size]],
    static: Mapping[int, Sequence[int]],
) -> None:
    """
    op  =>  collapse(op'), with one loop of op' per size that `loops` splits a loop of op into.

    `static` has the same sizes as static shapes. Raises Refused before it changes anything.
    """
    at, count = IndexBuilder(InsertPoint.before(op)), len(iterators(op))
    check_loops(op, loops)
    new_loops = consecutive([len(loops.get(d, (0,))) for d in range(count)])
    own = [[e.position for e in m.results if isinstance(e, AffineDimExpr)] for m in maps(op)]
    plans = [
        expansion_of(operand, axes, loops, static)
        for operand, axes in zip(op.operands, own, strict=True)
    ]
    operands = [
        operand if plan is None else plan.of(operand, at)
        for operand, plan in zip(op.operands, plans, strict=True)
    ]
    first = len(op.operands) - len(op.results)
    if isinstance(op, linalg.GenericOp):
        new = with_loops(op, operands, own, new_loops)
    else:
        new = type(op)(operands[:first], operands[first:], [o.type for o in operands[first:]])
    new.attributes.update(op.attributes)
    new.location = op.location
    at.insert(new)
    results: list[SSAValue] = []
    for old, result, plan in zip(op.results, new.results, plans[first:], strict=True):
        assert isinstance(old.type, TensorType)
        results.append(result if plan is None else collapse(result, plan.groups, old.type, at))
    Rewriter.replace_op(op, [], results)


def check_loops(op: Structured, loops: Container[int]) -> None:
    """Raises Refused if splitting or joining some loops of an op would change its semantics."""
    if any(not permutes(m) for m in maps(op)):
        raise Refused("an operand is indexed by more than plain loops")
    indices = [o for o in op.walk() if isinstance(o, linalg.IndexOp)]
    if any(o.dim.value.data in loops for o in indices):
        raise Refused("the body reads a loop index")


def expansion_of(
    operand: SSAValue, axes: Sequence[int], loops: Mapping[int, Sequence[Size]],
    static: Mapping[int, Sequence[int]],
) -> Expansion | None:  # fmt: skip
    """
    Returns how an operand that is indexed by the loops `axes` is expanded; None if it stays. Raises
    Refused.
    """
    if not isinstance(operand.type, TensorType) or not any(a in loops for a in axes):
        return None
    shape: list[int] = []
    sizes: list[Size | None] = []
    for size, loop in zip(operand.type.get_shape(), axes, strict=True):
        if loop not in loops:
            shape.append(size)
            sizes.append(None)
            continue
        if (size == DYNAMIC_INDEX) != (DYNAMIC_INDEX in static[loop]):
            raise Refused("a dim is static in one operand and dynamic in another")
        shape += static[loop]
        sizes += loops[loop]
    groups = consecutive([len(loops.get(a, (0,))) for a in axes])
    return Expansion(groups, TensorType(operand.type.element_type, shape), sizes)


def with_loops(
    op: linalg.GenericOp, operands: Sequence[SSAValue], own: Sequence[Sequence[int]], loops: Groups
) -> linalg.GenericOp:
    """
    Returns the op, with its body, over several loops for each of its loops. `own` has the loops
    that index its operands.
    """
    for index in [o for o in op.walk() if isinstance(o, linalg.IndexOp)]:
        # Splitting a loop renumbers the following loops.
        index.dim = IntegerAttr(loops[index.dim.value.data][0], i64)
    total, inputs = sum(len(group) for group in loops), len(op.inputs)
    new_maps = [
        AffineMap(total, 0, tuple(AffineExpr.dimension(n) for a in axes for n in loops[a]))
        for axes in own
    ]
    kinds = [k for k, new in zip(iterators(op), loops, strict=True) for _ in new]
    body = op.detach_region(op.body)
    return generic(operands[:inputs], operands[inputs:], new_maps, kinds, body)


def permutes(map_: AffineMap) -> bool:
    """Whether a map's results are distinct loops."""
    dims = [e.position for e in map_.results if isinstance(e, AffineDimExpr)]
    return len(dims) == len(map_.results) == len(set(dims))


T = TypeVar("T")


def split_loops(map_: AffineMap, groups: Groups, sizes: Sequence[T]) -> dict[int, Sequence[T]]:
    """Returns the loops over dims that are split into several => the sizes of those."""
    return {
        loop.position: [sizes[i] for i in group]
        for loop, group in zip(map_.results, groups, strict=True)
        if len(group) > 1 and isinstance(loop, AffineDimExpr)
    }


_EXPANDABLE = (linalg.GenericOp, linalg.CopyOp, linalg.FillOp)


def through_op(op: Operation) -> bool:
    """op(collapse(x)) => collapse(op'(x)); returns whether it applied. Raises Refused."""
    if not isinstance(op, _EXPANDABLE) or not op.results:
        return False
    for operand, map_ in zip(op.inputs, maps(op)):
        source = operand.owner
        if not isinstance(source, tensor.CollapseShapeOp) or configured(op, source):
            continue
        groups = reassociation(source)
        assert isinstance(source.src.type, TensorType)
        shape = source.src.type.get_shape()
        at = IndexBuilder(InsertPoint.before(op))
        if not (static := split_loops(map_, groups, shape)):
            continue
        sizes = [dim(source.src, i, at) for i in range(len(shape))]
        expand_loops(op, split_loops(map_, groups, sizes), static)
        return True
    return False


def into_producer(op: tensor.ExpandShapeOp) -> bool:
    """expand(op(x)) => op'(expand(x)); returns whether it applied. Raises Refused."""
    producer = op.src.owner
    if not isinstance(producer, _EXPANDABLE) or configured(producer, op):
        return False
    assert isinstance(op.src, OpResult)
    groups, shape = reassociation(op), op.result.type.get_shape()
    sizes = mixed(op.static_output_shape.get_values(), op.dynamic_output_shape)
    map_ = maps(producer)[len(producer.operands) - len(producer.results) + op.src.index]
    loops, static = split_loops(map_, groups, sizes), split_loops(map_, groups, shape)
    if not loops or not available(sizes, producer):
        return False
    expand_loops(producer, loops, static)
    return True


def fold_collapse(op: tensor.CollapseShapeOp) -> bool:
    """collapse(expand(x)) => x, collapse(collapse(x)) => collapse(x), collapse(empty) => empty"""
    source = op.src.owner
    groups = reassociation(op)
    assert isinstance(op.result.type, TensorType)
    at = IndexBuilder(InsertPoint.before(op))
    if isinstance(source, tensor.ExpandShapeOp):
        if source.src.type != op.result.type or reassociation(source) != groups:
            return False
        Rewriter.replace_op(op, [], [source.src])
        return True
    if isinstance(source, tensor.CollapseShapeOp) and groups and reassociation(source):
        inner = reassociation(source)
        joined = [[i for mid in group for i in inner[mid]] for group in groups]
        Rewriter.replace_op(op, [], [collapse(source.src, joined, op.result.type, at)])
        return True
    if is_undefined(source) and groups:
        known = mixed(source.tensor.type.get_shape(), source.dynamic_sizes)
        sizes = [at.product([known[i] for i in group]) for group in groups]
        Rewriter.replace_op(op, [], [empty(sizes, op.result.type, at)])
        return True
    return False


def fold_expand(op: tensor.ExpandShapeOp) -> bool:
    """expand(collapse(x)) => x, expand(expand(x)) => expand(x), expand(empty) => empty"""
    source = op.src.owner
    groups = reassociation(op)
    sizes = mixed(op.static_output_shape.get_values(), op.dynamic_output_shape)
    at = IndexBuilder(InsertPoint.before(op))
    if isinstance(source, tensor.CollapseShapeOp):
        shape = op.result.type.get_shape()
        # With two dynamic dims in a group, the sizes may differ from those of the source.
        if (
            source.src.type != op.result.type
            or reassociation(source) != groups
            or any([shape[i] for i in group].count(DYNAMIC_INDEX) > 1 for group in groups)
        ):
            return False
        Rewriter.replace_op(op, [], [source.src])
        return True
    if isinstance(source, tensor.ExpandShapeOp) and groups and reassociation(source):
        outer = reassociation(source)
        joined = [[i for mid in group for i in groups[mid]] for group in outer]
        Rewriter.replace_op(op, [], [expand(source.src, joined, sizes, op.result.type, at)])
        return True
    if is_undefined(source) and groups:
        Rewriter.replace_op(op, [], [empty(sizes, op.result.type, at)])
        return True
    return False


def empty(sizes: Sequence[Size], type: TensorType, at: IndexBuilder) -> SSAValue:
    """tensor.empty; dynamic dims of `type` get their values from `sizes`."""
    dynamic = [
        at.value(s) for s, n in zip(sizes, type.get_shape(), strict=True) if n == DYNAMIC_INDEX
    ]
    return at.insert(tensor.EmptyOp(dynamic, type)).results[0]


def bitcast_of_slice(op: BitCastOp) -> bool:
    """bitcast(extract_slice(x)) => extract_slice(bitcast(x)), if only the last dim changes"""
    piece = op.source.owner
    if not is_slice(piece):
        return False
    whole, part, result = piece.source.type, op.source.type, op.result.type
    assert isinstance(whole, TensorType)
    assert isinstance(part, TensorType)
    shapes = [t.get_shape() for t in (whole, part, result)]
    if list(op.source_dims) != list(op.result_dims) or shapes[1][:-1] != shapes[2][:-1]:
        return False
    last = shapes[1][-1]
    if last == DYNAMIC_INDEX or len(shapes[0]) != len(shapes[1]) or shapes[0][-1] != last:
        return False
    if any(t.encoding.name != "none" for t in (whole, part, result)):
        return False
    at = IndexBuilder(InsertPoint.before(op))
    known = [dim(piece.source, i, at) for i in range(len(shapes[0]))]
    dims = split(known)[1]
    cast_type = TensorType(result.element_type, [*shapes[0][:-1], shapes[2][-1]])
    cast = at.insert(BitCastOp(piece.source, dims, dims, cast_type)).results[0]
    new = tensor.ExtractSliceOp.create(
        operands=[cast, *piece.operands[1:]],
        properties={
            **piece.properties,
            "static_sizes": DenseArrayBase.from_list(
                i64, [*piece.static_sizes.get_values()[:-1], shapes[2][-1]]
            ),
        },
        result_types=[result],
    )
    Rewriter.replace_op(op, [], at.insert(new).results)
    return True


def available(values: Sequence[Size], before: Operation) -> bool:
    """
    Whether all values dominate `before`. Pure ops of the same block are hoisted above it if their
    operands allow that.
    """
    moved: list[Operation] = []

    def known(value: SSAValue) -> bool:
        owner = value.owner
        if isinstance(owner, Block):
            return _encloses(owner, before)
        if owner in moved:
            return True
        block = owner.parent
        if block is None or not _encloses(block, before):
            return False
        anchor = before
        while anchor.parent is not block:
            parent = anchor.parent_op()
            assert parent is not None
            anchor = parent
        if owner is anchor:
            return False
        if owner.is_before_in_block(anchor):
            return True
        if anchor is not before or owner.regions or not is_side_effect_free(owner):
            return False
        if not all(known(operand) for operand in owner.operands):
            return False
        moved.append(owner)
        return True

    if not all(isinstance(v, int) or known(v) for v in values):
        return False
    for op in moved:
        op.detach()
        assert before.parent is not None
        before.parent.insert_op_before(op, before)
    return True


def _encloses(block: Block, op: Operation) -> bool:
    current: Operation | None = op
    while current is not None:
        if current.parent is block:
            return True
        current = current.parent_op()
    return False
