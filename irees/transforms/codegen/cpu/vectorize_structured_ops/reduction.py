"""
Vectorizes a reduction along its reduction loop: several vector accumulators, combined at the end.
Part of `irees-vectorize-structured-ops`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith, vector
from xdsl.ir import SSAValue

from irees.targets.cpu import CPU
from irees.transforms.utils.combiners import (
    COMBINERS,
    combine,
    combined,
    further_accumulators,
)
from irees.transforms.utils.lanes import Kind, Lane, last_lanes, materialize
from irees.transforms.utils.loops import for_loop, if_values
from irees.transforms.utils.shapes import IndexBuilder, Size

if TYPE_CHECKING:
    from irees.transforms.codegen.cpu.vectorize_structured_ops.nest import Nest


def reduce_lanes(
    nest: Nest, accs: list[SSAValue], places: Sequence[dict[int, Size]], at: IndexBuilder
) -> list[SSAValue]:
    """
    Reduces the results at `places` along the vectorized loop, with vector accumulators and a scalar
    epilogue. `accs` holds the initial values, all outputs of the first place, then of the second,
    and so on. Results have the same order.
    """
    found = nest.combiners()
    assert found is not None
    assert nest.axis is not None
    combiners = found * len(places)
    lanes, width = nest.lanes, len(accs)
    many, size = max(CPU.accumulators // len(places), CPU.least_accumulators), nest.sizes[nest.axis]
    if isinstance(size, int):
        many = min(many, size // lanes)
    neutral = further_accumulators(combiners, accs, lanes, at)
    carried = [*(neutral * many), *accs]
    carried = _reduce_rows(nest, nest.reduction[:-1], carried, places, at)
    vectors, scalars = carried[:-width], carried[-width:]
    results: list[SSAValue] = []
    for i, combiner in enumerate(combiners):
        total = combined(combiner, vectors[i::width], at)
        element = combiner.results[0].type
        kind = vector.CombiningKindAttr(vector.CombiningKindFlag(COMBINERS[combiner.name]))
        folded = at.insert(
            vector.ReductionOp.create(
                operands=[total], result_types=[element], properties={"kind": kind}
            )
        ).results[0]
        results.append(at.insert(combine(combiner, folded, scalars[i])).results[0])
    return results


Points = Callable[[Sequence[SSAValue], Size, IndexBuilder, int], list[SSAValue]]
"""Adds the elements from a place on, in so many lanes, to the accumulators."""


def _points(nest: Nest, places: Sequence[dict[int, Size]]) -> Points:
    """Returns what adds elements along the vectorized loop to the results at `places`."""
    axis, outputs = nest.axis, len(nest.op.outputs)
    assert axis is not None

    def points(accs: Sequence[SSAValue], k: Size, b: IndexBuilder, lanes: int) -> list[SSAValue]:
        out: list[SSAValue] = []
        kind = Kind.VECTOR if lanes > 1 else Kind.UNIFORM
        for number, place in enumerate(places):
            mine = [Lane(a, kind) for a in accs[number * outputs : (number + 1) * outputs]]
            for result in nest.apply(mine, {**place, axis: k}, b, lanes):
                out.append(materialize(result, lanes, b.insert) if lanes > 1 else result.value)
        return out

    return points


def _reduce_rows(
    nest: Nest,
    loops: Sequence[int],
    carried: list[SSAValue],
    places: Sequence[dict[int, Size]],
    at: IndexBuilder,
) -> list[SSAValue]:
    if loops:
        body, iv, inner = for_loop(at, 0, nest.sizes[loops[0]], 1, carried)
        moved = [{**place, loops[0]: iv} for place in places]
        return body(_reduce_rows(nest, loops[1:], body.arguments, moved, inner))
    assert nest.axis is not None
    lanes, size, points = nest.lanes, nest.sizes[nest.axis], _points(nest, places)
    width = len(nest.op.outputs) * len(places)
    vectors, scalars = carried[:-width], carried[-width:]

    step = len(vectors) // width * lanes
    many = at.mul(at.floordiv(size, step), step)
    if not (isinstance(many, int) and many == 0):
        body, iv, inner = for_loop(at, 0, many, step, vectors)
        out: list[SSAValue] = []
        for k in range(step // lanes):
            mine = body.arguments[k * width : (k + 1) * width]
            out += points(mine, inner.add(iv, k * lanes), inner, lanes)
        vectors = body(out)
    main = at.mul(at.floordiv(size, lanes), lanes)
    if not (isinstance(main, int) and main == many):
        body, iv, inner = for_loop(at, many, main, lanes, vectors[:width])
        vectors = [*body(points(body.arguments, iv, inner, lanes)), *vectors[width:]]
    if isinstance(main, int) and main == size:
        return [*vectors, *scalars]
    changed = _epilogue(nest, points, [*vectors[:width], *scalars], main, at)
    return [*changed[:width], *vectors[width:], *changed[width:]]


def _epilogue(
    nest: Nest, points: Points, carried: Sequence[SSAValue], main: Size, at: IndexBuilder
) -> list[SSAValue]:
    """
    Adds the elements from `main` on to the vectors or to the scalars, the halves of `carried`: in a
    vector that ends at the last element if there are several, else one by one.
    """
    assert nest.axis is not None
    lanes, size, half = nest.lanes, nest.sizes[nest.axis], len(carried) // 2
    vectors, scalars = carried[:half], carried[half:]

    def ones(b: IndexBuilder) -> list[SSAValue]:
        body, iv, inner = for_loop(b, main, size, 1, scalars)
        return body(points(body.arguments, iv, inner, 1))

    static = isinstance(main, int) and isinstance(size, int)
    repeats = nest.before is None or nest.before.may_repeat()
    if not repeats or (static and size - main == 1):
        return [*vectors, *ones(at)]
    if static:
        found = points(vectors, size - lanes, at, lanes)
        return [*_chosen(last_lanes(lanes, size - main, at), found, vectors, at), *scalars]
    close, several, few = if_values(at, at.at_least(size, lanes), [v.type for v in carried])
    body, _, inner = for_loop(several, main, size, lanes, vectors)
    found = points(body.arguments, inner.sub(size, lanes), inner, lanes)
    mask = last_lanes(lanes, inner.sub(size, main), inner)
    last = body(_chosen(mask, found, body.arguments, inner))
    return close([*last, *scalars], [*vectors, *ones(few)])


def _chosen(
    mask: SSAValue, values: Sequence[SSAValue], before: Sequence[SSAValue], at: IndexBuilder
) -> list[SSAValue]:
    """The lanes of a mask of some accumulators, and the others as they were before."""
    pairs = zip(values, before, strict=True)
    return [at.insert(arith.SelectOp(mask, *pair)).results[0] for pair in pairs]
