"""
Expands f32 exp, log, expm1, log1p, tanh, erf, small powers and the like into arithmetic.

libm calls do not vectorize here, and their results differ between machines. A polynomial vectorizes
at every width and, unless contracted to FMAs, has the same bits everywhere. Ops that are not listed
stay one call per lane.

| op | method | largest error seen, ULP |
|---|---|---|
| exp | 2^n times a degree 6 polynomial on [-ln2/2, ln2/2] (minimax, 3e-9) | 1 |
| exp, with table | 2^n, by 16 powers, times a degree 3 polynomial (minimax, 2e-9) | 1 |
| exp2 | 2^n times a polynomial, as exp | 1 |
| expm1 | 2^n q + (2^n - 1) with a degree 6 polynomial q (Cephes) | 2 |
| log | exponent and a degree 8 polynomial on [sqrt(1/2), sqrt(2)] (Cephes) | 1 |
| log2, log10 | the same, scaled; the logarithms of powers of two are exact in log2 | 2 |
| log1p | log(1 + x), and the rounding error of 1 + x over it (Kahan) | 2 |
| tanh | odd polynomial below 0.625 (Cephes), else through exp | 2 |
| erf | rational in x^2, clamped to [-4, 4] | 37 (4 above 1e-30) |
| rsqrt | 1 / sqrt | 1 |
| powf with exponent 2, 3; fpowi with 2, 3 | products | 1 |
| fptosi of vectors, to 32 bits and less; fptoui to 16 | the low bits of x + 1.5 * 2^23 | 0 |
| maxnumf, minnumf with a second operand that is not NaN | compare and select | 0 |

    %y = math.exp %x : vector<16xf32>
  =>
    %t = %x * log2(e) + 1.5 * 2^23 ; %n = %t - 1.5 * 2^23 ; %r = %x - %n * ln2 ; p(%r) * 2^n

The table form of exp is for CPU targets that look up lanes of a vector and scale by a power of two
in one instruction each (`looks_up_lanes` of `#irees.target`: AVX-512). There %n is a multiple of
1/16, and a register holds sixteen powers of two (after Tang, "Table-driven implementation of the
exponential function", 1989). It takes 7 FMA-unit operations instead of 9, and no clamping.

    %m = fma(%x, log2(e), 1.5 * 2^19) ; %n = %m - 1.5 * 2^19 ; %r = %n - %x * log2(e) in two fma
    irees.scalef %t * 2^-%r, %n with %t = irees.lookup %powers[bits of %m]

Scaling overflows and underflows correctly for any %n if the polynomial is positive: an `andi`
clears the top exponent bit of %r, so |%r| < 2 always. `fp=strict` does not use the table, since its
bits must not depend on the target.

On GPUs, the ops in `native_math` of the target are kept: CUDA computes them with the special
function unit, `expf` in 8 instructions instead of 18, with at most 2 ULP (CUDA C++ Programming
Guide, "Mathematical Functions"). `fp=strict` keeps the polynomials, whose bits match a CPU.

NaNs, infinities and overflow are handled as in libm. The table is checked over samples of all
exponents by `tests/transforms/codegen/common/test_expand_math.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan

from xdsl.context import Context
from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float32Type,
    IntegerType,
    ModuleOp,
    VectorType,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.irees_target import is_strict, target_of
from irees.transforms.utils.formula import Formula

MAGIC = 12582912.0
"""1.5 * 2^23: adding and subtracting it rounds a small float to a whole number."""

MAGIC_BITS = 0x4B400000
"""The bits of MAGIC, which count whole numbers near to it."""

MOST_NARROW = 16
"""The largest width of integers that fit into the mantissa beside MAGIC."""

BELOW_2_31 = 2147483520.0
"""The largest f32 below 2^31."""

SIXTEENTHS = 786432.0
"""1.5 * 2^19: adding and subtracting it rounds a small float to a multiple of 1/16."""

LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
"""(log(1 + m) - m + m^2 / 2) / m^3 (Cephes), highest power first."""

EXP_MINUS_1 = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1,
)  # fmt: skip
"""(exp(r) - 1 - r) / r^2 on [-ln2/2, ln2/2] (Cephes), highest power first."""

POWERS = tuple(2.0 ** (i / 16) for i in range(16))


def exp_by_table(f: Formula, x: SSAValue) -> SSAValue:
    """
    exp(x)  =>  2^(n mod 1) 2^(x log2(e) - n) * 2^floor(n), n = round(16 x log2(e)) / 16

    A negation of x is folded into the constants.
    """
    sign = 1.0
    if isinstance(x.owner, arith.NegfOp):
        x, sign = x.owner.operand, -1.0
    m = f.fma(x, sign * 1.4426950216293335, f.number(SIXTEENTHS))
    n = f.sub(m, SIXTEENTHS)
    # n - x log2(e) in this form, because C has no fma that negates.
    rest = f.fma(x, sign * -1.4426950216293335, n)
    rest = f.fma(x, sign * -1.925963033500011e-08, rest)
    rest = f.from_bits(f.int_op(arith.AndIOp, f.bits(rest), f.integer(-0x40000001)))
    p = f.fma(rest, -5.550595000386238e-2, f.number(0.24023428559303284))
    p = f.mul(f.fma(p, rest, f.number(-0.6931471824645996)), rest)
    power = f.lookup(POWERS, f.bits(m))
    return f.scalef(f.fma(power, p, power), n)


def exp(f: Formula, x: SSAValue) -> SSAValue:
    """exp(x)  =>  p(x - n ln2) * 2^n, n = round(x / ln2)"""
    if f.lookups:
        return exp_by_table(f, x)
    x = f.clamp(x, -104.0, 89.0)
    n = f.sub(f.add(f.mul(x, 1.4426950408889634), MAGIC), MAGIC)
    r = f.sub(f.sub(x, f.mul(n, 0.693359375)), f.mul(n, -2.12194440e-4))
    p = f.horner(
        r,
        (1.381453825e-3, 8.368745446e-3, 4.166838899e-2, 1.666652113e-1, 4.999999404e-1, 1.0, 1.0),
    )
    return f.ldexp(p, n)


def exp2(f: Formula, x: SSAValue) -> SSAValue:
    """exp2(x)  =>  p((x - n) ln2) * 2^n, n = round(x)"""
    x = f.clamp(x, -151.0, 129.0)
    n = f.sub(f.add(x, MAGIC), MAGIC)
    r = f.mul(f.sub(x, n), 0.6931471805599453)
    return f.ldexp(f.horner(r, (*EXP_MINUS_1, 1.0, 1.0)), n)


def expm1(f: Formula, x: SSAValue) -> SSAValue:
    """
    expm1(x)  =>  2 (t q(r) + (t - 1/2)), t = 2^(n - 1), with n and r of exp

    Half of 2^n, because 2^128 is infinite although the result need not be.
    """
    bounded = f.clamp(x, -104.0, 89.0)
    n = f.sub(f.add(f.mul(bounded, 1.4426950408889634), MAGIC), MAGIC)
    r = f.sub(f.sub(bounded, f.mul(n, 0.693359375)), f.mul(n, -2.12194440e-4))
    q = f.add(f.mul(f.horner(r, EXP_MINUS_1), f.mul(r, r)), r)
    t = f.ldexp(f.number(1.0), f.sub(n, 1.0))
    y = f.mul(f.add(f.mul(t, q), f.sub(t, 0.5)), 2.0)
    # Half of a subnormal number is rounded, and a zero has the sign of x.
    return f.select(f.less(f.absolute(x), 1e-8), x, y)


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
    """log(x)  =>  log(1 + m) + e ln2 with x = (1 + m) 2^e, sqrt(1/2) <= 1 + m < sqrt(2)"""
    m, e = _mantissa(f, x)
    z = f.mul(m, m)
    y = f.mul(f.mul(f.horner(m, LOG), m), z)
    y = f.sub(f.add(y, f.mul(e, -2.12194440e-4)), f.mul(z, 0.5))
    y = f.add(f.add(m, y), f.mul(e, 0.693359375))
    return _ends_of_log(f, x, y)


def log2(f: Formula, x: SSAValue) -> SSAValue:
    """log2(x)  =>  log(1 + m) log2(e) + e"""
    m, e = _mantissa(f, x)
    # log2(e) - 1 apart, so that the product does not round what is near to m.
    y = _log_of_mantissa(f, m)
    return _ends_of_log(f, x, f.add(f.add(f.mul(y, 0.44269504088896340), y), e))


def log10(f: Formula, x: SSAValue) -> SSAValue:
    """log10(x)  =>  log(1 + m) log10(e) + e log10(2)"""
    m, e = _mantissa(f, x)
    y = f.mul(_log_of_mantissa(f, m), 0.43429448190325176)
    y = f.add(f.add(y, f.mul(e, 4.605038981195214e-06)), f.mul(e, 0.301025390625))
    return _ends_of_log(f, x, y)


def log1p(f: Formula, x: SSAValue) -> SSAValue:
    """log1p(x)  =>  log(u) + (x - (u - 1)) / u, u = 1 + x"""
    one, zero = f.number(1.0), f.number(0.0)
    u = f.add(x, one)
    lost = f.div(f.sub(x, f.sub(u, one)), u)
    # At -1 and at infinity the quotient is not a number.
    y = log(f, u)
    inner = f.select(f.less(u, float("inf")), f.add(y, lost), y)
    y = f.select(f.less(zero, u), inner, y)
    # The sign of a zero; log1p(x) has the sign of x.
    return f.with_sign(f.absolute(y), x)


def _mantissa(f: Formula, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns m and e with x = (1 + m) 2^e and sqrt(1/2) <= 1 + m < sqrt(2), for x > 0."""
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
    return f.sub(f.select(below, f.add(m, m), m), 1.0), e


def _log_of_mantissa(f: Formula, m: SSAValue) -> SSAValue:
    """log(1 + m)  =>  m - m^2 / 2 + m^3 p(m)"""
    z = f.mul(m, m)
    return f.add(m, f.sub(f.mul(f.mul(f.horner(m, LOG), m), z), f.mul(z, 0.5)))


def _ends_of_log(f: Formula, x: SSAValue, y: SSAValue) -> SSAValue:
    """Returns y, the logarithm of a positive x, or that of another x."""
    y = f.select(f.less(x, f.number(float("inf"))), y, x)
    zero = f.number(0.0)
    y = f.select(f.less(zero, x), y, f.div(f.number(-1.0), zero))
    return f.select(f.less(x, zero), f.number(float("nan")), _nan_kept(f, x, y))


def _nan_kept(f: Formula, x: SSAValue, y: SSAValue) -> SSAValue:
    """Returns y, or NaN if x is NaN. Adding x * 0 instead would turn infinities into NaN."""
    return f.select(f.is_nan(x), x, y)


def rsqrt(f: Formula, x: SSAValue) -> SSAValue:
    """rsqrt(x)  =>  1 / sqrt(x)"""
    return f.div(f.number(1.0), f.sqrt(x))


def _is_number_in_loop(value: SSAValue, body: Block, assumed: frozenset[SSAValue]) -> bool:
    """Whether the argument of a block is a value carried by a loop that is never NaN."""
    loop = body.parent_op()
    if not isinstance(loop, scf.ForOp) or value is body.args[0]:
        return False
    position = body.args.index(value) - 1
    if not is_number(loop.iter_args[position], assumed):
        return False
    return is_number(body.last_op.operands[position], assumed | {value})


def is_number(value: SSAValue, assumed: frozenset[SSAValue] = frozenset()) -> bool:
    """Whether a float is provably not NaN; `assumed` holds the induction hypotheses of loops."""
    if value in assumed:
        return True
    owner = value.owner
    if isinstance(owner, Block):
        return _is_number_in_loop(value, owner, assumed)
    if isinstance(owner, scf.ForOp):
        return is_number(owner.body.block.args[1 + owner.results.index(value)], assumed)
    if isinstance(owner, arith.ConstantOp):
        number = owner.value
        values = (
            number.get_values()
            if isinstance(number, DenseIntOrFPElementsAttr)
            else [number.value.data]
        )
        return not any(isnan(v) for v in values)
    if isinstance(owner, vector.BroadcastOp):
        return is_number(owner.operands[0], assumed)
    if isinstance(owner, arith.MaxnumfOp | arith.MinnumfOp):
        return any(is_number(o, assumed) for o in owner.operands)
    if isinstance(owner, arith.SelectOp):
        # The operands of a true ordered comparison are not NaN.
        condition, chosen, other = owner.operands
        compare = condition.owner
        ordered = isinstance(compare, arith.CmpfOp) and 1 <= compare.predicate.value.data <= 6
        return ordered and chosen in compare.operands and is_number(other, assumed)
    return False


def pick(op: Operation) -> SSAValue | None:
    """maxnumf(x, y)  =>  x > y ? x : y if y is not NaN; minnumf likewise"""
    x, y = op.operands
    if not is_number(y):
        return None
    f = Formula(op)
    return f.select(f.less(y, x) if isinstance(op, arith.MaxnumfOp) else f.less(x, y), x, y)


def to_int(op: Operation) -> SSAValue | None:
    """
    fptosi(x : vector of f32), fptoui  =>  trunc(clamp(x)) as an integer

    What is out of range becomes the nearest integer, NaN becomes 0. Left alone are scalars, and
    unsigned integers of 32 bits and integers of 64.
    """
    (x,), kind = op.operands, op.results[0].type
    if not isinstance(kind, VectorType) or not isinstance(kind.element_type, IntegerType):
        return None
    assert isinstance(x.type, VectorType)
    width, signed = kind.element_type.width.data, isinstance(op, arith.FPToSIOp)
    if not isinstance(x.type.element_type, Float32Type) or not 1 < width <= 32:
        return None
    if width > MOST_NARROW and not signed:
        return None
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    f = Formula(op)
    number = f.select(f.is_nan(x), f.number(0.0), x)
    if width <= MOST_NARROW:
        whole = _small_int(f, f.trunc(f.clamp(number, low, high)))
        return f.insert(arith.TruncIOp(whole, kind))
    whole = f.trunc(f.clamp(number, low, BELOW_2_31))
    upper = f.trunc(f.mul(whole, 2.0**-16))
    lower = _small_int(f, f.sub(whole, f.mul(upper, 2.0**16)))
    upper = f.int_op(arith.ShLIOp, _small_int(f, upper), f.integer(16))
    return f.select(
        f.less(f.number(BELOW_2_31), number), f.integer(high), f.int_op(arith.AddiOp, upper, lower)
    )


def _small_int(f: Formula, whole: SSAValue) -> SSAValue:
    """whole : f32  =>  bits(whole + 1.5 * 2^23) - bits(1.5 * 2^23), for magnitudes below 2^22"""
    return f.int_op(arith.SubiOp, f.bits(f.add(whole, MAGIC)), f.integer(MAGIC_BITS))


FORMULAS: dict[str, Callable[[Formula, SSAValue], SSAValue]] = {
    "math.exp": exp,
    "math.exp2": exp2,
    "math.expm1": expm1,
    "math.log": log,
    "math.log10": log10,
    "math.log1p": log1p,
    "math.log2": log2,
    "math.tanh": tanh,
    "math.erf": erf,
    "math.rsqrt": rsqrt,
}


def small_power(op: Operation) -> int | None:
    """Returns the exponent of a power if it is a constant 2 or 3, or None."""
    constant = op.operands[1].owner
    if isinstance(constant, vector.BroadcastOp):
        constant = constant.operands[0].owner
    if not isinstance(constant, arith.ConstantOp):
        return None
    value = constant.value
    if isinstance(value, DenseIntOrFPElementsAttr):
        number = value.get_values()[0] if value.is_splat() else None
    else:
        number = value.value.data
    return int(number) if number in (2, 3) else None


def expand(op: Operation, lookups: bool = False) -> SSAValue | None:
    """Expands one op; returns its replacement, or None to keep the op."""
    if isinstance(op, arith.MaxnumfOp | arith.MinnumfOp):
        return pick(op)
    if isinstance(op, arith.FPToSIOp | arith.FPToUIOp):
        return to_int(op)
    if op.name not in FORMULAS and op.name not in ("math.powf", "math.fpowi"):
        return None
    kind = op.results[0].type
    element = kind.element_type if isinstance(kind, VectorType) else kind
    if not isinstance(element, Float32Type):
        return None
    if op.name in FORMULAS:
        return FORMULAS[op.name](Formula(op, lookups), op.operands[0])
    power = small_power(op)
    if power is None:
        return None
    f, x = Formula(op), op.operands[0]
    square = f.mul(x, x)
    return square if power == 2 else f.mul(square, x)


@dataclass(frozen=True)
class ExpandMathPass(ModulePass):
    """Expands transcendental functions on f32 to polynomials."""

    name = "irees-expand-math"

    @staticmethod
    def _stays(op: Operation, native: tuple[str, ...]) -> bool:
        """Whether the target has a native form of an op; for maxima only with the `nsz` flag."""
        if isinstance(op, arith.MaxnumfOp | arith.MinnumfOp):
            flags = op.fastmath.data if op.fastmath else ()
            return op.name in native and arith.FastMathFlag.NO_SIGNED_ZEROS in flags
        return op.name in native

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target, strict = target_of(op), is_strict(op)
        native = target.gpu.native_math if target.gpu is not None and not strict else ()
        lookups = target.gpu is None and target.looks_up_lanes and not strict
        for inner in list(op.walk()):
            result = None if self._stays(inner, native) else expand(inner, lookups)
            if result is not None:
                Rewriter.replace_op(inner, [], [result])
