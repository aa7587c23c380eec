"""Every rule of the divisibility analysis: a divisor of the operands is one of the result."""

from __future__ import annotations

from math import gcd

import pytest

z3 = pytest.importorskip("z3")

from irees.analysis import divisibility as rules  # noqa: E402
from irees.testing.prover import prove, refuted  # noqa: E402

# x = a i and y = b j are multiples of a = g m and b = g n, where g is what a rule answers; a
# witness of divisibility is the number to multiply g with.
g, m, n, i, j, c, q, r, k = z3.Ints("g m n i j c q r k")


def sums():
    x, y = (g * m) * i, (g * n) * j
    prove(x + y == g * (m * i + n * j))
    prove(x - y == g * (m * i - n * j))


def products():
    a, b = z3.Ints("a b")
    prove((a * i) * (b * j) == (a * b) * (i * j))


def quotients():
    # a = c m, so the quotient of a i by c is m i, whichever way it is rounded.
    prove((c * m) * i == c * (m * i) + 0)
    prove(q == m, z3.And(c > 0, c * q + r == c * m, -c < r, r < c), r == 0)


def remainders():
    prove((g * m) * i - (g * n) * q == g * (m * i - n * q))


def wraps():
    # 2^width = g n: what is left of x after taking some 2^width away.
    prove((g * m) * i + k * (g * n) == g * (m * i + k * n))


OBLIGATIONS = {
    rules.sum_rule: sums,
    rules.product_rule: products,
    rules.quotient_rule: quotients,
    rules.modulo_rule: remainders,
    rules.wrapped_rule: wraps,
}


def test_every_rule_has_an_obligation():
    assert OBLIGATIONS.keys() == set(rules.RULES)


@pytest.mark.parametrize("rule", OBLIGATIONS, ids=lambda rule: rule.__name__)
def test_rule(rule):
    OBLIGATIONS[rule]()


def test_rules_on_small_numbers():
    """The rules themselves, where the obligations are about what they compute."""
    for a in range(13):
        xs = [a * i for i in range(-6, 7)]
        for b in range(13):
            ys = [b * j for j in range(-6, 7)]
            for x in xs:
                for y in ys:
                    assert _divides(rules.sum_rule(a, b), x + y, x - y, x, y)
                    assert _divides(rules.product_rule(a, b), x * y)
                if b:
                    quotient = rules.quotient_rule(a, b)
                    assert _divides(quotient, x // b, -(-x // b), int(x / b))
                    assert _divides(rules.modulo_rule(a, b), x % b)
        for width in range(1, 6):
            assert all(_divides(rules.wrapped_rule(a, width), x % (1 << width)) for x in xs)


def _divides(divisor, *values):
    return all(v % divisor == 0 if divisor else v == 0 for v in values)


def test_an_odd_factor_does_not_survive_overflow():
    # What IREE's analysis says of 12 - 18, unsigned, in 64 bits.
    assert ((12 - 18) % (1 << 64)) % gcd(12, 18)
    x, y = z3.BitVecs("x y", 16)
    multiples = [z3.URem(x, 12) == 0, z3.URem(y, 18) == 0]
    assert refuted(z3.URem(x - y, 6) == 0, *multiples)
    prove(z3.URem(x - y, 2) == 0, *multiples)
