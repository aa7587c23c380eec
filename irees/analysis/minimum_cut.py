"""
Minimum cuts of a network, by Dinic's algorithm.

If each op has one of two forms and ops with different forms cost something, a cut is a choice of
forms: the source stands for one form, the sink for the other. The capacity of an edge is the cost
if its tail is on the source side and its head on the sink side.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from itertools import pairwise

NEVER = 1 << 62
"""The capacity of an edge that must not be cut."""


class Network:
    """A directed graph with a capacity on each edge."""

    def __init__(self):
        self.left: dict[Hashable, dict[Hashable, int]] = {}

    def connect(self, tail: Hashable, head: Hashable, capacity: int) -> None:
        """Adds capacity from `tail` to `head`."""
        edges = self.left.setdefault(tail, {})
        edges[head] = edges.get(head, 0) + capacity
        self.left.setdefault(head, {}).setdefault(tail, 0)

    def source_side(self, source: Hashable, sink: Hashable) -> set[Hashable]:
        """Returns the smallest source side of a minimum cut, `source` included."""
        self.left.setdefault(source, {})
        self.left.setdefault(sink, {})
        while sink in (levels := self._levels(source)):
            self._block(source, sink, levels)
        return set(levels)

    def _levels(self, source: Hashable) -> dict[Hashable, int]:
        """Returns the distance, in edges, of each node that is reachable in the residual graph."""
        levels, todo = {source: 0}, deque([source])
        while todo:
            node = todo.popleft()
            for head, capacity in self.left[node].items():
                if capacity > 0 and head not in levels:
                    levels[head] = levels[node] + 1
                    todo.append(head)
        return levels

    def _block(self, source: Hashable, sink: Hashable, levels: dict[Hashable, int]) -> None:
        """Sends a blocking flow along shortest paths."""
        rest = {node: list(self.left[node]) for node in levels}
        path = [source]
        while path:
            node = path[-1]
            if node == sink:
                self._send(path)
                path = [source]
                continue
            heads = rest[node]
            while heads and (
                self.left[node][heads[-1]] <= 0 or levels.get(heads[-1]) != levels[node] + 1
            ):
                heads.pop()
            if heads:
                path.append(heads[-1])
                continue
            path.pop()
            if path:
                rest[path[-1]].pop()

    def _send(self, path: list[Hashable]) -> None:
        edges = list(pairwise(path))
        amount = min(self.left[tail][head] for tail, head in edges)
        for tail, head in edges:
            self.left[tail][head] -= amount
            self.left[head][tail] += amount
