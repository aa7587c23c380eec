"""
A reduction along the loop that is vectorized: several accumulators at once, combined at the end.
Part of `irees-vectorize-structured-ops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import vector
from xdsl.ir import SSAValue

from irees.transforms.utils.combiners import (
    COMBINERS,
    IDEMPOTENT,
    combine,
    neutral_element,
)
from irees.transforms.utils.lanes import Kind, Lane, materialize, vector_of
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size

if TYPE_CHECKING:
    from irees.transforms.codegen.cpu._vector_nest import Nest

ACCUMULATORS = 4


def reduce_lanes(
    nest: Nest, accs: list[SSAValue], ivs: dict[int, Size], at: IndexBuilder
) -> list[SSAValue]:
    """Reduces along the vectorized loop: vector accumulators, then a scalar rest."""
    combiners = nest.combiners()
    assert combiners is not None
    assert nest.axis is not None
    lanes = nest.lanes
    # What may be repeated starts from the value of the output, which may be known not to be NaN.
    starts = [
        value if c.name in IDEMPOTENT else at.insert(neutral_element(c)).results[0]
        for c, value in zip(combiners, accs, strict=True)
    ]
    neutral = [
        at.insert(vector.BroadcastOp(s, vector_of(s.type, lanes))).results[0] for s in starts
    ]
    outer = nest.reduction[:-1]
    carried = [*(neutral * ACCUMULATORS), *accs]
    carried = _reduce_rows(nest, outer, carried, ivs, at)
    vectors, scalars = carried[: -len(accs)], carried[-len(accs) :]
    width = len(accs)
    results: list[SSAValue] = []
    for i, combiner in enumerate(combiners):
        total = vectors[i]
        for k in range(1, ACCUMULATORS):
            total = at.insert(combine(combiner, total, vectors[k * width + i])).results[0]
        element = combiner.results[0].type
        kind = vector.CombiningKindAttr(vector.CombiningKindFlag(COMBINERS[combiner.name]))
        folded = at.insert(
            vector.ReductionOp.create(
                operands=[total], result_types=[element], properties={"kind": kind}
            )
        ).results[0]
        results.append(at.insert(combine(combiner, folded, scalars[i])).results[0])
    return results


def _reduce_rows(
    nest: Nest,
    loops: Sequence[int],
    carried: list[SSAValue],
    ivs: dict[int, Size],
    at: IndexBuilder,
) -> list[SSAValue]:
    if loops:
        body, iv, inner = for_loop(at, 0, nest.sizes[loops[0]], 1, carried)
        return body(_reduce_rows(nest, loops[1:], body.arguments, {**ivs, loops[0]: iv}, inner))
    assert nest.axis is not None
    axis, lanes = nest.axis, nest.lanes
    size = nest.sizes[axis]
    width = len(nest.op.outputs)
    vectors, scalars = carried[:-width], carried[-width:]
    step = lanes * ACCUMULATORS
    many = at.mul(at.floordiv(size, step), step)
    if not (isinstance(many, int) and many == 0):
        body, iv, inner = for_loop(at, 0, many, step, vectors)
        out: list[SSAValue] = []
        for k in range(ACCUMULATORS):
            place = inner.add(iv, k * lanes)
            mine = [Lane(a, Kind.VECTOR) for a in body.arguments[k * width : (k + 1) * width]]
            out += [
                materialize(r, lanes, inner.insert)
                for r in nest.apply(mine, {**ivs, axis: place}, inner, lanes)
            ]
        vectors = body(out)
    main = at.mul(at.floordiv(size, lanes), lanes)
    if not (isinstance(main, int) and main == many):
        body, iv, inner = for_loop(at, many, main, lanes, vectors[:width])
        mine = [Lane(a, Kind.VECTOR) for a in body.arguments]
        out = [
            materialize(r, lanes, inner.insert)
            for r in nest.apply(mine, {**ivs, axis: iv}, inner, lanes)
        ]
        vectors = [*body(out), *vectors[width:]]
    if not (isinstance(main, int) and main == size):
        body, iv, inner = for_loop(at, main, size, 1, scalars)
        mine = [Lane(a, Kind.UNIFORM) for a in body.arguments]
        scalars = body([r.value for r in nest.apply(mine, {**ivs, axis: iv}, inner, 1)])
    return [*vectors, *scalars]
