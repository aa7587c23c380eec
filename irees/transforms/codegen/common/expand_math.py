"""
Expands f32 exp, log, tanh, erf, small powers and the like into arithmetic.

libm calls do not vectorize here, and their results differ between machines. A polynomial vectorizes
at every width and, unless contracted to FMAs, has the same bits everywhere. Ops that are not listed
stay one call per lane.

| op | method | largest error seen, ULP |
|---|---|---|
| exp | 2^n times a degree 6 polynomial on [-ln2/2, ln2/2] (minimax, 3e-9) | 1 |
| exp, with table | 2^n, by 16 powers, times a degree 3 polynomial (minimax, 2e-9) | 1 |
| log | exponent and a degree 8 polynomial on [sqrt(1/2), sqrt(2)] (Cephes) | 1 |
| tanh | odd polynomial below 0.625 (Cephes), else through exp | 2 |
| erf | rational in x^2, clamped to [-4, 4] | 37 (4 above 1e-30) |
| rsqrt | 1 / sqrt | 1 |
| powf with exponent 2, 3; fpowi with 2, 3 | products | 1 |
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
    IntegerAttr,
    ModuleOp,
    VectorType,
    i1,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.irees_target import is_strict, target_of
from irees.transforms.utils.formula import Formula

MAGIC = 12582912.0
"""1.5 * 2^23: adding and subtracting it rounds a small float to a whole number."""

SIXTEENTHS = 786432.0
"""1.5 * 2^19: adding and subtracting it rounds a small float to a multiple of 1/16."""

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
    """Returns y, or NaN if x is NaN. Adding x * 0 instead would turn infinities into NaN."""
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


FORMULAS: dict[str, Callable[[Formula, SSAValue], SSAValue]] = {
    "math.exp": exp,
    "math.log": log,
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
