"""
Every rule of value bounds: the form that it gives is the result, or limits it.

Forms are of integers without bounds; that a form which may not fit is dropped is what
`test_range_rules` proves of every width.
"""

from __future__ import annotations

import pytest

z3 = pytest.importorskip("z3")

from irees.analysis import _bound_rules as rules  # noqa: E402
from irees.testing.prover import WIDTHS, division, prove  # noqa: E402

x, y, c, q, r, q2, r2, k = z3.Ints("x y c q r q2 r2 k")


def identity():
    """The form is the definition of the op."""


def signed_division():
    down, up = division("floor", x, c, q2, r2), division("ceil", x, c, q2, r2)
    truncated = division("truncate", x, c, q, r)
    prove(q == q2, truncated, down, c > 0, x >= 0)
    prove(q == q2, truncated, up, c > 0, x <= 0)
    # a / c = (-a) / (-c), however it is rounded
    prove(q == q2, division("truncate", x, c, q, r), division("truncate", -x, -c, q2, r2))


def signed_limits():
    truncated = division("truncate", x, c, q, r)
    prove(q2 <= q, truncated, division("floor", x, c, q2, r2), c > 0)
    prove(q <= q2, truncated, division("ceil", x, c, q2, r2), c > 0)


def ceiling():
    up = division("ceil", x, c, q, r)
    prove(q == q2, up, division("floor", x + c - 1, c, q2, r2), c > 0)


def split_quotient():
    # (c k + x) floordiv c = k + x floordiv c: how forms are taken apart. Two quotients whose
    # remainders are both in [0, c) differ by less than 1; products are unknowns of their own.
    whole, part, shift = z3.Ints("cq cq2 ck")
    between = [c > 0, 0 <= r, r < c, 0 <= r2, r2 < c]
    gap = whole - part - shift
    prove(z3.And(-c < gap, gap < c), whole + r == shift + x, part + r2 == x, *between)
    prove(k == 0, c > 0, -c < k * c, k * c < c)
    prove(r == r2, whole + r == shift + x, part + r2 == x, gap == 0, *between)


def positive_remainder():
    # A dividend that is not negative has one quotient, however it is rounded.
    rounded = [division(mode, x, c, q, r) for mode in ("truncate", "floor")]
    prove(z3.And(0 <= r, r < c), rounded[0], c > 0, x >= 0)
    prove(z3.And(0 <= r, r < c), rounded[1], c > 0, x >= 0)
    split_quotient()


def remainder_limits():
    given = [division("truncate", x, y, q, r)]
    prove(z3.And(1 - y <= r, r <= y - 1), *given, y >= 1)
    prove(z3.And(y + 1 <= r, r <= -y - 1), *given, y <= -1)
    prove(z3.And(0 <= r, r <= x), *given, x >= 0)
    prove(z3.And(x <= r, r <= 0), *given, x <= 0)


def unsigned_remainder_limits():
    prove(z3.And(0 <= r, r <= y - 1), division("floor", x, y, q, r), x >= 0, y >= 1)


def shift():
    for amount in range(64):
        prove(x * (1 << amount) == x * z3.IntVal(2**amount))


def extreme():
    low = z3.If(x < y, x, y)
    high = z3.If(x < y, y, x)
    prove(z3.And(low <= x, low <= y, high >= x, high >= y))


def unsigned_extreme():
    for width in WIDTHS:
        a, b = z3.BitVecs("a b", width)
        given = [a >= 0, b >= 0]
        low, high = z3.If(z3.ULT(a, b), a, b), z3.If(z3.ULT(a, b), b, a)
        prove(z3.And(low >= 0, low <= a, low <= b, high >= a, high >= b), *given)


def conjunction():
    for width in WIDTHS:
        a, b = z3.BitVecs("a b", width)
        prove(z3.And(a & b >= 0, a & b <= b), b >= 0)


def disjunction():
    for width in WIDTHS:
        a, b = z3.BitVecs("a b", width)
        wide = z3.ZeroExt(1, a) + z3.ZeroExt(1, b)
        both = z3.ULE(z3.ZeroExt(1, a | b), wide)
        prove(z3.And((a | b) >= a, (a | b) >= b, both), a >= 0, b >= 0)


def choice():
    one = z3.Bool("one")
    result = z3.If(one, x, y)
    prove(z3.And(x <= result, result <= y), x <= y)
    prove(z3.And(y <= result, result <= x), y <= x)


def extension():
    for width in WIDTHS:
        a = z3.BitVec("a", width)
        prove(z3.ZeroExt(8, a) >= 0)
        prove(z3.ZeroExt(8, a) == z3.SignExt(8, a), a >= 0)


def cut():
    for width in WIDTHS:
        a = z3.BitVec("a", width + 8)
        half = 1 << (width - 1)
        prove(z3.SignExt(8, z3.Extract(width - 1, 0, a)) == a, a >= -half, a < half)


def delinearization():
    # Of x in the basis (k, a, b): (x mod a b) floordiv b is what peeling sizes off gives.
    for a, b in ((3, 5), (2, 7), (4, 4)):
        q1, r1, q3, r3 = z3.Ints("q1 r1 q3 r3")
        inner = [
            division("floor", x, z3.IntVal(b), q, r),
            division("floor", q, z3.IntVal(a), q2, r2),
        ]
        whole = [division("floor", x, z3.IntVal(a * b), q1, r1)]
        outer = [division("floor", r1, z3.IntVal(b), q3, r3)]
        prove(z3.And(q2 == q1, r2 == q3, r == r3), *inner, *whole, *outer)
    z = z3.Int("z")
    prove(z3.And(0 <= z, z <= k * c - 1), division("floor", z, c, q, r), c > 0, 0 <= q, q <= k - 1)


def linearization():
    # disjoint coordinates below their sizes
    prove(x * c + y <= k * c - 1, 0 <= x, x <= k - 1, 0 <= y, y <= c - 1, c > 0)


OBLIGATIONS = {
    "arith.constant": identity, "arith.addi": identity, "arith.subi": identity,
    "arith.muli": identity, "arith.shli": shift, "arith.shrsi": split_quotient,
    "arith.shrui": split_quotient, "arith.divsi": signed_division, "arith.divui": split_quotient,
    "arith.floordivsi": split_quotient, "arith.ceildivsi": ceiling, "arith.ceildivui": ceiling,
    "arith.remsi": positive_remainder, "arith.remui": positive_remainder,
    "arith.extsi": identity, "arith.trunci": cut, "arith.index_cast": cut,
    "arith.extui": extension, "arith.index_castui": extension,
    "affine.apply": identity, "affine.delinearize_index": delinearization,
    "affine.linearize_index": linearization, "tensor.dim": identity, "memref.dim": identity,
    "tensor.rank": identity, "memref.rank": identity,
}  # fmt: skip
LIMITS = {
    "arith.select": choice, "arith.minsi": extreme, "arith.maxsi": extreme,
    "arith.minui": unsigned_extreme, "arith.maxui": unsigned_extreme,
    "arith.divsi": signed_limits, "arith.remsi": remainder_limits,
    "arith.remui": unsigned_remainder_limits, "arith.andi": conjunction,
    "arith.ori": disjunction, "arith.extui": extension, "arith.index_castui": extension,
    "affine.min": extreme, "affine.max": extreme, "util.assume.int": identity,
    "linalg.index": identity,
}  # fmt: skip


def test_every_rule_has_an_obligation():
    assert OBLIGATIONS.keys() == rules.EXACT.keys()
    assert LIMITS.keys() == rules.LIMITS.keys()


@pytest.mark.parametrize(
    "obligation",
    dict.fromkeys((*OBLIGATIONS.values(), *LIMITS.values())),
    ids=lambda each: each.__name__,
)
def test_rule(obligation):
    obligation()
