"""Exact remainders of floats."""

from __future__ import annotations

from xdsl.dialects.builtin import Float32Type, Float64Type, VectorType
from xdsl.ir import Operation, SSAValue

from irees.transforms.codegen.common.expand_math.ranges import where_all
from irees.transforms.utils.formula import Formula

MOST_QUOTIENT, MOST_QUOTIENT_64 = 2.0**23, 2.0**52
"""Exclusive limits of quotients that have all whole numbers near them, in f32 and f64."""


def remainder(op: Operation) -> SSAValue | None:
    """
    remf(x, y : vectors)  =>  r = fma(-trunc(|x| / |y|), |y|, |x|), plus |y| if below 0, sign of x

    The quotient is rounded, so its whole part is the right one or, where the true quotient is just
    below a whole number, one more. Either way r is a multiple of the last place of y and at most
    |y|, so it is a float: the fused multiply-add is exact, and so is adding |y|. Division by zero,
    infinite x, NaN and large quotients are left to `fmod`, which is a loop over the bits of the
    quotient.
    """
    x, y = op.operands
    if not isinstance(x.type, VectorType):
        return None
    if not isinstance(x.type.element_type, Float32Type | Float64Type):
        return None
    f = Formula(op)
    size, divisor = f.absolute(x), f.absolute(y)
    quotient = f.div(size, divisor)
    most = MOST_QUOTIENT_64 if f.double else MOST_QUOTIENT

    def formula(g: Formula) -> SSAValue:
        r = g.fma(g.trunc(quotient), g.minus(y), size)
        r = g.select(g.less(r, 0.0), g.add(r, divisor), r)
        # The product of 0 and an infinite y is NaN.
        return g.with_sign(g.select(g.less(size, divisor), size, r), x)

    return where_all(op, f.less(quotient, most), formula)
