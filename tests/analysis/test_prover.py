"""The search for proofs: what it finds within its budget, and what it remembers."""

from __future__ import annotations

from irees.analysis.accesses.arithmetic import Arithmetic
from irees.analysis.accesses.polynomials import Polynomial
from irees.analysis.accesses.prover import ALL, LAST, QUICK, Prover
from irees.analysis.accesses.terms import Space


def blocks_of_rows(space: Space, distractors: int = 0) -> Polynomial:
    """
    rows - 256 i - 7 j - 1 for a block i of 256 rows and a group j of 7 rows in it: at least 0. The
    first fact about the groups leads to the upper bounds of i, which are sums of `distractors`
    variables that are bounded by sums of others.
    """
    rows = space.fresh("rows", 0, 2**31 - 1)
    others = [space.fresh("other", 0, 2**31 - 1) for _ in range(distractors)]
    block = space.fresh("block", 0, 2**23 - 1)
    size = space.fresh("size", 0, 256)
    groups = space.fresh("groups", 0, 36)
    group = space.fresh("group", 0, 35)
    for i in range(4, distractors):
        nearest = others[i - 4 : i]
        space.newest_of(others[i]).facts = [a + b - others[i] for a in nearest for b in nearest]
    space.newest_of(block).facts = [a + b - block for a in others[-3:] for b in others[-3:]]
    space.newest_of(size).facts = [-size + 256, rows - block * 256 - size]
    space.newest_of(groups).facts = [-groups + 36, size - groups * 7]
    space.newest_of(group).facts = [groups - group - 1]
    return rows - block * 256 - group * 7 - 1


def test_a_fact_that_leads_nowhere_gets_a_share_of_the_steps() -> None:
    space = Space()
    goal = blocks_of_rows(space, distractors=12)
    prover = Prover(space)
    assert prover.prove(goal) is not None
    assert prover.steps <= QUICK


def test_what_is_false_is_not_proved() -> None:
    space = Space()
    goal = blocks_of_rows(space, distractors=3)
    assert Prover(space).prove(goal - 7) is None


def test_running_out_of_steps_is_no_failure() -> None:
    """A goal that one step does not prove is proved by more, in the same scope."""
    space = Space()
    goal = blocks_of_rows(space)
    prover = Prover(space)
    assert prover.prove(goal, 1) is None
    assert prover.prove(goal) is not None


def test_guards_have_their_full_budget() -> None:
    """Their steps do not count for the budget of a kernel."""
    space = Space()
    prover = Prover(space)
    prover.begin()
    prover.steps += ALL + 1
    with prover.thorough():
        assert prover.prove(blocks_of_rows(space, distractors=3)) is not None
        prover.steps += 1000
    assert prover.steps - prover._begun <= ALL + 1
    assert LAST < QUICK


def test_a_quotient_of_a_sum_has_the_rounded_bound_of_its_parts() -> None:
    """
    t + j <= 112 rows - 1  =>  floor((t + j) / 112) <= rows - 1

    The places are those of the patches of an image: 16 lanes, 7 columns, rows at a stride of 4.
    """
    space = Space()
    prover = Prover(space)
    numbers, number = Arithmetic(space, prover), Polynomial.number
    tile = space.fresh("tile", 0, 1)
    rows = numbers.minimum(number(4), -tile * 4 + 7)
    blocks = numbers.floor(rows * 112, number(64))
    block = space.fresh("block", 0, 6)
    space.newest_of(block).facts = [blocks - block - 1]
    j = space.fresh("j", 0, 63)
    space.newest_of(j).facts = [-j + 63]
    x = block * 64 + j
    lanes = numbers.divided(x, number(16))
    columns = numbers.divided(lanes, number(7))
    place = numbers.remainder(x, number(16)) + numbers.remainder(lanes, number(7)) * 16
    place = place + columns * 448 + space.fresh("k", 0, 5) * 112
    # The last place is 319 + 2 * 336 + 560, of the second tile.
    room = -tile * 1792 + 3360
    assert prover.prove(room - place - 1) is not None
    assert prover.prove(room - place - 18) is None


def test_products_with_a_difference_are_natural() -> None:
    """(a - 1) b c d >= 0 for a >= 1: the size of a temporary that is one row shorter."""
    space = Space()
    a, *others = (space.fresh(name, 0, 1 << 20) for name in "abcd")
    space.narrow(a.newest(), 1, -1)
    size = a - 1
    for other in others:
        size = size * other
    prover = Prover(space)
    prover.begin()
    assert prover.holds(size + 63)
    assert not prover.holds(size - 1)


def test_a_temporary_is_inside_of_an_arena_of_many() -> None:
    """Each goal is a sum of quotients, of which one is about the size of the temporary."""
    space, number = Space(), Polynomial.number
    prover = Prover(space)
    numbers = Arithmetic(space, prover)
    n, h, w = (space.fresh(name, 4, 2**15) for name in "nhw")
    down, across = (numbers.floor(size - 1, number(2)) + 1 for size in (h, w))
    rows, columns = (numbers.floor(size - 3, number(2)) + 1 for size in (h, w))
    sizes = [
        n * h * w * 16, n * 16, n * 32, n * down * across * 32, n * down * across * 64,
        n * down * across * 256, h * 4, w * 4, h * 8, w * 8, n * h * w * 32,
        n * (h + 2) * (w + 2) * 16, (down + 1) * 8, n * (down + 1) * (across + 3) * 32,
        (across + 3) * 8, rows * 8, columns * 8, rows * 24, columns * 24, n * rows * columns * 144,
    ]  # fmt: skip
    padded = [numbers.floor(size + 63, number(64)) * 64 for size in sizes]
    for at, size in enumerate(sizes):
        steps = prover.steps
        assert prover.prove(sum(padded[at:], number(0)) - size) is not None
        assert prover.steps - steps <= QUICK
