"""What the prover concludes of an integer op holds for what a machine computes, wrapped or not."""

from __future__ import annotations

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from irees.analysis.accesses.polynomials import Polynomial
from irees.analysis.accesses.samples import Sampler
from irees.analysis.accesses.scalars import BINARY
from irees.analysis.accesses.terms import AtLeast, Condition, Every, Some, Space, opposite
from irees.analysis.accesses.walk import Walk
from irees.testing import profiles

FACTOR = profiles.load()
RANGES = [(0, 1), (1, 100), (-5, 7), (0, 1 << 31), (0, 1 << 40), (0, 1 << 62), (-(1 << 63), -1)]
RANGES += [(0, (1 << 63) - 1), (-(1 << 63), (1 << 63) - 1)]
CONSTANTS = [0, 1, -1, 2, 3, 7, 8, 63, 255, -16, (1 << 32) - 1, (1 << 62), (1 << 63) - 1]
SHIFTS = {"shli", "shrui", "shrsi"}
DIVISIONS = {name for name in BINARY if "div" in name or "rem" in name}


def wrapped(x: int, bits: int) -> int:
    """Two's complement of a width."""
    return (x + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def computed(name: str, a: int, b: int, bits: int) -> int:
    """What `arith` defines, of two values in two's complement."""
    mask = (1 << bits) - 1
    ua, ub = a & mask, b & mask
    toward_0 = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
    value = {
        "addi": lambda: a + b,
        "subi": lambda: a - b,
        "muli": lambda: a * b,
        "divui": lambda: ua // ub,
        "divsi": lambda: toward_0,
        "remui": lambda: ua % ub,
        "remsi": lambda: a - toward_0 * b,
        "floordivsi": lambda: a // b,
        "ceildivsi": lambda: -(-a // b),
        "ceildivui": lambda: -(-ua // ub),
        "minsi": lambda: min(a, b),
        "maxsi": lambda: max(a, b),
        "minui": lambda: min(ua, ub),
        "maxui": lambda: max(ua, ub),
        "shli": lambda: a << b,
        "shrui": lambda: ua >> b,
        "shrsi": lambda: a >> b,
        "andi": lambda: a & b,
        "ori": lambda: a | b,
        "xori": lambda: a ^ b,
    }[name]()
    return wrapped(value, bits)


@st.composite
def variables(draw, walk: Walk):
    """A variable of some range, with one of its values: mostly an end of the range."""
    low, high = draw(st.sampled_from(RANGES))
    value = draw(st.sampled_from([low, high, low + 1, high - 1]) | st.integers(low, high))
    return walk.space.fresh("x", low, high), value


def operand(data, walk: Walk, known: list, bits: int) -> tuple[Polynomial, int]:
    """A polynomial of the variables, and its value in the machine."""
    (x, vx), (y, vy) = (data.draw(st.sampled_from(known)) for _ in range(2))
    c = data.draw(st.sampled_from(CONSTANTS))
    one, value = data.draw(
        st.sampled_from(
            [(x, vx), (x + y, vx + vy), (x - y, vx - vy), (x * y, vx * vy), (x * c, vx * c)]
            + [(x + c, vx + c), (Polynomial.number(c), c)]
        )
    )
    if bits == 64:
        return one, wrapped(value, 64)
    # A value narrower than 64 bits never wraps: what may is a variable of its own.
    assume(walk.prover.fits(one, bits))
    return one, value


@pytest.mark.parametrize("name", sorted(BINARY))
@settings(max_examples=150 * FACTOR, deadline=None)
@given(st.data())
def test_what_is_proved_is_true(name, data):
    walk, bits = Walk(Space()), data.draw(st.sampled_from([64, 64, 32]))
    known = [data.draw(variables(walk)) for _ in range(2)]
    (a, va), (b, vb) = (operand(data, walk, known, bits) for _ in range(2))
    assume(vb != 0 or name not in DIVISIONS)
    assume(0 <= vb < bits or name not in SHIFTS)
    assume(not (vb == -1 and va == -(1 << (bits - 1)) and name in DIVISIONS))
    result = BINARY[name](walk, a, b, bits)
    value = computed(name, va, vb, bits)
    prover = walk.prover
    event(f"fits: {prover.fits(result, bits)}")
    if not prover.fits(result, bits):
        return
    low, high = walk.space.low(result), walk.space.high(result)
    assert low is None or low <= value
    assert high is None or value <= high
    assert not prover.holds(result - (value + 1))
    assert not prover.holds(-result + (value - 1))
    for other, of_other in ((a, va), (b, vb), *known):
        if prover.fits(other, bits):
            assert not prover.holds(result - other - (value - of_other + 1))
            assert not prover.holds(other - result - (of_other - value + 1))


FOLLOWED = ["addi", "subi", "muli", "divui", "divsi", "remui", "minsi", "maxsi", "minui", "andi"]


def condition(data, walk: Walk, known: list[Polynomial]) -> Condition:
    """A comparison, something unknown, or both."""
    a, b = (data.draw(st.sampled_from(known)) for _ in range(2))
    c = data.draw(st.sampled_from(CONSTANTS[:8]))
    compared = AtLeast(a - b + c)
    kinds = [compared, opposite(compared), walk.space.unknown()]
    one, other = (data.draw(st.sampled_from(kinds)) for _ in range(2))
    return data.draw(st.sampled_from([one, Every((one, other)), Some((one, other))]))


@settings(max_examples=300 * FACTOR, deadline=None)
@given(st.data())
def test_no_sample_refutes_what_is_proved(data):
    walk = Walk(Space())
    prover, sampler = walk.prover, walk.prover.sampler
    prover.sampler = Sampler(Space())  # knows no variables: the search alone decides
    prover.sampler.refutes = lambda _: False  # type: ignore[method-assign]
    known = [walk.space.fresh("x", *data.draw(st.sampled_from(RANGES[:6]))) for _ in range(2)]
    facts = [f for _ in range(2) for f in prover.facts_of(condition(data, walk, known))]
    with walk.space.assuming(data.draw(st.sampled_from([[], facts]))):
        for _ in range(data.draw(st.integers(1, 4))):
            a, b = (data.draw(st.sampled_from(known)) for _ in range(2))
            b = b if data.draw(st.booleans()) else Polynomial.number(data.draw(st.integers(1, 9)))
            if data.draw(st.booleans()):
                known.append(walk.arithmetic.select(condition(data, walk, known), a, b))
            else:
                known.append(BINARY[data.draw(st.sampled_from(FOLLOWED))](walk, a, b, 64))
        sampler.choose()
        for x in known:
            for y in known:
                for constant in (0, -1, 5):
                    goal = known[-1] + x - y + constant
                    if prover.holds(goal):
                        assert not sampler.refutes(goal)
