"""Softmax as structured ops, for passes that decompose softmax and attention."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from irees.transforms.utils.shapes import Size
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import (
    ScalarBuilder,
    TensorBuilder,
    accumulator_type,
    constant,
    select_dims,
)

LOWEST: dict[Attribute, float] = {f32: -(2 - 2.0**-23) * 2.0**127, f64: -sys.float_info.max}
"""Accumulator type => its lowest finite number."""


def softmax(
    source: SSAValue,
    over: Sequence[int],
    sizes: Sequence[Size],
    out: SSAValue,
    b: TensorBuilder,
    *,
    fused: bool = False,
    start: float = -float("inf"),
    reciprocal: bool = False,
) -> SSAValue:
    """
    out = exp(x - max(x)) / sum(exp(x - max(x))), max and sum over the dims `over`

    `fused` recomputes the exponentials instead of storing them. The maximum starts at `start`,
    -infinity or NaN; rows without a number give NaN with either. `reciprocal` divides once per row
    and multiplies by the inverse.
    """
    rank = len(sizes)
    kept = [d for d in range(rank) if d not in over]
    whole, rows = AffineMap.identity(rank), select_dims(rank, kept)
    row_sizes = [sizes[d] for d in kept]
    # Sums in f16 or bf16 would lose precision.
    wide, target = accumulator_type(element_type(source)), element_type(out)
    # maxnum ignores NaN, but the row becomes NaN nevertheless: exp(NaN - max) is NaN.
    nothing, zero = (b.insert(constant(n, wide)).results[0] for n in (start, 0.0))
    (largest,) = b.compute(
        [source],
        [b.fill(nothing, row_sizes)],
        [whole, rows],
        lambda s, v: [s.op(arith.MaxnumfOp, s.cast(v[0], wide), v[1])],
    )

    def power(s: ScalarBuilder, v: Sequence[SSAValue]) -> SSAValue:
        return s.op(math.ExpOp, s.op(arith.SubfOp, s.cast(v[0], wide), v[1]))

    def share(s: ScalarBuilder, part: SSAValue, total: SSAValue) -> SSAValue:
        if not reciprocal:
            return s.cast(s.op(arith.DivfOp, part, total), target)
        inverse = s.op(arith.DivfOp, s.number(1, wide), total)
        return s.cast(s.op(arith.MulfOp, part, inverse), target)

    if fused:
        (total,) = b.compute(
            [source, largest],
            [b.fill(zero, row_sizes)],
            [whole, rows, rows],
            lambda s, v: [s.op(arith.AddfOp, power(s, v), v[2])],
        )
        (result,) = b.compute(
            [source, largest, total],
            [out],
            [whole, rows, rows, whole],
            lambda s, v: [share(s, power(s, v), v[2])],
        )
        return result
    (powers,) = b.compute(
        [source, largest],
        [b.empty(wide, sizes)],
        [whole, rows, whole],
        lambda s, v: [power(s, v)],
    )
    (total,) = b.compute(
        [powers],
        [b.fill(zero, row_sizes)],
        [whole, rows],
        lambda s, v: [s.op(arith.AddfOp, v[0], v[1])],
    )
    (result,) = b.compute(
        [powers, total],
        [out],
        [whole, rows, whole],
        lambda s, v: [share(s, v[0], v[1])],
    )
    return result


def online_softmax(
    source: SSAValue, over: Sequence[int], sizes: Sequence[Size], out: SSAValue, b: TensorBuilder
) -> SSAValue:
    """
    out = exp(x - m) / s, with maximum and sum of a row computed in one pass

        m, s = max(m, x), s * exp(m - max(m, x)) + exp(x - max(m, x))
    """
    rank = len(sizes)
    kept = [d for d in range(rank) if d not in over]
    whole, rows = AffineMap.identity(rank), select_dims(rank, kept)
    row_sizes = [sizes[d] for d in kept]
    wide, target = accumulator_type(element_type(source)), element_type(out)

    def power(s: ScalarBuilder, x: SSAValue, largest: SSAValue) -> SSAValue:
        return s.op(math.ExpOp, s.op(arith.SubfOp, x, largest))

    def step(s: ScalarBuilder, v: Sequence[SSAValue]) -> list[SSAValue]:
        x = s.cast(v[0], wide)
        # maxnum ignores NaN, but the row becomes NaN nevertheless: exp(NaN - max) is NaN.
        largest = s.op(arith.MaxnumfOp, x, v[1])
        before = s.op(arith.MulfOp, v[2], power(s, v[1], largest))
        return [largest, s.op(arith.AddfOp, before, power(s, x, largest))]

    # Starting at -infinity, exp(m - max) would be NaN until the first finite element.
    starts = [b.filled(n, wide, row_sizes) for n in (LOWEST[wide], 0)]
    largest, total = b.compute([source], starts, [whole, rows, rows], step)
    (result,) = b.compute(
        [source, largest, total],
        [out],
        [whole, rows, rows, whole],
        lambda s, v: [s.cast(s.op(arith.DivfOp, power(s, s.cast(v[0], wide), v[1]), v[2]), target)],
    )
    return result


def rescaling(
    old: SSAValue, new: SSAValue, s: ScalarBuilder, power: type[Operation] = math.ExpOp
) -> SSAValue:
    """exp(old - new), or 1 if old == new (also for infinities)"""
    same = s.insert(arith.CmpfOp(old, new, "oeq")).results[0]
    factor = s.op(power, s.op(arith.SubfOp, old, new))
    return s.select(same, s.number(1, factor.type), factor)
