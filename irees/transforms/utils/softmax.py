"""Softmax as structured ops, for passes that decompose softmax and attention."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Form:
    """How a softmax is computed."""

    fused: bool = False
    """Whether to recompute the exponentials instead of storing them."""
    start: float = -float("inf")
    """Initial maximum, -infinity or NaN. With either, a row without numbers gives NaN."""
    reciprocal: bool = False
    """Whether to divide once per row, and multiply the row by the reciprocal of its sum."""
    zero_masked_rows: bool = False
    """Whether a row of -infinity gives 0 instead of NaN."""


def softmax(
    source: SSAValue, over: Sequence[int], sizes: Sequence[Size], out: SSAValue, b: TensorBuilder,
    form: Form,
) -> SSAValue:  # fmt: skip
    """out = exp(x - max(x)) / sum(exp(x - max(x))), max and sum over the dims `over`"""
    rank = len(sizes)
    kept = [d for d in range(rank) if d not in over]
    whole, rows = AffineMap.identity(rank), select_dims(rank, kept)
    row_sizes = [sizes[d] for d in kept]
    # Sums in f16 or bf16 would lose precision.
    wide, target = accumulator_type(element_type(source)), element_type(out)
    # maxnum ignores NaN, but the row becomes NaN nevertheless: exp(NaN - max) is NaN.
    nothing, zero = (b.insert(constant(n, wide)).results[0] for n in (form.start, 0.0))

    def power(s: ScalarBuilder, v: Sequence[SSAValue]) -> SSAValue:
        return s.op(math.ExpOp, s.op(arith.SubfOp, s.cast(v[0], wide), v[1]))

    def sum_of(inputs: list[SSAValue], part: Callable[..., SSAValue]) -> SSAValue:
        maps = [whole, *[rows] * len(inputs)]
        (total,) = b.compute(
            inputs,
            [b.fill(zero, row_sizes)],
            maps,
            lambda s, v: [s.op(arith.AddfOp, part(s, v), v[-1])],
        )
        return replaced(total, 0, 1, row_sizes, b) if form.zero_masked_rows else total

    def shares(inputs: list[SSAValue], part: Callable[..., SSAValue]) -> SSAValue:
        maps = [whole, *[rows] * (len(inputs) - 1), whole]
        return b.compute(
            inputs, [out], maps, lambda s, v: [_share(s, part(s, v), v[-2], target, form)]
        )[0]

    (largest,) = b.compute(
        [source],
        [b.fill(nothing, row_sizes)],
        [whole, rows],
        lambda s, v: [s.op(arith.MaxnumfOp, s.cast(v[0], wide), v[1])],
    )
    if form.zero_masked_rows:
        # exp(-infinity - 0) is 0, but exp(-infinity - -infinity) is NaN.
        largest = replaced(largest, -float("inf"), 0, row_sizes, b)
    if form.fused:
        total = sum_of([source, largest], power)
        return shares([source, largest, total], power)
    (powers,) = b.compute(
        [source, largest],
        [b.empty(wide, sizes)],
        [whole, rows, whole],
        lambda s, v: [power(s, v)],
    )
    total = sum_of([powers], lambda s, v: v[0])
    return shares([powers, total], lambda s, v: v[0])


def _share(
    s: ScalarBuilder, part: SSAValue, total: SSAValue, target: Attribute, form: Form
) -> SSAValue:
    """part / total"""
    if not form.reciprocal:
        return s.cast(s.op(arith.DivfOp, part, total), target)
    inverse = s.op(arith.DivfOp, s.number(1, part.type), total)
    return s.cast(s.op(arith.MulfOp, part, inverse), target)


def replaced(
    x: SSAValue, old: float, new: float, sizes: Sequence[Size], b: TensorBuilder
) -> SSAValue:
    """x == old ? new : x"""

    def body(s: ScalarBuilder, v: Sequence[SSAValue]) -> list[SSAValue]:
        test = s.op(arith.CmpfOp, v[0], s.number(old, v[0].type), arg="oeq")
        return [s.select(test, s.number(new, v[0].type), v[0])]

    kind = element_type(x)
    return b.compute([x], [b.empty(kind, sizes)], [AffineMap.identity(len(sizes))] * 2, body)[0]


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
