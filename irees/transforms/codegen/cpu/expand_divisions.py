"""
Expands integer divisions of vectors, which no processor has, into divisions of f64.

| integers | method |
|---|---|
| up to 32 bits | f64 holds both operands, and the truncated quotient is exact |
| 64 bits, signed | two quotients of magnitudes, each rounded down, then one correction |

A quotient of 64 bits has more bits than an f64. Its first 50 are computed with a reciprocal that is
a little too small, so the rest is not negative. The rest is divided in the same way, and what
remains is less than twice the divisor:

    q0 = int(f64(|a|) * r)    where r = (1 - 2^-50) / f64(|b|)
    r0 = |a| - q0 * |b|
    q1 = int(f64(r0) * r)
    r1 = r0 - q1 * |b|        // less than 2 |b|
    a / b = +- (r1 < |b| ? q0 + q1 : q0 + q1 + 1)

    %q = arith.divsi %a, %b : vector<8xi32>
  =>
    %x = arith.sitofp %a : vector<8xi32> to vector<8xf64>
    %z = arith.divf %x, (arith.sitofp %b')      // b' is 1 where b is 0
    %w = arith.trunci (arith.fptosi %z : vector<8xf64> to vector<8xi64>)
    %q = arith.select (%b == 0), -1, %w

Powers of two are shifts. Results are those of scalars: a quotient by zero is -1 and its remainder
the dividend; the least integer divided by -1 is itself. Only vectors with lanes of f64 and casts to
64 bits (AVX-512 DQ) have divisions: `irees.transforms.utils.lanes`. Unsigned integers of 64 bits
stay scalars, and so do short integers divided by constants, which the C compiler multiplies.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, VectorType, f64, i1, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.irees_target import target_of
from irees.transforms.utils.constants import constant_number
from irees.transforms.utils.formula import Formula
from irees.transforms.utils.lanes import Division, has_vector_division

ROUNDED_DOWN = 1 - 2.0**-50
"""A factor that outweighs the roundings of two casts, a division and a product in f64."""
SMALL = 1 << 48
"""Divisors up to this leave rests below 2^62 after the first quotient, which have a sign."""
EQUAL, NOT_EQUAL, LESS, AT_LEAST, UNSIGNED_AT_LEAST = 0, 1, 2, 5, 9
"""Predicates of `arith.cmpi`."""


class Quotient:
    """Writes the division of two vectors of integers in front of an op of `DIVISIONS`."""

    def __init__(self, op: Division):
        self.op = op
        self.f = Formula(op, element=f64)
        self.kind = op.results[0].type
        assert isinstance(self.kind, VectorType)
        self.bits = self.kind.element_type.width.data
        self.signed = op.name not in ("arith.divui", "arith.remui")
        self.known = constant_number(op.rhs)
        """The divisor, if it is a constant other than zero."""
        if self.known == 0:
            self.known = None
        self.is_small = self.known is not None and abs(self.known) <= SMALL

    def integer(self, value: int) -> SSAValue:
        """A constant of the op's type."""
        data = DenseIntOrFPElementsAttr.from_list(self.kind, [value])
        return self.f.insert(arith.ConstantOp(data))

    def compare(self, predicate: int, a: SSAValue, b: SSAValue) -> SSAValue:
        """A comparison of integers in all lanes."""
        return self.f.insert(arith.CmpiOp(a, b, predicate, self.f.kind(i1)))

    def build(self) -> SSAValue:
        """Returns the result of the op."""
        f, op, divisor, zero = self.f, self.op, self.op.rhs, None
        if self.known is None:
            zero = self.compare(EQUAL, op.rhs, self.integer(0))
            divisor = f.select(zero, self.integer(1), op.rhs)
        divide = self._wide if self.bits == 64 else self._short
        if self.known is not None and abs(self.known).bit_count() == 1:
            divide = self._shifted
        quotient, rest = divide(op.lhs, divisor)
        if op.name in ("arith.remsi", "arith.remui"):
            return rest if zero is None else f.select(zero, op.lhs, rest)
        if op.name in ("arith.floordivsi", "arith.ceildivsi"):
            quotient = self._rounded(quotient, rest, divisor)
        return quotient if zero is None else f.select(zero, self.integer(-1), quotient)

    def _rounded(self, quotient: SSAValue, rest: SSAValue, divisor: SSAValue) -> SSAValue:
        """The quotient, one less or more if the rest has another or the same sign as the divisor"""
        f, down = self.f, self.op.name == "arith.floordivsi"
        differ = f.int_op(arith.XOrIOp, rest, divisor)
        moved = self.compare(LESS if down else AT_LEAST, differ, self.integer(0))
        moved = f.int_op(arith.AndIOp, moved, self.compare(NOT_EQUAL, rest, self.integer(0)))
        other = f.int_op(arith.AddiOp, quotient, self.integer(-1 if down else 1))
        return f.select(moved, other, quotient)

    def _shifted(self, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
        """trunc(a / b) and its rest for b = +-2^k: (a + (a < 0 ? 2^k - 1 : 0)) >> k"""
        f, size = self.f, abs(self.known)
        shift = f.integer(size.bit_length() - 1)
        moved = f.int_op(
            arith.AddiOp, a, f.int_op(arith.AndIOp, self._signs(a), f.integer(size - 1))
        )
        whole = f.int_op(arith.AndIOp, moved, f.integer(-size))
        quotient = f.int_op(arith.ShRSIOp, moved, shift)
        if self.known < 0:
            quotient = f.int_op(arith.SubiOp, f.integer(0), quotient)
        return quotient, f.int_op(arith.SubiOp, a, whole)

    def _short(self, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
        """trunc(a / b) and its rest for integers that f64 holds"""
        f, cast = self.f, arith.SIToFPOp if self.signed else arith.UIToFPOp
        x, y = (f.insert(cast(v, f.kind(f64))) for v in (a, b))
        whole = f.insert(arith.FPToSIOp(f.div(x, y), f.kind(i64)))
        quotient = f.insert(arith.TruncIOp(whole, self.kind))
        return quotient, f.int_op(arith.SubiOp, a, f.int_op(arith.MuliOp, quotient, b))

    def _wide(self, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
        """trunc(a / b) and its rest for signed integers of 64 bits"""
        f = self.f
        if self.known is None:
            size = self._signed(b, self._signs(b))
            reciprocal = f.div(f.number(ROUNDED_DOWN), self._as_float(size))
        else:
            # 2^63 is negative, as it is after `absi`.
            size = f.integer(abs(self.known) if abs(self.known) < 1 << 63 else self.known)
            reciprocal = f.number(ROUNDED_DOWN / float(abs(self.known)))
        signs, quotient = self._signs(a), None
        rest = self._signed(a, signs)
        for _ in range(2):
            dividend = self._as_float(rest, signed=self.is_small and quotient is not None)
            part = f.insert(arith.FPToSIOp(f.mul(dividend, reciprocal), f.kind(i64)))
            rest = f.int_op(arith.SubiOp, rest, f.int_op(arith.MuliOp, part, size))
            quotient = part if quotient is None else f.int_op(arith.AddiOp, quotient, part)
        assert quotient is not None
        quotient, rest = self._corrected(quotient, rest, size)
        negative = signs
        if self.known is None or self.known < 0:
            negative = f.int_op(arith.XOrIOp, signs, self._signs(b))
        return self._signed(quotient, negative), self._signed(rest, signs)

    def _as_float(self, size: SSAValue, signed: bool = False) -> SSAValue:
        """A magnitude as f64; the integer 2^63 is negative, unless all are known to be `signed`"""
        number = self.f.insert(arith.SIToFPOp(size, self.f.kind(f64)))
        return number if signed else self.f.absolute(number)

    def _corrected(
        self, quotient: SSAValue, rest: SSAValue, size: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        """q, r  =>  r < size ? (q, r) : (q + 1, r - size), for r below 2 size"""
        f = self.f
        less = f.int_op(arith.SubiOp, rest, size)
        if self.is_small:
            # A difference of small numbers has a sign, which needs no mask.
            fits = self._signs(less)
            rest = f.int_op(arith.AddiOp, less, f.int_op(arith.AndIOp, fits, size))
            more = f.int_op(arith.AddiOp, fits, f.integer(1))
            return f.int_op(arith.AddiOp, quotient, more), rest
        beyond = self.compare(UNSIGNED_AT_LEAST, rest, size)
        more = f.int_op(arith.AddiOp, quotient, f.integer(1))
        return f.select(beyond, more, quotient), f.select(beyond, less, rest)

    def _signs(self, value: SSAValue) -> SSAValue:
        """-1 where a number is negative, else 0"""
        return self.f.int_op(arith.ShRSIOp, value, self.f.integer(63))

    def _signed(self, size: SSAValue, negative: SSAValue) -> SSAValue:
        """-size where `negative` is -1, size where it is 0; of a number and its signs, its size"""
        return self.f.int_op(arith.SubiOp, self.f.int_op(arith.XOrIOp, size, negative), negative)


@dataclass(frozen=True)
class ExpandDivisionsPass(ModulePass):
    """Expands integer divisions of vectors into arithmetic on f64."""

    name = "irees-expand-divisions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for inner in list(op.walk()):
            if not isinstance(inner, Division) or not has_vector_division(inner, target):
                continue
            if isinstance(inner.result.type, VectorType):
                Rewriter.replace_op(inner, [], [Quotient(inner).build()])
