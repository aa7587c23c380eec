"""
Interval rules of integer ops, shared by the compiler and the proofs.

A rule maps the intervals of the operands to an interval of the exact result, before wrapping;
`integer_ranges` uses the interval only if it fits the type. Rules compute with the operations of
`Sem`, on Python integers in the compiler and on z3 terms in `tests/proofs`. The proofs show that
operands inside their intervals never give a result outside the rule's interval. `RULES` lists the
signed and the unsigned rule of each op; a rule without a proof fails a test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Number = Any
Interval = tuple[Number, Number]


class Sem:
    """The operations that rules use, on Python integers."""

    def lowest(self, *values: Number) -> Number:
        """Returns the smallest value."""
        return min(values)

    def greatest(self, *values: Number) -> Number:
        """Returns the largest value."""
        return max(values)

    def choose(self, condition: Any, yes: Number, no: Number) -> Number:
        """Returns `yes` if the condition holds, else `no`."""
        return yes if condition else no

    def both(self, *conditions: Any) -> Any:
        """Whether all conditions hold."""
        return all(conditions)

    def either(self, *conditions: Any) -> Any:
        """Whether any condition holds."""
        return any(conditions)

    def floor(self, a: Number, b: Number) -> Number:
        """a / b rounded down, for nonzero b."""
        return a // b

    def ceil(self, a: Number, b: Number) -> Number:
        """a / b rounded up, for nonzero b."""
        return -(-a // b)

    def truncate(self, a: Number, b: Number) -> Number:
        """a / b rounded toward zero, for nonzero b."""
        return -(-a // b) if (a < 0) != (b < 0) else a // b

    def magnitude(self, a: Number) -> Number:
        """Returns the absolute value."""
        return abs(a)

    def power(self, a: Number) -> Number:
        """Returns 2^a, for a small nonnegative a."""
        return 1 << a

    def is_power(self, a: Number) -> Any:
        """Whether a number is a power of two."""
        return a > 0 and a & (a - 1) == 0

    def mask(self, a: Number) -> Number:
        """Returns the smallest 2^n - 1 >= a, for nonnegative a."""
        return (1 << a.bit_length()) - 1


Outcome = tuple[Number, Number, Any]
"""Lower end, upper end, and whether the rule applies."""

Rule = Callable[[Any, Interval, Interval, int], Outcome]


def add(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a + b"""
    return a[0] + b[0], a[1] + b[1], True


def sub(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a - b"""
    return a[0] - b[1], a[1] - b[0], True


def _corners(s: Any, f: Callable[[Number, Number], Number], a: Interval, b: Interval) -> Interval:
    values = [f(x, y) for x in a for y in b]
    return s.lowest(*values), s.greatest(*values)


def mul(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a * b; the extremes are at the corners"""
    low, high = _corners(s, lambda x, y: x * y, a, b)
    return low, high, True


def _not_zero(s: Any, b: Interval) -> Any:
    return s.either(b[0] > 0, b[1] < 0)


def _quotient(s: Any, f: Any, a: Interval, b: Interval) -> Outcome:
    # If the divisor has one sign, the quotient is monotone in both operands.
    defined = _not_zero(s, b)
    safe = (s.choose(defined, b[0], 1), s.choose(defined, b[1], 1))
    low, high = _corners(s, f, a, safe)
    return low, high, defined


def truncated(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a / b rounded toward zero, for nonzero b"""
    return _quotient(s, s.truncate, a, b)


def floored(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a / b rounded down, for nonzero b"""
    return _quotient(s, s.floor, a, b)


def ceiled(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a / b rounded up, for nonzero b"""
    return _quotient(s, s.ceil, a, b)


def remainder(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a - (a / b) * b: between 0 and a, below |b| in magnitude; a itself if |a| < |b|"""
    low, high = s.lowest(a[0], 0), s.greatest(a[1], 0)
    defined = _not_zero(s, b)
    most = s.greatest(s.magnitude(b[0]), s.magnitude(b[1])) - 1
    least = s.lowest(s.magnitude(b[0]), s.magnitude(b[1]))
    small = s.both(defined, -least < a[0], a[1] < least)
    low = s.choose(small, a[0], s.choose(defined, s.greatest(low, -most), low))
    high = s.choose(small, a[1], s.choose(defined, s.lowest(high, most), high))
    return low, high, True


def minimum(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """min(a, b)"""
    return s.lowest(a[0], b[0]), s.lowest(a[1], b[1]), True


def maximum(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """max(a, b)"""
    return s.greatest(a[0], b[0]), s.greatest(a[1], b[1]), True


def _powers(s: Any, b: Interval, width: int) -> tuple[Interval, Any]:
    fits = s.both(b[0] >= 0, b[1] < width)
    return (s.power(s.choose(fits, b[0], 0)), s.power(s.choose(fits, b[1], 0))), fits


def shift_left(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a * 2^b, for b less than the width"""
    powers, fits = _powers(s, b, width)
    low, high, _ = mul(s, a, powers, width)
    return low, high, fits


def shift_right(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a / 2^b rounded down, for b less than the width"""
    powers, fits = _powers(s, b, width)
    low, high = _corners(s, s.floor, a, powers)
    return low, high, fits


def conjunction(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a & b of nonnegative numbers: at most the smaller operand"""
    return 0, s.lowest(a[1], b[1]), True


def disjunction(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a | b of nonnegative numbers: at least the larger operand, and no more bits than it"""
    return s.greatest(a[0], b[0]), s.mask(s.greatest(a[1], b[1])), True


def difference(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a ^ b of nonnegative numbers: no more bits than the larger operand"""
    return 0, s.mask(s.greatest(a[1], b[1])), True


def aligned(s: Any, a: Interval, b: Interval, width: int) -> Outcome:
    """a rounded up to a multiple of b, for a constant power of two b"""
    known = s.both(b[0] == b[1], s.is_power(b[0]))
    step = s.choose(known, b[0], 1)
    return s.ceil(a[0], step) * step, s.ceil(a[1], step) * step, known


@dataclass(frozen=True)
class Reading:
    """The signed and the unsigned rule of an op; None if it has none."""

    signed: Rule | None
    unsigned: Rule | None


RULES: dict[str, Reading] = {
    "arith.addi": Reading(add, add),
    "arith.subi": Reading(sub, sub),
    "arith.muli": Reading(mul, mul),
    "arith.divsi": Reading(truncated, None),
    "arith.divui": Reading(None, floored),
    "arith.floordivsi": Reading(floored, None),
    "arith.ceildivsi": Reading(ceiled, None),
    "arith.ceildivui": Reading(None, ceiled),
    "arith.remsi": Reading(remainder, None),
    "arith.remui": Reading(None, remainder),
    "arith.minsi": Reading(minimum, None),
    "arith.maxsi": Reading(maximum, None),
    "arith.minui": Reading(None, minimum),
    "arith.maxui": Reading(None, maximum),
    "arith.shli": Reading(shift_left, shift_left),
    "arith.shrsi": Reading(shift_right, None),
    "arith.shrui": Reading(None, shift_right),
    "arith.andi": Reading(None, conjunction),
    "arith.ori": Reading(None, disjunction),
    "arith.xori": Reading(None, difference),
    "util.align": Reading(None, aligned),
}
