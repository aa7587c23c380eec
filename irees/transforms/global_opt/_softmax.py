"""Softmax in structured ops, which the passes that decompose attention and the like share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue
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


def softmax(
    source: SSAValue,
    over: Sequence[int],
    sizes: Sequence[Size],
    out: SSAValue,
    b: TensorBuilder,
    *,
    fused: bool = False,
) -> SSAValue:
    """
    out = exp(x - max(x)) / sum(exp(x - max(x))), max and sum over some dims

    Where it is `fused`, the powers are computed twice instead of kept.
    """
    rank = len(sizes)
    kept = [d for d in range(rank) if d not in over]
    whole, rows = AffineMap.identity(rank), select_dims(rank, kept)
    row_sizes = [sizes[d] for d in kept]
    # f16 and bf16 would lose in the sum what they can hold.
    wide, target = accumulator_type(element_type(source)), element_type(out)
    # A NaN is no maximum, and makes its row NaN all the same: exp(NaN - max) is one.
    nothing, zero = (b.insert(constant(n, wide)).results[0] for n in (-float("nan"), 0.0))
    (largest,) = b.compute(
        [source],
        [b.fill(nothing, row_sizes)],
        [whole, rows],
        lambda s, v: [s.op(arith.MaxnumfOp, s.cast(v[0], wide), v[1])],
    )

    def power(s: ScalarBuilder, v: Sequence[SSAValue]) -> SSAValue:
        return s.op(math.ExpOp, s.op(arith.SubfOp, s.cast(v[0], wide), v[1]))

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
            lambda s, v: [s.cast(s.op(arith.DivfOp, power(s, v), v[2]), target)],
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
        lambda s, v: [s.cast(s.op(arith.DivfOp, v[0], v[1]), target)],
    )
    return result


def rescaling(
    old: SSAValue, new: SSAValue, s: ScalarBuilder, power: type[Operation] = math.ExpOp
) -> SSAValue:
    """exp(old - new), and 1 where both are the same infinity"""
    same = s.insert(arith.CmpfOp(old, new, "oeq")).results[0]
    factor = s.op(power, s.op(arith.SubfOp, old, new))
    return s.select(same, s.number(1, factor.type), factor)
