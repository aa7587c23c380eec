"""The planner: no two temporaries that live at once overlap, and little room is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import MemRefType, i8
from xdsl.dialects.memref import AllocOp

from irees.analysis.arena import most_alive
from irees.transforms.stream.plan_arena import ORDERS, Life, aligned, place_in_order, place_static

# Some temporaries of a ResNet-50 as (bytes / 1024, first, last): by size alone they
# take 1.11 times what must be.
RESIDUAL = [
    (100, 0, 6), (512, 5, 9), (530, 8, 12), (128, 11, 29), (128, 14, 18), (138, 17, 22),
    (128, 21, 25), (512, 24, 29), (512, 28, 42), (128, 31, 35), (138, 34, 39), (128, 38, 42),
    (512, 41, 55), (128, 44, 48), (138, 47, 52), (128, 51, 55), (512, 54, 73), (256, 58, 62),
    (275, 61, 66), (64, 65, 69), (256, 68, 73), (256, 72, 86),
]  # fmt: skip


def lives_of(given: list[tuple[int, int, int]]) -> list[Life]:
    return [Life(AllocOp([], [], MemRefType(i8, [n])), n, a, b) for n, a, b in given]


def least(lives: list[Life]) -> int:
    return most_alive([(x.start, x.end, aligned(x.static_size)) for x in lives])


LIVES = st.lists(
    st.tuples(st.integers(1, 5000), st.integers(0, 30), st.integers(0, 10)).map(
        lambda x: (x[0], x[1], x[1] + x[2])
    ),
    max_size=20,
)


@given(LIVES)
def test_nothing_overlaps(given):
    lives = lives_of(given)
    total = place_static(lives)
    assert total >= least(lives)
    for number, life in enumerate(lives):
        assert life.offset % 64 == 0
        assert life.offset + life.static_size <= total
        for other in lives[:number]:
            apart = (
                life.offset + life.static_size <= other.offset
                or other.offset + other.static_size <= life.offset
            )
            assert apart or not life.meets(other)


@given(LIVES)
def test_no_order_is_better(given):
    lives = lives_of(given)
    found = place_static(lives)
    for order in ORDERS:
        numbers = sorted(range(len(lives)), key=lambda n, order=order: order(lives[n]))
        assert found <= place_in_order(lives, numbers)[0]
    for number, life in enumerate(lives):
        assert life.offset + aligned(life.static_size) <= found
        for other in lives[:number]:
            apart = life.offset >= other.offset + aligned(other.static_size)
            assert (
                not life.meets(other)
                or apart
                or other.offset >= life.offset + aligned(life.static_size)
            )


def test_residual_blocks_take_what_must_be():
    lives = lives_of([(1024 * n, a, b) for n, a, b in RESIDUAL])
    assert place_static(lives) <= 1.1 * least(lives)


@pytest.mark.parametrize(
    ("lives", "most"),
    [([], 0), ([(0, 1, 5), (2, 3, 7)], 7), ([(0, 1, 5), (1, 3, 7)], 12), ([(4, 4, 1)], 1)],
)
def test_most_alive(lives, most):
    assert most_alive(lives) == most
