"""
Expands f32 exp, log, tanh, erf and small powers into arithmetic.

libm has no vector form here and differs between machines; a polynomial has one on every
width and the same bits everywhere. What is not listed stays a call per lane.

| op | method | largest error seen, ULP |
|---|---|---|
| exp | 2^n times a degree 6 polynomial on [-ln2/2, ln2/2] (Cephes) | 1 |
| log | exponent and a degree 8 polynomial on [sqrt(1/2), sqrt(2)] (Cephes) | 1 |
| tanh | odd polynomial below 0.625 (Cephes), else through exp | 2 |
| erf | rational in x^2, clamped to [-4, 4] | 37 (4 above 1e-30) |
| rsqrt | 1 / sqrt | 1 |
| powf with exponent 2, 3; fpowi with 2, 3 | products | 1 |

    %y = math.exp %x : vector<16xf32>
  =>
    %t = %x * log2(e) + 1.5 * 2^23 ; %n = %t - 1.5 * 2^23 ; %r = %x - %n * ln2 ; p(%r) * 2^n

NaN gives NaN, the infinities and overflow give what libm gives. The table is checked by
`tests/transforms/codegen/common/test_expand_math.py` over samples of all exponents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float32Type,
    IntegerAttr,
    ModuleOp,
    VectorType,
    i1,
)
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.transforms.utils.formula import Formula

MAGIC = 12582912.0
"""1.5 * 2^23: adding it rounds a small float to an integer, held in the low bits."""


def exp(f: Formula, x: SSAValue) -> SSAValue:
    """exp(x)  =>  p(x - n ln2) * 2^n, n = round(x / ln2)"""
    x = f.clamp(x, -104.0, 89.0)
    shifted = f.add(f.mul(x, 1.4426950408889634), MAGIC)
    n = f.sub(shifted, MAGIC)
    r = f.sub(f.sub(x, f.mul(n, 0.693359375)), f.mul(n, -2.12194440e-4))
    p = f.horner(
        r,
        (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
         5.0000001201e-1),
    )  # fmt: skip
    p = f.add(f.add(f.mul(f.mul(p, r), r), r), 1.0)
    whole = f.int_op(arith.SubiOp, f.bits(shifted), f.integer(0x4B400000))
    half = f.int_op(arith.ShRSIOp, whole, f.integer(1))
    rest = f.int_op(arith.SubiOp, whole, half)
    return f.mul(f.mul(p, power_of_two(f, half)), power_of_two(f, rest))


def power_of_two(f: Formula, n: SSAValue) -> SSAValue:
    """2^n for -127 < n < 128"""
    biased = f.int_op(arith.AddiOp, n, f.integer(127))
    return f.from_bits(f.int_op(arith.ShLIOp, biased, f.integer(23)))


def tanh(f: Formula, x: SSAValue) -> SSAValue:
    """tanh(x)  =>  sign(x) t(|x|), t(y) = y + y^3 p(y^2) when small, else 1 - 2 / (exp(2y) + 1)"""
    size = f.absolute(x)
    z = f.mul(x, x)
    p = f.horner(
        z,
        (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
         -3.33332819422e-1),
    )  # fmt: skip
    small = f.add(f.mul(f.mul(p, z), size), size)
    grown = f.add(exp(f, f.mul(size, 2.0)), 1.0)
    large = f.sub(f.number(1.0), f.div(f.number(2.0), grown))
    return f.with_sign(f.select(f.less(f.number(0.625), size), large, small), x)


def erf(f: Formula, x: SSAValue) -> SSAValue:
    """erf(x)  =>  x p(x^2) / q(x^2) on [-4, 4]"""
    x = f.clamp(x, -4.0, 4.0)
    z = f.mul(x, x)
    p = f.horner(
        z,
        (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06,
         -5.69250639462346e-05, -7.34990630326855e-04, -2.95459980854025e-03,
         -1.60960333262415e-02),
    )  # fmt: skip
    q = f.horner(
        z,
        (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
         -7.37332916720468e-03, -1.42647390514189e-02),
    )  # fmt: skip
    return f.div(f.mul(x, p), q)


def log(f: Formula, x: SSAValue) -> SSAValue:
    """log(x)  =>  log(m) + e ln2 with x = m 2^e, sqrt(1/2) <= m < sqrt(2)"""
    tiny = f.less(x, 1.17549435e-38)
    scaled = f.select(tiny, f.mul(x, 8388608.0), x)
    bits = f.bits(scaled)
    exponent = f.int_op(arith.SubiOp, f.int_op(arith.ShRUIOp, bits, f.integer(23)), f.integer(126))
    mantissa = f.int_op(
        arith.OrIOp, f.int_op(arith.AndIOp, bits, f.integer(0x007FFFFF)), f.integer(0x3F000000)
    )
    m, e = f.from_bits(mantissa), f.to_float(exponent)
    e = f.select(tiny, f.sub(e, 23.0), e)
    below = f.less(m, 0.707106781186547524)
    e = f.select(below, f.sub(e, 1.0), e)
    m = f.sub(f.select(below, f.add(m, m), m), 1.0)
    z = f.mul(m, m)
    p = f.horner(
        m,
        (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
         -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
    )  # fmt: skip
    y = f.mul(f.mul(p, m), z)
    y = f.sub(f.add(y, f.mul(e, -2.12194440e-4)), f.mul(z, 0.5))
    y = f.add(f.add(m, y), f.mul(e, 0.693359375))
    infinity = f.number(float("inf"))
    y = f.select(f.less(x, infinity), y, x)
    zero = f.number(0.0)
    y = f.select(f.less(zero, x), y, f.div(f.number(-1.0), zero))
    return f.select(f.less(x, zero), f.number(float("nan")), _nan_kept(f, x, y))


def _nan_kept(f: Formula, x: SSAValue, y: SSAValue) -> SSAValue:
    """y, but NaN where x is: adding x times zero would spoil infinities, so compare."""
    op = arith.CmpfOp.create(
        operands=[x, x],
        result_types=[f.kind(i1)],
        properties={"predicate": IntegerAttr(14, 64), "fastmath": arith.FastMathFlagsAttr("none")},
    )
    Rewriter.insert_op(op, f.point)
    return f.select(op.results[0], x, y)


def rsqrt(f: Formula, x: SSAValue) -> SSAValue:
    """rsqrt(x)  =>  1 / sqrt(x)"""
    return f.div(f.number(1.0), f.sqrt(x))


FORMULAS: dict[str, Callable[[Formula, SSAValue], SSAValue]] = {
    "math.exp": exp,
    "math.log": log,
    "math.tanh": tanh,
    "math.erf": erf,
    "math.rsqrt": rsqrt,
}


def small_power(op: Operation) -> int | None:
    """The exponent of a power that is a constant 2 or 3, or None."""
    constant = op.operands[1].owner
    if not isinstance(constant, arith.ConstantOp):
        return None
    value = constant.value
    if isinstance(value, DenseIntOrFPElementsAttr):
        number = value.get_values()[0] if value.is_splat() else None
    else:
        number = value.value.data
    return int(number) if number in (2, 3) else None


def expand(op: Operation) -> SSAValue | None:
    """The arithmetic for one op, or None when it stays."""
    if op.name not in FORMULAS and op.name not in ("math.powf", "math.fpowi"):
        return None
    kind = op.results[0].type
    element = kind.element_type if isinstance(kind, VectorType) else kind
    if not isinstance(element, Float32Type):
        return None
    if op.name in FORMULAS:
        return FORMULAS[op.name](Formula(op), op.operands[0])
    power = small_power(op)
    if power is None:
        return None
    f, x = Formula(op), op.operands[0]
    square = f.mul(x, x)
    return square if power == 2 else f.mul(square, x)


@dataclass(frozen=True)
class ExpandMathPass(ModulePass):
    """Transcendental functions on f32 become polynomials."""

    name = "irees-expand-math"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            result = expand(inner)
            if result is not None:
                Rewriter.replace_op(inner, [], [result])
