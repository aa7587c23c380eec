"""
Expands rare scalar ops to common ones, so that code generation supports only the common ones.

| op | becomes |
|---|---|
| `arith.addui_extended` | the sum, and whether it is less than an operand |
| `arith.mulsi_extended`, `mului_extended` | halves of an i64 product, or four 32-bit products |
| `arith.maximumnumf`, `minimumnumf` | `maximumf`, `minimumf`; if one operand is NaN, the other |
| `arith.scaling_extf`, `scaling_truncf` | multiplication or division by a power of two |
| `math.isnormal` | two comparisons of the absolute value |
| `math.sincos` | `math.sin` and `math.cos` |
| `math.ctlz`, `cttz` of an i1 | its negation |
| `affine.linearize_index`, `delinearize_index` | products and sums, or quotients and remainders |
| `complex.rsqrt`, `sign` | `1 / sqrt(z)`, `z / abs(z)` |
| `complex.tan` | `-i tanh(i z)` |
| `complex.expm1`, `log1p` | functions of both parts, exact near zero |
| `complex.atan2` | `-i log((b + i a) / sqrt(b b + a a))` |
| `complex.bitcast` | bitcasts of both parts, shifted |

    %s, %c = arith.addui_extended %a, %b : i32, i1
  =>
    %s = arith.addi %a, %b : i32
    %c = arith.cmpi ult, %s, %a : i32

Results are bit-identical to those of the op, for every operand. MLIR: `arith-expand`,
`math-expand-ops`; the product of 64-bit operands is Knuth's algorithm M (4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import ml_dtypes
from xdsl.context import Context
from xdsl.dialects import arith, complex, math
from xdsl.dialects.builtin import (
    ComplexType,
    Float8E8M0FNUType,
    IntegerType,
    ModuleOp,
    TensorType,
    VectorType,
    f32,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.upstream import affine
from irees.errors import UnsupportedError
from irees.interpreters.values import dtype_of
from irees.transforms.utils.shapes import Size
from irees.transforms.utils.tensors import ScalarBuilder

HALF = 32
"""Bits in half of an i64."""


def add_with_carry(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """addui_extended(a, b)  =>  a + b, a + b < a"""
    a, b = op.operands
    total = at.op(arith.AddiOp, a, b)
    return total, at.insert(arith.CmpiOp(total, a, "ult")).results[0]


def _high_of_halves(a: SSAValue, b: SSAValue, at: ScalarBuilder) -> SSAValue:
    """Returns the upper 64 bits of the product of two unsigned i64."""
    shift, mask = at.number(HALF, i64), at.number((1 << HALF) - 1, i64)
    a0, b0 = (at.op(arith.AndIOp, x, mask) for x in (a, b))
    a1, b1 = (at.op(arith.ShRUIOp, x, shift) for x in (a, b))
    low = at.op(arith.ShRUIOp, at.op(arith.MuliOp, a0, b0), shift)
    middle = at.op(arith.AddiOp, at.op(arith.MuliOp, a1, b0), low)
    rest, carry = at.op(arith.AndIOp, middle, mask), at.op(arith.ShRUIOp, middle, shift)
    other = at.op(arith.AddiOp, at.op(arith.MuliOp, a0, b1), rest)
    high = at.op(arith.AddiOp, at.op(arith.MuliOp, a1, b1), carry)
    return at.op(arith.AddiOp, high, at.op(arith.ShRUIOp, other, shift))


def _signed(high: SSAValue, a: SSAValue, b: SSAValue, at: ScalarBuilder) -> SSAValue:
    """high - (a < 0 ? b : 0) - (b < 0 ? a : 0)"""
    zero = at.number(0, i64)
    for x, y in ((a, b), (b, a)):
        negative = at.insert(arith.CmpiOp(x, zero, "slt")).results[0]
        high = at.op(arith.SubiOp, high, at.select(negative, y, zero))
    return high


def long_product(op: Operation, at: ScalarBuilder, signed: bool) -> Sequence[SSAValue] | None:
    """mul_extended(a, b)  =>  a * b, (a * b) >> width"""
    a, b = op.operands
    kind = a.type
    width = kind.width.data if isinstance(kind, IntegerType) else 64
    if HALF < width < 64:
        return None
    low = at.op(arith.MuliOp, a, b)
    if width <= HALF:
        widen = arith.ExtSIOp if signed else arith.ExtUIOp
        product = at.op(arith.MuliOp, at.op(widen, a, i64), at.op(widen, b, i64))
        high = at.op(arith.ShRUIOp, product, at.number(width, i64))
        return low, at.op(arith.TruncIOp, high, kind)
    a, b = at.cast(a, i64), at.cast(b, i64)
    high = _high_of_halves(a, b, at)
    return low, at.cast(_signed(high, a, b, at) if signed else high, kind)


def number_or_nan(op: Operation, at: ScalarBuilder, pick: type[Operation]) -> Sequence[SSAValue]:
    """maximumnumf(a, b)  =>  b is NaN ? a : a is NaN ? b : maximumf(a, b)"""
    a, b = op.operands
    a_is_nan, b_is_nan = (at.op(arith.CmpfOp, x, x, "uno") for x in (a, b))
    return (at.select(b_is_nan, a, at.select(a_is_nan, b, at.op(pick, a, b))),)


def is_normal(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """isnormal(a)  =>  smallest <= |a| and |a| < infinity"""
    (a,) = op.operands
    size = at.op(math.AbsFOp, a)
    smallest = float(ml_dtypes.finfo(dtype_of(a.type)).smallest_normal)
    enough = at.op(arith.CmpfOp, size, at.number(smallest, a.type), "oge")
    finite = at.op(arith.CmpfOp, size, at.number(float("inf"), a.type), "olt")
    return (at.op(arith.AndIOp, enough, finite),)


def sine_and_cosine(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """sincos(a)  =>  sin(a), cos(a)"""
    (a,) = op.operands
    return at.op(math.SinOp, a), at.op(math.CosOp, a)


def zeros_of_a_bit(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue] | None:
    """ctlz(a : i1)  =>  not a"""
    (a,) = op.operands
    if a.type != i1:
        return None
    return (at.op(arith.XOrIOp, a, at.number(1, i1)),)


def _parts(op: Operation, at: ScalarBuilder) -> tuple[SSAValue, SSAValue]:
    (z,) = op.operands
    return at.op(complex.ReOp, z), at.op(complex.ImOp, z)


def _complex(re: SSAValue, im: SSAValue, op: Operation, at: ScalarBuilder) -> SSAValue:
    return at.op(complex.CreateOp, re, im, op.results[0].type)


def _real(value: float, op: Operation, at: ScalarBuilder) -> SSAValue:
    """Returns a real constant of the op's complex type."""
    kind = op.results[0].type
    assert isinstance(kind, ComplexType)
    re, im = (at.number(x, kind.element_type) for x in (value, 0.0))
    return _complex(re, im, op, at)


def complex_log1p(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """log1p(x + iy)  =>  log1p(m - 1) + log1p((n/m)^2) / 2 + i atan2(y, x + 1)

    m and n are the larger and the smaller of |x + 1| and |y|; m - 1 is exact where m is near one.
    """
    x, y = _parts(op, at)
    zero, half, one, two = (at.number(v, x.type) for v in (0.0, 0.5, 1.0, 2.0))
    moved = at.op(arith.AddfOp, x, one)
    u, w = at.op(math.AbsFOp, moved), at.op(math.AbsFOp, y)
    wider = at.op(arith.CmpfOp, u, w, "oge")
    right = at.op(arith.CmpfOp, moved, zero, "oge")
    left = at.op(arith.NegfOp, at.op(arith.AddfOp, x, two))
    rest = at.select(wider, at.select(right, x, left), at.op(arith.SubfOp, w, one))
    m, n = at.select(wider, u, w), at.select(wider, w, u)
    nothing = at.op(arith.CmpfOp, m, zero, "oeq")
    ratio = at.select(nothing, zero, at.op(arith.DivfOp, n, m))
    square = at.op(math.Log1pOp, at.op(arith.MulfOp, ratio, ratio))
    re = at.op(arith.AddfOp, at.op(math.Log1pOp, rest), at.op(arith.MulfOp, square, half))
    return (_complex(re, at.op(math.Atan2Op, y, moved), op, at),)


def complex_rsqrt(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """rsqrt(z)  =>  1 / sqrt(z)"""
    (z,) = op.operands
    return (at.op(complex.DivOp, _real(1.0, op, at), at.op(complex.SqrtOp, z)),)


def complex_sign(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """sign(z)  =>  abs(z) == 0 ? z : z / abs(z)"""
    (z,) = op.operands
    (re, im), size = _parts(op, at), at.op(complex.AbsOp, z)
    is_zero = at.op(arith.CmpfOp, size, at.number(0.0, size.type), "oeq")
    unit = _complex(*(at.op(arith.DivfOp, x, size) for x in (re, im)), op, at)
    return (at.select(is_zero, z, unit),)


def complex_tan(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """tan(z)  =>  -i tanh(i z)"""
    re, im = _parts(op, at)
    turned = at.op(complex.TanhOp, _complex(at.op(arith.NegfOp, im), re, op, at))
    re, im = at.op(complex.ReOp, turned), at.op(complex.ImOp, turned)
    return (_complex(im, at.op(arith.NegfOp, re), op, at),)


def complex_expm1(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """expm1(x + iy)  =>  expm1(x) cos(y) - 2 sin(y/2)^2 + i exp(x) sin(y)"""
    x, y = _parts(op, at)
    half = at.op(math.SinOp, at.op(arith.MulfOp, y, at.number(0.5, y.type)))
    square = at.op(arith.MulfOp, at.op(arith.MulfOp, half, half), at.number(2.0, y.type))
    grown = at.op(arith.MulfOp, at.op(math.ExpM1Op, x), at.op(math.CosOp, y))
    im = at.op(arith.MulfOp, at.op(math.ExpOp, x), at.op(math.SinOp, y))
    return (_complex(at.op(arith.SubfOp, grown, square), im, op, at),)


def complex_atan2(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """atan2(a, b)  =>  -i log((b + i a) / sqrt(b b + a a))"""
    a, b = op.operands
    re, im = at.op(complex.ReOp, a), at.op(complex.ImOp, a)
    turned = at.op(complex.AddOp, b, _complex(at.op(arith.NegfOp, im), re, op, at))
    squares = (at.op(complex.MulOp, each, each) for each in (b, a))
    length = at.op(complex.SqrtOp, at.op(complex.AddOp, *squares))
    log = at.op(complex.LogOp, at.op(complex.DivOp, turned, length))
    re, im = at.op(complex.ReOp, log), at.op(complex.ImOp, log)
    return (_complex(im, at.op(arith.NegfOp, re), op, at),)


def complex_bitcast(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue] | None:
    """bitcast z : complex<f32> to i64  =>  bits(re(z)) | bits(im(z)) << 32, and back"""
    value, kind = op.operands[0], op.results[0].type
    if value.type == kind:
        return (value,)
    whole = value.type if isinstance(value.type, ComplexType) else kind
    assert isinstance(whole, ComplexType)
    part = whole.element_type
    if part != f32:
        return None
    half, width = IntegerType(HALF), at.number(HALF, i64)
    if isinstance(value.type, ComplexType):
        words = [at.op(arith.ExtUIOp, at.op(arith.BitcastOp, x, half), i64) for x in _parts(op, at)]
        bits = at.op(arith.OrIOp, words[0], at.op(arith.ShLIOp, words[1], width))
        return (bits if kind == i64 else at.op(arith.BitcastOp, bits, kind),)
    bits = value if value.type == i64 else at.op(arith.BitcastOp, value, i64)
    re, im = (
        at.op(arith.BitcastOp, at.op(arith.TruncIOp, word, half), part)
        for word in (bits, at.op(arith.ShRUIOp, bits, width))
    )
    return (_complex(re, im, op, at),)


def _scale(op: Operation, kind: Attribute, at: ScalarBuilder) -> SSAValue:
    """Returns the scale, rounded to f8E8M0FNU if it is wider, in float type `kind`."""
    scale = op.operands[1]
    exponent = Float8E8M0FNUType()
    if scale.type.bitwidth > exponent.bitwidth:  # pyright: ignore
        scale = at.op(arith.TruncFOp, scale, exponent)
    elif scale.type != exponent:
        raise UnsupportedError(
            f"a scale of type {scale.type}", op=op, hint="scales are f8E8M0FNU, f16, bf16 or f32"
        )
    return at.cast(scale, kind)


def scaled_up(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """scaling_extf(a, s)  =>  extf(a) * 2^s"""
    kind = op.results[0].type
    return (at.op(arith.MulfOp, at.cast(op.operands[0], kind), _scale(op, kind, at)),)


def scaled_down(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """scaling_truncf(a, s)  =>  truncf(a / 2^s)"""
    value = op.operands[0]
    quotient = at.op(arith.DivfOp, value, _scale(op, value.type, at))
    return (at.cast(quotient, op.results[0].type),)


def linear_index(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """linearize_index [i, j, k] by (m, n)  =>  (i * m + j) * n + k"""
    assert isinstance(op, affine.LinearizeIndexOp)
    first, *rest = op.multi_index
    basis = op.basis[-len(rest) :] if rest else []
    total: Size = first
    for index, size in zip(rest, basis, strict=True):
        total = at.add(at.mul(total, size), index)
    return (at.value(total),)


def coordinates(op: Operation, at: ScalarBuilder) -> Sequence[SSAValue]:
    """delinearize_index x into (m, n)  =>  x floordiv n, x mod n"""
    assert isinstance(op, affine.DelinearizeIndexOp)
    rest = op.linear_index[0]
    inner = op.basis[1:] if op.has_outer_bound else op.basis
    found: list[SSAValue] = []
    for size in reversed(inner):
        quotient = at.op(arith.FloorDivSIOp, rest, at.value(size))
        found.append(at.value(at.sub(rest, at.mul(quotient, size))))
        rest = quotient
    return [rest, *reversed(found)]


Expansion = Callable[[Operation, ScalarBuilder], Sequence[SSAValue] | None]
EXPANSIONS: dict[str, Expansion] = {
    "arith.addui_extended": add_with_carry,
    "arith.mulsi_extended": partial(long_product, signed=True),
    "arith.mului_extended": partial(long_product, signed=False),
    "arith.maximumnumf": partial(number_or_nan, pick=arith.MaximumfOp),
    "arith.minimumnumf": partial(number_or_nan, pick=arith.MinimumfOp),
    "math.isnormal": is_normal,
    "math.sincos": sine_and_cosine,
    "math.ctlz": zeros_of_a_bit,
    "math.cttz": zeros_of_a_bit,
    "arith.scaling_extf": scaled_up,
    "arith.scaling_truncf": scaled_down,
    "affine.linearize_index": linear_index,
    "affine.delinearize_index": coordinates,
    "complex.log1p": complex_log1p,
    "complex.rsqrt": complex_rsqrt,
    "complex.sign": complex_sign,
    "complex.tan": complex_tan,
    "complex.expm1": complex_expm1,
    "complex.atan2": complex_atan2,
    "complex.bitcast": complex_bitcast,
}


def is_scalar(op: Operation) -> bool:
    """Whether an op has no tensor or vector operands."""
    return not any(isinstance(value.type, TensorType | VectorType) for value in op.operands)


@dataclass(frozen=True)
class ExpandArithPass(ModulePass):
    """Expands rare scalar ops to common ones."""

    name = "irees-expand-arith"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            expand = EXPANSIONS.get(inner.name)
            if expand is None or not is_scalar(inner):
                continue
            if (values := expand(inner, ScalarBuilder.before(inner))) is not None:
                Rewriter.replace_op(inner, [], values)
