"""
Joins consecutive loops of a structured op: the op iterates over the dims of collapsed operands, and
its results are expanded. MLIR: `collapseOpIterationDims`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, TensorType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.paddings import is_fill
from irees.dialects.storage import is_undefined
from irees.transforms.utils.reshapes import Groups, Refused, check_loops, collapse, empty, expand
from irees.transforms.utils.shapes import IndexBuilder, Size, dim, reassociation
from irees.transforms.utils.structured import generic, iterators, maps

Dims = list[list[int]]
"""For each dim of a collapsed operand, its dims before."""


def join_loops(op: linalg.GenericOp, joined: Groups, sizes: Mapping[int, Size]) -> None:
    """
    op  =>  expand(op'), with one loop of op' for each group of consecutive loops of op.

    `joined` has every loop; `sizes` has the trip counts of loops in groups of several. Raises
    Refused before it changes anything.
    """
    check(op, joined)
    at = IndexBuilder(InsertPoint.before(op))
    old_maps, kinds, inputs = maps(op), iterators(op), len(op.inputs)
    plans = [joined_dims_of(m, joined) for m in old_maps]
    operands = [
        collapsed(value, axes, at) for value, (axes, _) in zip(op.operands, plans, strict=True)
    ]
    for index in [o for o in op.body.walk() if isinstance(o, linalg.IndexOp)]:
        (number,) = [n for n, group in enumerate(joined) if index.dim.value.data in group]
        index.dim = IntegerAttr(number, i64)
    new_maps = [
        AffineMap(len(joined), 0, tuple(AffineExpr.dimension(d) for d in own)) for _, own in plans
    ]
    new_kinds = [kinds[group[0]] for group in joined]
    region = op.detach_region(op.body)
    new = generic(operands[:inputs], operands[inputs:], new_maps, new_kinds, region)
    new.attributes.update(op.attributes)
    new.location = op.location
    at.insert(new)
    results = [
        expanded(result, old, plan[0], old_map, sizes, at)
        for result, old, plan, old_map in zip(
            new.results, op.outputs, plans[inputs:], old_maps[inputs:], strict=True
        )
    ]
    Rewriter.replace_op(op, [], results)


def check(op: linalg.GenericOp, joined: Groups) -> None:
    """Raises Refused if loops cannot be joined for any operands."""
    kinds = iterators(op)
    if any(len({kinds[d] for d in group}) > 1 for group in joined):
        raise Refused("adjacent loops differ in kind: one is a reduction")
    check_loops(op, {d for group in joined if len(group) > 1 for d in group})


def joined_dims_of(map_: AffineMap, joined: Groups) -> tuple[Dims, list[int]]:
    """
    Returns the dims of an operand that become one, and the new loop of each. Raises Refused if
    the operand has only some of the loops of a group, or if they are not adjacent.
    """
    loops = [e.position for e in map_.results if isinstance(e, AffineDimExpr)]
    axes: Dims = []
    own: list[int] = []
    done = 0
    while done < len(loops):
        number, group = next((n, g) for n, g in enumerate(joined) if loops[done] in g)
        if loops[done : done + len(group)] != list(group):
            raise Refused("an operand lacks some of the loops or has them in another order")
        axes.append(list(range(done, done + len(group))))
        own.append(number)
        done += len(group)
    return axes, own


def collapsed(value: SSAValue, axes: Dims, at: IndexBuilder) -> SSAValue:
    """collapse(value); of a fill, a fill of the collapsed shape"""
    source = value.owner
    if not any(len(group) > 1 for group in axes):
        return value
    if isinstance(source, tensor.ExpandShapeOp) and reassociation(source) == axes:
        return source.src
    assert isinstance(value.type, TensorType)
    shape = value.type.get_shape()
    parts = [[shape[a] for a in group] for group in axes]
    kind = TensorType(
        value.type.element_type, [DYNAMIC_INDEX if DYNAMIC_INDEX in p else prod(p) for p in parts]
    )
    if is_undefined(source) or is_fill(source):
        known = [dim(value, a, at) for a in range(len(shape))]
        init = empty([at.product([known[a] for a in group]) for group in axes], kind, at)
        return init if is_undefined(source) else filled(source, init, at)
    return collapse(value, axes, kind, at)


def filled(source, init: SSAValue, at: IndexBuilder) -> SSAValue:
    """Returns `init` filled with the constant of another fill."""
    assert isinstance(source, linalg.GenericOp)
    assert isinstance(init.type, TensorType)
    rank = init.type.get_num_dims()
    scalar = AffineMap(rank, 0, ())
    indexing = [*[scalar] * len(source.inputs), AffineMap.identity(rank)]
    op = generic(source.inputs, [init], indexing, ["parallel"] * rank, source.body.clone())
    return at.insert(op).results[0]


def expanded(
    result: SSAValue, old: SSAValue, axes: Dims, map_: AffineMap, sizes: Mapping[int, Size],
    at: IndexBuilder,
) -> SSAValue:  # fmt: skip
    """expand(result), to the shape of the init before the join"""
    if not any(len(group) > 1 for group in axes):
        return result
    assert isinstance(old.type, TensorType)
    known: list[Size] = []
    for number, group in enumerate(axes):
        for axis in group:
            size: Size = old.type.get_shape()[axis]
            loop = map_.results[axis]
            assert isinstance(loop, AffineDimExpr)
            if size == DYNAMIC_INDEX:
                size = sizes[loop.position] if len(group) > 1 else dim(result, number, at)
            known.append(size)
    return expand(result, axes, known, old.type, at)
