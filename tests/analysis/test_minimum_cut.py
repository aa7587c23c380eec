"""A minimum cut costs as much as the best of all cuts, and is the smallest of those."""

from __future__ import annotations

from itertools import chain, combinations

import hypothesis.strategies as st
from hypothesis import given

from irees.analysis.minimum_cut import NEVER, Network

NODES = "sabct"
Edges = dict[tuple[str, str], int]


def cost(edges: Edges, side: set[str]) -> int:
    """The capacity of the edges that leave a side."""
    return sum(c for (tail, head), c in edges.items() if tail in side and head not in side)


def sides() -> list[set[str]]:
    inner = NODES[1:-1]
    return [{"s", *x} for x in chain(*(combinations(inner, n) for n in range(len(inner) + 1)))]


EDGES = st.dictionaries(
    st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)).filter(lambda e: e[0] != e[1]),
    st.integers(0, 5) | st.just(NEVER),
)


@given(EDGES)
def test_no_cut_is_cheaper(edges):
    network = Network()
    for (tail, head), capacity in edges.items():
        network.connect(tail, head, capacity)
    found = {str(node) for node in network.source_side("s", "t")}
    best = min(cost(edges, side) for side in sides())
    assert cost(edges, found) == best
    assert all(found <= side for side in sides() if cost(edges, side) == best)
