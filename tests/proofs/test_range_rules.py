"""
Every interval rule is right: of numbers without bounds, so for every width at once.

A rule's interval is of the exact result; that an exact result which fits is the wrapped one is an
obligation of its own, for each width. Bitwise rules are proved on bit vectors of each width.
"""

from __future__ import annotations

from itertools import product

import pytest

z3 = pytest.importorskip("z3")

from irees.analysis import _range_rules as rules  # noqa: E402
from irees.analysis.integer_ranges import (  # noqa: E402
    IntRange,
    binary_range,
    compare_ranges,
    resized,
)
from irees.testing.prover import WIDTHS, Terms, division, prove, refuted  # noqa: E402


def within(x, interval):
    return z3.And(interval[0] <= x, x <= interval[1])


def operands():
    x, y, a, b, c, d = z3.Ints("x y a b c d")
    return x, y, (a, b), (c, d), [within(x, (a, b)), within(y, (c, d))]


def linear(rule, result):
    def obligation():
        s = Terms()
        x, y, a, b, given = operands()
        low, high, known = rule(s, a, b, 64)
        prove(within(result(s, x, y), (low, high)), *given, known)

    return obligation


def multiplication():
    # Over the reals, where z3 decides products; the integers are among them.
    s = Terms()
    x, y, a, b, c, d = z3.Reals("x y a b c d")
    low, high, _ = rules.mul(s, (a, b), (c, d), 64)
    prove(within(x * y, (low, high)), within(x, (a, b)), within(y, (c, d)))


def quotient(rule, mode):
    def obligation():
        s = Terms()
        x, y, a, b, given = operands()
        low, high, known = rule(s, a, b, 64)
        result = getattr(s, mode)(x, y)
        for each in product((a[0], a[1], x), (b[0], b[1], y)):
            getattr(s, mode)(*each)
        prove(within(result, (low, high)), *given, known, *s.lemmas())

    return obligation


def remainder():
    s = Terms()
    x, y, a, b, given = operands()
    r = z3.Int("r")
    low, high, _ = rules.remainder(s, a, b, 64)
    # A division by zero leaves the dividend; the rest is `remainder_lemma`.
    size = s.magnitude(y)
    sign = z3.If(x >= 0, z3.And(0 <= r, r <= x), z3.And(x <= r, r <= 0))
    small = z3.Implies(z3.And(y != 0, s.magnitude(x) < size), r == x)
    smaller = z3.Implies(y != 0, s.magnitude(r) < size)
    zero = z3.Implies(y == 0, r == x)
    prove(within(r, (low, high)), *given, sign, small, smaller, zero)


def shift_left():
    s = Terms()
    x, p, a, b, c, d = z3.Reals("x p a b c d")
    # The powers of the ends are the ends of the powers: `test_powers_grow`.
    low, high, _ = rules.mul(s, (a, b), (c, d), 64)
    prove(within(x * p, (low, high)), within(x, (a, b)), within(p, (c, d)))


def shift_right():
    s = Terms()
    x, y, a, b, given = operands()
    low, high, known = rules.shift_right(s, a, b, 64)
    p = s.power(y)
    for each in a, (x,):
        for dividend in each:
            for power in (s.power(b[0]), s.power(b[1]), p):
                s.floor(dividend, power)
    fits = z3.And(b[0] >= 0, b[1] < 64)
    chosen = [z3.Implies(fits, z3.If(fits, e, 0) == e) for e in b]
    prove(within(s.floor(x, p), (low, high)), *given, known, *chosen, *s.lemmas())


class Bits(Terms):
    """Bit vectors, read as unsigned."""

    def __init__(self, width):
        super().__init__()
        self.width = width

    def lowest(self, *values):
        return values[0] if len(values) == 1 else z3.If(z3.ULT(*values), *values)

    def greatest(self, *values):
        return values[0] if len(values) == 1 else z3.If(z3.UGT(*values), *values)

    def mask(self, a):
        for shift in (1, 2, 4, 8, 16):
            if shift < self.width:
                a = a | z3.LShR(a, shift)
        return a


def bitwise(rule, f):
    def obligation(width):
        s = Bits(width)
        x, y, a, b, c, d = z3.BitVecs("x y a b c d", width)
        low, high, _ = rule(s, (a, b), (c, d), width)
        given = [z3.ULE(a, x), z3.ULE(x, b), z3.ULE(c, y), z3.ULE(y, d)]
        prove(z3.And(z3.ULE(low, f(x, y)), z3.ULE(f(x, y), high)), *given)

    return obligation


def alignment(width):
    # One more bit, so that nothing wraps that the rule's caller would not see.
    x, a, b, step = z3.BitVecs("x a b step", width + 1)
    half = z3.BitVecVal(1 << width, width + 1)

    def up(v):
        return (v + (step - 1)) & ~(step - 1)

    def wrapped(v):
        return z3.Extract(width - 1, 0, up(v))

    power = z3.And(step != 0, step & (step - 1) == 0, z3.ULT(step, half))
    given = [power, z3.ULE(a, x), z3.ULE(x, b), z3.ULT(b, half), z3.ULT(up(b), half)]
    narrow = z3.ZeroExt(1, wrapped(x))
    prove(z3.And(z3.ULE(up(a), narrow), z3.ULE(narrow, up(b))), *given)


OBLIGATIONS = {
    rules.add: linear(rules.add, lambda s, x, y: x + y),
    rules.sub: linear(rules.sub, lambda s, x, y: x - y),
    rules.minimum: linear(rules.minimum, lambda s, x, y: s.lowest(x, y)),
    rules.maximum: linear(rules.maximum, lambda s, x, y: s.greatest(x, y)),
    rules.mul: multiplication,
    rules.truncated: quotient(rules.truncated, "truncate"),
    rules.floored: quotient(rules.floored, "floor"),
    rules.ceiled: quotient(rules.ceiled, "ceil"),
    rules.remainder: remainder,
    rules.shift_left: shift_left,
    rules.shift_right: shift_right,
}
BITWISE = {
    rules.conjunction: bitwise(rules.conjunction, lambda x, y: x & y),
    rules.disjunction: bitwise(rules.disjunction, lambda x, y: x | y),
    rules.difference: bitwise(rules.difference, lambda x, y: x ^ y),
    rules.aligned: alignment,
}


def test_every_rule_has_an_obligation():
    used = {r for each in rules.RULES.values() for r in (each.signed, each.unsigned) if r}
    assert used == OBLIGATIONS.keys() | BITWISE.keys()


@pytest.mark.parametrize("rule", OBLIGATIONS, ids=lambda rule: rule.__name__)
def test_rule(rule):
    OBLIGATIONS[rule]()


@pytest.mark.parametrize("rule", BITWISE, ids=lambda rule: rule.__name__)
def test_bitwise_rule(rule):
    for width in WIDTHS:
        BITWISE[rule](width)


@pytest.mark.parametrize("mode", ["floor", "ceil", "truncate"])
def test_quotients_grow_with_the_dividend(mode):
    x1, x2, y, q1, q2, r1, r2 = z3.Ints("x1 x2 y q1 q2 r1 r2")
    given = [division(mode, x1, y, q1, r1), division(mode, x2, y, q2, r2), x1 <= x2]
    prove(z3.Implies(y > 0, q1 <= q2), *given)
    prove(z3.Implies(y < 0, q1 >= q2), *given)


@pytest.mark.parametrize("mode", ["floor", "ceil", "truncate"])
@pytest.mark.parametrize("positive", [True, False])
def test_quotients_shrink_with_the_divisor(mode, positive):
    x, y1, y2, q1, q2, r1, r2 = z3.Ints("x y1 y2 q1 q2 r1 r2")
    given = [division(mode, x, y1, q1, r1), division(mode, x, y2, q2, r2), y1 <= y2]
    given.append(y1 > 0 if positive else y2 < 0)
    prove(z3.Implies(x >= 0, q1 >= q2), *given)
    prove(z3.Implies(x <= 0, q1 <= q2), *given)


def test_remainder_lemma():
    x, y, q, r = z3.Ints("x y q r")
    given = [division("truncate", x, y, q, r)]
    size = z3.If(y > 0, y, -y)
    prove(z3.If(x >= 0, z3.And(0 <= r, r <= x), z3.And(x <= r, r <= 0)), *given)
    prove(z3.Implies(z3.And(-size < x, x < size), r == x), *given)
    prove(z3.And(-size < r, r < size), *given)


def test_powers_grow():
    assert all(1 << n < 1 << (n + 1) for n in range(128))


@pytest.mark.parametrize("width", [*WIDTHS, 64])
def test_what_fits_does_not_wrap(width):
    e, v, k = z3.Ints("e v k")
    half = 1 << (width - 1)
    congruent = v == e + k * (2 * half)
    prove(v == e, congruent, -half <= e, e < half, -half <= v, v < half)
    prove(v == e, congruent, 0 <= e, e < 2 * half, 0 <= v, v < 2 * half)


def test_the_naive_quotient_is_refuted():
    x, hi, q, r, q2, r2 = z3.Ints("x hi q r q2 r2")
    given = [division("truncate", x, z3.IntVal(33), q, r), x <= hi, x >= -20, hi == -4]
    assert refuted(q <= q2, *given, division("floor", hi, z3.IntVal(33), q2, r2))


WRAPPED = {
    "arith.addi": lambda x, y: x + y,
    "arith.subi": lambda x, y: x - y,
    "arith.muli": lambda x, y: x * y,
    "arith.andi": lambda x, y: x & y,
    "arith.ori": lambda x, y: x | y,
    "arith.xori": lambda x, y: x ^ y,
}


def value_ranges(width):
    count = 1 << width
    half = count >> 1
    signed = [IntRange.signed(width, a, b) for a in range(-half, half) for b in range(a, half)]
    return signed + [IntRange.unsigned(width, a, b) for a in range(count) for b in range(a, count)]


@pytest.mark.parametrize("width", [1, 2, 3])
def test_ranges_hold_what_they_say(width):
    """Unions, meets, casts, comparisons and ring ops on all ranges of few bits."""
    members = {
        each: [v for v in range(1 << width) if each.contains(v)] for each in value_ranges(width)
    }
    half = 1 << (width - 1)

    def number(v):
        return v - 2 * half if v >= half else v

    orders = {
        0: lambda x, y: x == y, 1: lambda x, y: x != y,
        2: lambda x, y: number(x) < number(y), 3: lambda x, y: number(x) <= number(y),
        4: lambda x, y: number(x) > number(y), 5: lambda x, y: number(x) >= number(y),
        6: lambda x, y: x < y, 7: lambda x, y: x <= y, 8: lambda x, y: x > y, 9: lambda x, y: x >= y,
    }  # fmt: skip
    for a, xs in members.items():
        assert a.value is None or len(xs) == 1
        for signed in (True, False):
            for new in (1, 2, 3, 5):
                other = resized(a, new, signed=signed)
                assert all(other.contains(number(x) if signed else x) for x in xs)
        for b, ys in list(members.items())[:: 1 if width < 3 else 3]:
            union, meet = a.union(b), a.meet(b)
            assert all(union.contains(v) for v in (*xs, *ys))
            assert all(meet.contains(v) for v in set(xs) & set(ys))
            for predicate, order in orders.items():
                found = compare_ranges(predicate, a, b)
                if found is not None:
                    assert all(order(x, y) == found for x in xs for y in ys)
            for name, f in WRAPPED.items():
                result = binary_range(name, a, b)
                assert all(result.contains(f(x, y)) for x in xs for y in ys)
