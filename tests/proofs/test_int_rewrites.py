"""Every rewrite of integer arithmetic: what it puts in the place of an op is the same number."""

from __future__ import annotations

import pytest

z3 = pytest.importorskip("z3")

from xdsl.pattern_rewriter import RewritePattern  # noqa: E402

from irees.testing.prover import WIDTHS, division, prove  # noqa: E402
from irees.transforms.global_opt import optimize_int_arithmetic  # noqa: E402
from irees.transforms.utils import int_casts, int_narrowing  # noqa: E402

x, y, c, q, r, q2, r2 = z3.Ints("x y c q r q2 r2")


def constants():
    """A value between c and c is c."""
    prove(x == c, c <= x, x <= c)


def unchanged():
    prove(r == x, division("truncate", x, y, q, r), z3.If(y > 0, x < y, x < -y), x >= 0)
    prove(r == x, division("truncate", x, y, q, r), z3.If(y > 0, -y < x, y < x), x <= 0)
    low, high = z3.If(x < y, x, y), z3.If(x < y, y, x)
    prove(z3.And(low == x, high == y), x <= y)
    # (x c) / c, exact when the product fits: 0 is the remainder of the quotient x.
    prove(division("floor", x * c, c, x, z3.IntVal(0)), c > 0)
    prove(division("truncate", x * c, c, x, z3.IntVal(0)), c > 0)
    for width in WIDTHS:
        a, step = z3.BitVecs("a step", width)
        given = [step != 0, step & (step - 1) == 0, a & (step - 1) == 0]
        prove((a + (step - 1)) & ~(step - 1) == a, *given)


def multiples():
    # c k rem c: 0 is a remainder, and there is only one (`split_quotient` of the bound rules).
    k = z3.Int("k")
    for mode in ("floor", "truncate"):
        prove(division(mode, c * k, c, k, z3.IntVal(0)), c != 0)


def equal():
    for width in WIDTHS:
        a = z3.BitVec("a", width)
        prove(a - a == 0)


def unsigned():
    """No sign, no difference: both readings are one number, and so are its quotients."""
    for width in WIDTHS:
        a = z3.BitVec("a", width)
        prove(z3.BV2Int(a, True) == z3.BV2Int(a, False), a >= 0)
        b = z3.BitVec("b", width)
        low, high = z3.If(a < b, a, b), z3.If(a < b, b, a)
        ulow, uhigh = z3.If(z3.ULT(a, b), a, b), z3.If(z3.ULT(a, b), b, a)
        prove(z3.And(low == ulow, high == uhigh), a >= 0, b >= 0)
        prove(z3.SignExt(8, a) == z3.ZeroExt(8, a), a >= 0)
    down, toward = division("floor", x, y, q, r), division("truncate", x, y, q, r)
    prove(down == toward, x >= 0, y > 0)


def moved_casts():
    """A cut, which a cast to a 32-bit index is, of a sum is the sum of the cuts."""
    for width in (2, 4, 8, 16, 32):
        a, b = z3.BitVecs("a b", 2 * width)

        def cut(v, width=width):
            return z3.Extract(width - 1, 0, v)

        prove(z3.And(cut(a + b) == cut(a) + cut(b), cut(a - b) == cut(a) - cut(b)))
        if width <= 8:
            prove(cut(a * b) == cut(a) * cut(b))
        fits = [z3.ULT(a, 1 << width), z3.ULT(b, 1 << width)]
        prove(z3.ULT(a, b) == z3.ULT(cut(a), cut(b)), *fits)
        # Quotients and remainders are of numbers, and the cut of a small number is the number.
        prove(z3.ZeroExt(width, cut(a)) == a, *fits)


def cast_chains():
    for width in (4, 8, 16):
        a = z3.BitVec("a", width)
        for wide in (z3.SignExt(width, a), z3.ZeroExt(width, a)):
            prove(z3.Extract(width - 1, 0, wide) == a)


def narrowed():
    moved_casts()
    for width in (2, 4, 8, 16, 32):
        a, b = z3.BitVecs("a b", 2 * width)
        half = 1 << (width - 1)
        small = [a >= -half, a < half, b >= -half, b < half]

        def cut(v, width=width):
            return z3.Extract(width - 1, 0, v)

        prove(z3.SignExt(width, cut(a)) == a, *small)
        prove((a < b) == (cut(a) < cut(b)), *small)
        prove(z3.And(cut(a & b) == cut(a) & cut(b), cut(a | b) == cut(a) | cut(b)))


def narrowed_to_float():
    """A number that fits with a sign is the same number in 32 bits, and so is its float."""
    for width in (2, 4, 8, 16, 32):
        a = z3.BitVec("a", 2 * width)
        half = 1 << (width - 1)
        narrow = z3.Extract(width - 1, 0, a)
        prove(
            z3.BV2Int(narrow, is_signed=True) == z3.BV2Int(a, is_signed=True), a >= -half, a < half
        )
        # uitofp is replaced only if the number is not negative.
        prove(z3.BV2Int(narrow, is_signed=True) == z3.BV2Int(a), a >= 0, a < half)


def narrowed_loop():
    # A counter below its bound, plus a step, still fits.
    i, bound, step = z3.Ints("i bound step")
    prove(i + step < 1 << 31, i < bound, bound + step < 1 << 31)


def structural():
    """The same op on the same numbers, under another name or shape."""


OBLIGATIONS = {
    optimize_int_arithmetic.ConstantValues: constants,
    optimize_int_arithmetic.UnchangedValues: unchanged,
    optimize_int_arithmetic.RemainderOfMultiple: multiples,
    optimize_int_arithmetic.EqualOperands: equal,
    optimize_int_arithmetic.Canonicalization: structural,
    int_casts.Unsigned: unsigned,
    int_casts.CastOfProducer: moved_casts,
    int_casts.CastOfCast: cast_chains,
    int_narrowing.NarrowElementwise: narrowed,
    int_narrowing.NarrowCmpi: narrowed,
    int_narrowing.NarrowToFloat: narrowed_to_float,
    int_narrowing.NarrowLoop: narrowed_loop,
    int_narrowing.NarrowBroadcast: structural,
    int_narrowing.NarrowAssumption: structural,
    int_narrowing.FoldCastChain: cast_chains,
}


def test_every_rewrite_has_an_obligation():
    modules = (optimize_int_arithmetic, int_casts, int_narrowing)
    found = {
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type)
        if issubclass(each, RewritePattern) and each.__module__ == module.__name__
    }
    assert found == OBLIGATIONS.keys()


@pytest.mark.parametrize(
    "obligation", dict.fromkeys(OBLIGATIONS.values()), ids=lambda each: each.__name__
)
def test_rewrite(obligation):
    obligation()
