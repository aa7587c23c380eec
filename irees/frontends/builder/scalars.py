"""
Scalar arithmetic for the body of a structured op, written with Python operators.

    builder.map(lambda x, y: x * y + 1, a, b)

A `Scalar` is an SSA value with a `DType`. Both operands of an operator have the same dtype; a
Python number takes the dtype of the other operand. Integer arithmetic wraps. Integer division by
zero and `MIN / -1` are defined (they never trap). Comparisons with NaN are false, except `!=`.
"""

from __future__ import annotations

import math as pymath
from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith, cf, math, tensor
from xdsl.dialects import complex as pairs
from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.dialects.builtin import IntegerAttr, LocationAttr, StringAttr, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue

from irees.dialects.upstream.arith import RemFOp
from irees.dialects.upstream.math import ErfcOp, IsFiniteOp, IsInfOp, IsNaNOp

from .dtypes import BOOL, F32, I16, I32, I64, INDEX, DType, Float8

_FAST = {"fastmath": FastMathFlagsAttr("none")}
_WRAPS = {"overflowFlags": IntegerOverflowAttr("none")}
_CMPF = {"==": "oeq", "!=": "une", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
_CMPI = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}
_FLOAT_CODES = arith.CMPF_COMPARISON_OPERATIONS
_INT_CODES = arith.CMPI_COMPARISON_OPERATIONS

UNARY: dict[str, type[Operation]] = {
    "exp": math.ExpOp, "exp2": math.Exp2Op, "expm1": math.ExpM1Op, "log": math.LogOp,
    "log2": math.Log2Op, "log10": math.Log10Op, "log1p": math.Log1pOp, "sqrt": math.SqrtOp,
    "rsqrt": math.RsqrtOp, "tanh": math.TanhOp, "erf": math.ErfOp, "erfc": ErfcOp,
    "sin": math.SinOp, "cos": math.CosOp, "tan": math.TanOp, "asin": math.AsinOp,
    "acos": math.AcosOp, "atan": math.AtanOp, "sinh": math.SinhOp, "cosh": math.CoshOp,
    "asinh": math.AsinhOp, "acosh": math.AcoshOp, "atanh": math.AtanhOp, "floor": math.FloorOp,
    "ceil": math.CeilOp, "round": math.RoundEvenOp, "trunc": math.TruncOp,
}  # fmt: skip
"""Unary float ops by numpy name (`round` rounds half to even)."""

COMPLEX_UNARY: dict[str, type[Operation]] = {
    "exp": pairs.ExpOp, "log": pairs.LogOp, "sqrt": pairs.SqrtOp, "sin": pairs.SinOp,
    "cos": pairs.CosOp, "tan": pairs.TanOp, "tanh": pairs.TanhOp, "expm1": pairs.Expm1Op,
    "log1p": pairs.Log1pOp, "rsqrt": pairs.RsqrtOp,
}  # fmt: skip
"""Unary ops of the complex dialect."""


class Body:
    """
    The body of a structured op under construction: creates constants (once each), loop indices and
    reads of tensors.
    """

    def __init__(self, block: Block, location: LocationAttr | None = None):
        self.block = block
        self.location = location
        self._constants: dict[tuple[Any, ...], Scalar] = {}

    def emit(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        """Appends an op with one result."""
        op = kind.create(
            operands=operands,
            result_types=(result,),
            properties=properties or {},
            location=self.location,
        )
        self.block.add_op(op)
        return op.results[0]

    def number(self, value: float | complex | bool, dtype: DType) -> Scalar:
        """A constant. Integers wrap to the dtype, floats round to it."""
        # Keyed by text, because -0.0 == 0.0 and nan != nan.
        key = (repr(value), dtype.name)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self._number(value, dtype)
        return found

    def _number(self, value: Any, dtype: DType) -> Scalar:
        if dtype.is_complex:
            value = complex(value)
            parts = [self.number(v, dtype.part).value for v in (value.real, value.imag)]
            return Scalar(self, self.emit(pairs.CreateOp, parts, dtype.element), dtype)
        attributes = {"value": dtype.attribute(value)}
        constant = self.emit(arith.ConstantOp, (), dtype.element, attributes)
        return Scalar(self, constant, dtype)

    def index(self, loop: int) -> Scalar:
        """The induction variable of a loop of the structured op."""
        key = ("index", loop)
        if key not in self._constants:
            value = self.emit(linalg.IndexOp, (), INDEX.element, {"dim": IntegerAttr(loop, i64)})
            self._constants[key] = Scalar(self, value, INDEX)
        return self._constants[key]

    def scalar(self, value: SSAValue, dtype: DType = INDEX) -> Scalar:
        """Wraps a value defined outside of the body, typically a dim."""
        return Scalar(self, value, dtype)

    def extract(self, source: Any, indices: Sequence[Scalar | SSAValue | int]) -> Scalar:
        """source[indices]; the indices must be in bounds."""
        at = [i if isinstance(i, SSAValue) else self.as_index(i).value for i in indices]
        value = self.emit(tensor.ExtractOp, (source.value, *at), source.dtype.element)
        return Scalar(self, value, source.dtype)

    def check(self, condition: Scalar, message: str) -> None:
        """Aborts the program with a message if a bool is false."""
        op = cf.AssertOp.create(
            operands=[condition.value],
            properties={"msg": StringAttr(message)},
            location=self.location,
        )
        self.block.add_op(op)

    def as_index(self, value: Any) -> Scalar:
        """Converts an int, an SSA value of type index or an integer Scalar to an index Scalar."""
        if isinstance(value, Scalar):
            return value.to(INDEX)
        if isinstance(value, SSAValue):
            return self.scalar(value)
        return self.number(value, INDEX)


class Scalar:
    """A scalar SSA value with its dtype, in a body."""

    __slots__ = ("body", "dtype", "value")

    def __init__(self, body: Body, value: SSAValue, dtype: DType):
        self.body, self.value, self.dtype = body, value, dtype

    # --- arithmetic ---

    def _other(self, other: Any) -> Scalar:
        if isinstance(other, Scalar):
            assert other.dtype == self.dtype, f"{self.dtype} and {other.dtype} in one operation"
            return other
        return self.body.number(other, self.dtype)

    def _op(
        self,
        kind: type[Operation],
        *others: Scalar,
        to: DType | None = None,
        properties: dict[str, Attribute] | None = None,
    ) -> Scalar:
        dtype = to or self.dtype
        operands = (self.value, *(other.value for other in others))
        return Scalar(self.body, self.body.emit(kind, operands, dtype.element, properties), dtype)

    def _binary(self, other: Any, integer: Any, real: Any, pair: Any = None) -> Scalar:
        other = self._other(other)
        if self.dtype.is_complex:
            assert pair is not None, f"no {integer} of complex numbers"
            return self._op(pair, other, properties=_FAST)
        if self.dtype.is_integer:
            wraps = _WRAPS if integer in (arith.AddiOp, arith.SubiOp, arith.MuliOp) else None
            return self._op(integer, other, properties=wraps)
        return self._op(real, other, properties=_FAST)

    def __add__(self, other: Any) -> Scalar:
        kind = arith.OrIOp if self.dtype is BOOL else arith.AddiOp
        return self._binary(other, kind, arith.AddfOp, pairs.AddOp)

    def __sub__(self, other: Any) -> Scalar:
        kind = arith.XOrIOp if self.dtype is BOOL else arith.SubiOp
        return self._binary(other, kind, arith.SubfOp, pairs.SubOp)

    def __mul__(self, other: Any) -> Scalar:
        kind = arith.AndIOp if self.dtype is BOOL else arith.MuliOp
        return self._binary(other, kind, arith.MulfOp, pairs.MulOp)

    def __truediv__(self, other: Any) -> Scalar:
        assert not self.dtype.is_integer, "integers divide by floordiv or truncdiv"
        return self._binary(other, None, arith.DivfOp, pairs.DivOp)

    def __radd__(self, other: Any) -> Scalar:
        return self._other(other) + self

    def __rsub__(self, other: Any) -> Scalar:
        return self._other(other) - self

    def __rmul__(self, other: Any) -> Scalar:
        return self._other(other) * self

    def __rtruediv__(self, other: Any) -> Scalar:
        return self._other(other) / self

    def __neg__(self) -> Scalar:
        if self.dtype.is_complex:
            return self._op(pairs.NegOp, properties=_FAST)
        if self.dtype.is_float:
            return self._op(arith.NegfOp, properties=_FAST)
        return 0 - self

    def truncdiv(self, other: Any) -> Scalar:
        """The integer quotient, rounded towards zero; x / 0 is unspecified, MIN / -1 is MIN."""
        kind = arith.DivUIOp if self.dtype.is_unsigned else arith.DivSIOp
        return self._op(kind, self._other(other))

    def rem(self, other: Any) -> Scalar:
        """
        The exact remainder of truncated division, with the sign of the dividend (C's `%` and
        `fmod`).
        """
        if self.dtype.is_float:
            return self._op(RemFOp, self._other(other), properties=_FAST)
        kind = arith.RemUIOp if self.dtype.is_unsigned else arith.RemSIOp
        return self._op(kind, self._other(other))

    @property
    def is_positive(self) -> bool:
        """Whether this is an integer constant above 0."""
        owner = self.value.owner
        constant = owner.value if isinstance(owner, arith.ConstantOp) else None
        return isinstance(constant, IntegerAttr) and constant.value.data > 0

    def mod(self, other: Any) -> Scalar:
        """The exact remainder of floored division, with the sign of the divisor (Python's `%`)."""
        other = self._other(other)
        rest = self.rem(other)
        if self.dtype.is_unsigned:
            return rest
        if self.dtype.is_integer:
            # A choice would be a branch in C, which is hard to predict, and mix types in vectors.
            differs = rest if other.is_positive else (rest ^ other) & (rest | -rest)
            return rest + (other & differs.shift_right(self.dtype.bits - 1))
        differs = (rest != 0) & ((rest < 0) ^ (other < 0))
        return differs.where(rest + other, rest)

    def floordiv(self, other: Any) -> Scalar:
        """The quotient rounded towards minus infinity; floats use Python's algorithm."""
        other = self._other(other)
        if self.dtype.is_unsigned:
            return self.truncdiv(other)
        if self.dtype.is_integer:
            return self._op(arith.FloorDivSIOp, other)
        rest = self.rem(other)
        quotient = (self - rest) / other
        differs = (rest != 0) & ((rest < 0) ^ (other < 0))
        quotient = differs.where(quotient - 1, quotient)
        whole = quotient.floor()
        whole = (quotient - whole > 0.5).where(whole + 1, whole)
        exact = self / other
        whole = (quotient != 0).where(whole, self._other(0.0).copysign(exact))
        return (other == 0).where(exact, whole)

    # --- bits ---

    def __and__(self, other: Any) -> Scalar:
        return self._op(arith.AndIOp, self._other(other))

    def __or__(self, other: Any) -> Scalar:
        return self._op(arith.OrIOp, self._other(other))

    def __xor__(self, other: Any) -> Scalar:
        return self._op(arith.XOrIOp, self._other(other))

    def __invert__(self) -> Scalar:
        return self ^ (1 if self.dtype is BOOL else -1)

    def shift_left(self, other: Any) -> Scalar:
        """self << other; 0 for a count outside of 0 <= count < bits."""
        other = self._other(other)
        inside = other.body.number(self.dtype.bits, self.dtype).unsigned_greater(other)
        count = inside.where(other, 0)
        return inside.where(self._op(arith.ShLIOp, count, properties=_WRAPS), 0)

    def shift_right(self, other: Any) -> Scalar:
        """self >> other, arithmetic if signed; a count out of range fills with the sign."""
        other = self._other(other)
        bits = self.dtype.bits
        inside = other.body.number(bits, self.dtype).unsigned_greater(other)
        if self.dtype.is_unsigned:
            return inside.where(self._op(arith.ShRUIOp, inside.where(other, 0)), 0)
        return self._op(arith.ShRSIOp, inside.where(other, bits - 1))

    def logical_shift_right(self, count: int) -> Scalar:
        """Logical shift right by a constant count."""
        return self._op(arith.ShRUIOp, self._other(count))

    def unsigned_greater(self, other: Scalar) -> Scalar:
        """Unsigned comparison of the bits of self and other."""
        return self._compare(other, "ugt")

    def bitcast(self, dtype: DType) -> Scalar:
        """Reinterprets the bits as another dtype of the same size."""
        if dtype.element == self.dtype.element:
            return Scalar(self.body, self.value, dtype)
        return self._op(arith.BitcastOp, to=dtype)

    # --- comparisons ---

    def _compare(self, other: Any, code: str) -> Scalar:
        other = self._other(other)
        operands = (self.value, other.value)
        if self.dtype.is_float:
            attr = IntegerAttr(_FLOAT_CODES.index(code), i64)
            kind, properties = arith.CmpfOp, {"predicate": attr, **_FAST}
        else:
            attr = IntegerAttr(_INT_CODES.index(code), i64)
            kind, properties = arith.CmpiOp, {"predicate": attr}
        value = self.body.emit(kind, operands, BOOL.element, properties)
        return Scalar(self.body, value, BOOL)

    def _ordered(self, other: Any, sign: str) -> Scalar:
        if self.dtype.is_complex:
            kind = pairs.EqualOp if sign == "==" else pairs.NotEqualOp
            return self._op(kind, self._other(other), to=BOOL)
        if self.dtype.is_float:
            return self._compare(other, _CMPF[sign])
        code = _CMPI[sign]
        if self.dtype.is_unsigned and code not in ("eq", "ne"):
            code = "u" + code[1:]
        return self._compare(other, code)

    def __eq__(self, other: Any) -> Scalar:  # type: ignore[override]
        return self._ordered(other, "==")

    def __ne__(self, other: Any) -> Scalar:  # type: ignore[override]
        return self._ordered(other, "!=")

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Any) -> Scalar:
        return self._ordered(other, "<")

    def __le__(self, other: Any) -> Scalar:
        return self._ordered(other, "<=")

    def __gt__(self, other: Any) -> Scalar:
        return self._ordered(other, ">")

    def __ge__(self, other: Any) -> Scalar:
        return self._ordered(other, ">=")

    def where(self, yes: Any, no: Any) -> Scalar:
        """self ? yes : no, for a bool; one of the two may be a Python number."""
        if not isinstance(yes, Scalar):
            yes = no._other(yes)
        no = yes._other(no)
        return yes._select(self, no)

    def _select(self, condition: Scalar, no: Scalar) -> Scalar:
        operands = (condition.value, self.value, no.value)
        if self.dtype.is_complex:
            parts = [
                a._select(condition, b) for a, b in ((self.re(), no.re()), (self.im(), no.im()))
            ]
            return parts[0].with_imaginary(parts[1])
        value = self.body.emit(arith.SelectOp, operands, self.dtype.element)
        return Scalar(self.body, value, self.dtype)

    def maximum(self, other: Any) -> Scalar:
        """The larger operand; NaN if either is NaN."""
        if self.dtype.is_float:
            return self._op(arith.MaximumfOp, self._other(other), properties=_FAST)
        kind = arith.MaxUIOp if self.dtype.is_unsigned else arith.MaxSIOp
        return self._op(kind, self._other(other))

    def minimum(self, other: Any) -> Scalar:
        """The smaller operand; NaN if either is NaN."""
        if self.dtype.is_float:
            return self._op(arith.MinimumfOp, self._other(other), properties=_FAST)
        kind = arith.MinUIOp if self.dtype.is_unsigned else arith.MinSIOp
        return self._op(kind, self._other(other))

    def fmax(self, other: Any) -> Scalar:
        """The larger operand; if one is NaN, the other."""
        if self.dtype.is_float:
            return self._op(arith.MaxnumfOp, self._other(other), properties=_FAST)
        return self.maximum(other)

    def fmin(self, other: Any) -> Scalar:
        """The smaller operand; if one is NaN, the other."""
        if self.dtype.is_float:
            return self._op(arith.MinnumfOp, self._other(other), properties=_FAST)
        return self.minimum(other)

    def clamp(self, low: Any = None, high: Any = None) -> Scalar:
        """min(max(self, low), high); NaN if any operand is NaN; `high` wins if low > high."""
        result = self if low is None else self.maximum(low)
        return result if high is None else result.minimum(high)

    # --- functions ---

    def call(self, name: str) -> Scalar:
        """Calls a function of `UNARY`, or of `COMPLEX_UNARY` for complex numbers."""
        table = COMPLEX_UNARY if self.dtype.is_complex else UNARY
        return self._op(table[name], properties=_FAST)

    def __getattr__(self, name: str) -> Any:
        if name in UNARY:
            return lambda: self.call(name)
        raise AttributeError(name)

    def abs(self) -> Scalar:
        """The absolute value; MIN maps to itself for signed integers; real for a complex number."""
        if self.dtype.is_complex:
            return self._op(pairs.AbsOp, to=self.dtype.part, properties=_FAST)
        if self.dtype.is_float:
            return self._op(math.AbsFOp, properties=_FAST)
        return self if self.dtype.is_unsigned else self._op(math.AbsIOp)

    def sign(self) -> Scalar:
        """-1, 0 or 1; 0 for NaN, as in PyTorch; z / |z| for a complex number."""
        if self.dtype.is_complex:
            size = self.abs()
            zero = size == 0
            divisor = zero.where(1.0, size)
            return (self.re() / divisor).with_imaginary(self.im() / divisor)
        if self.dtype.is_unsigned:
            return self if self.dtype is BOOL else (self != 0).where(1, self)
        positive, negative = (self > 0), (self < 0)
        return positive.where(1, negative.where(-1, self._other(0)))

    def isnan(self) -> Scalar:
        """Whether the number, or a complex part of it, is NaN."""
        if self.dtype.is_complex:
            return self.re().isnan() | self.im().isnan()
        return self._op(IsNaNOp, to=BOOL, properties=_FAST)

    def isinf(self) -> Scalar:
        """Whether the number, or a complex part of it, is infinite."""
        if self.dtype.is_complex:
            return self.re().isinf() | self.im().isinf()
        return self._op(IsInfOp, to=BOOL, properties=_FAST)

    def isfinite(self) -> Scalar:
        """Whether the number, or both complex parts of it, are neither NaN nor infinite."""
        if self.dtype.is_complex:
            return self.re().isfinite() & self.im().isfinite()
        return self._op(IsFiniteOp, to=BOOL, properties=_FAST)

    def signbit(self) -> Scalar:
        """Whether the sign bit is set: true for -0.0 and for negative NaNs."""
        if self.dtype.is_float:
            return self.bitcast(_bits_of(self.dtype)) < 0
        return self < 0 if not self.dtype.is_unsigned else self.body.number(0, BOOL)

    def copysign(self, other: Any) -> Scalar:
        """The magnitude of self with the sign of other."""
        return self._op(math.CopySignOp, self._other(other), properties=_FAST)

    def atan2(self, other: Any) -> Scalar:
        """The angle of the vector (other, self)."""
        return self._op(math.Atan2Op, self._other(other), properties=_FAST)

    def pow(self, other: Any) -> Scalar:
        """self ** other; integers wrap, and a negative exponent gives 0, 1 or -1."""
        other = self._other(other)
        if self.dtype.is_complex:
            return self._op(pairs.PowOp, other, properties=_FAST)
        if self.dtype.is_float:
            return self._op(math.PowFOp, other, properties=_FAST)
        return self._integer_pow(other)

    def _integer_pow(self, exponent: Scalar) -> Scalar:
        """Square-and-multiply over all bits of the exponent."""
        dtype = self.dtype
        base, power, rest = self, self._other(1), exponent
        for _ in range(min(dtype.bits, 64) - (not dtype.is_unsigned)):
            power = (rest & 1 != 0).where(power * base, power)
            base, rest = base * base, rest.logical_shift_right(1)
        if dtype.is_unsigned:
            return power
        odd = exponent & 1 != 0
        of_minus_one = odd.where(-1, self._other(1))
        inverse = (self == 1).where(1, (self == -1).where(of_minus_one, 0))
        return (exponent < 0).where(inverse, power)

    def sigmoid(self) -> Scalar:
        """1 / (1 + exp(-self))"""
        return 1 / ((-self).exp() + 1)

    # --- complex ---

    def re(self) -> Scalar:
        """The real part; self for a real number."""
        if not self.dtype.is_complex:
            return self
        return self._op(pairs.ReOp, to=self.dtype.part, properties=_FAST)

    def im(self) -> Scalar:
        """The imaginary part; 0 for a real number."""
        if not self.dtype.is_complex:
            return self._other(0)
        return self._op(pairs.ImOp, to=self.dtype.part, properties=_FAST)

    def with_imaginary(self, imaginary: Scalar) -> Scalar:
        """Builds the complex number self + i * imaginary from two real numbers."""
        return self._op(pairs.CreateOp, imaginary, to=self.dtype.complex)

    def conj(self) -> Scalar:
        """The complex conjugate; self for a real number."""
        return self.re().with_imaginary(-self.im()) if self.dtype.is_complex else self

    def angle(self) -> Scalar:
        """The argument of a complex number; 0 or pi for a real number, NaN for NaN."""
        if self.dtype.is_complex:
            return self.im().atan2(self.re())
        flat = (self < 0).where(pymath.pi, self._other(0.0))
        return self.isnan().where(self, flat)

    # --- conversion ---

    def to(self, dtype: DType) -> Scalar:
        """
        Converts to another dtype. Floats round to nearest even, f64 to 16 bits through f32,
        integers wrap, bool is `!= 0`.
        Float to integer is x86's conversion: MIN if the value does not fit, through i32 for
        narrower types and through i64 for u32 and u64, as in PyTorch and numpy.
        """
        if dtype is self.dtype:
            return self
        if isinstance(self.dtype, Float8) or isinstance(dtype, Float8):
            return self._through_f32(dtype)
        if self.dtype.is_complex:
            if dtype is BOOL:
                return (self.re() != 0) | (self.im() != 0)
            if not dtype.is_complex:
                return self.re().to(dtype)
            return self.re().to(dtype.part).with_imaginary(self.im().to(dtype.part))
        if dtype.is_complex:
            real = self.to(dtype.part)
            return real.with_imaginary(self.body.number(0.0, dtype.part))
        if dtype is BOOL:
            return self != 0
        if self.dtype.is_float:
            return self._from_float(dtype)
        return self._from_integer(dtype)

    def _through_f32(self, dtype: DType) -> Scalar:
        """Converts to or from an 8-bit float through f32."""
        from . import float8

        if isinstance(self.dtype, Float8):
            return float8.widened(self).to(dtype)
        return float8.rounded(self.to(F32), dtype)  # type: ignore[arg-type]

    def _from_float(self, dtype: DType) -> Scalar:
        if dtype.is_float:
            wider = dtype.bits > self.dtype.bits
            if dtype.bits == 16 and self.dtype is not F32:  # as PyTorch and C convert f64
                return self.to(F32).to(dtype)
            return self._op(arith.ExtFOp if wider else arith.TruncFOp, to=dtype)
        if dtype not in (I32, I64):
            wide = I64 if dtype.bits >= 32 else I32
            return self.to(wide).to(dtype)
        wide = self if self.dtype.bits >= 32 else self.to(F32)
        bound = 2.0 ** (dtype.bits - 1)
        fits = wide < bound
        converted = wide._op(arith.FPToSIOp, to=dtype)
        return fits.where(converted, -(1 << (dtype.bits - 1)))

    def _from_integer(self, dtype: DType) -> Scalar:
        source = self.dtype
        if dtype is INDEX or source is INDEX:
            if source in (BOOL, I64, INDEX) or dtype is not INDEX:
                wide = self.to(I64) if source is BOOL else self
                if dtype.is_float:
                    return self.to(I64).to(dtype)
                return wide._op(arith.IndexCastOp, to=dtype)
            return self.to(I64).to(INDEX)
        if dtype.is_float:
            kind = arith.UIToFPOp if source.is_unsigned else arith.SIToFPOp
            if dtype.bits < 32:
                return self.to(F32).to(dtype)
            return self._op(kind, to=dtype)
        if dtype.element == source.element:
            return Scalar(self.body, self.value, dtype)
        if source is not BOOL and dtype.bits < source.bits:
            return self._op(arith.TruncIOp, to=dtype)
        return self._op(arith.ExtUIOp if source.is_unsigned else arith.ExtSIOp, to=dtype)


def _bits_of(dtype: DType) -> DType:
    return {16: I16, 32: I32, 64: I64}[dtype.bits]
