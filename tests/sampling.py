"""
Which cases of a test function a sample runs: one of N, always the same.

A case is chosen by a hash of its id. Every Nth case would be the same target each time where a
function has cases for an even number of targets.
"""

from __future__ import annotations

import zlib

import pytest


def sampled(items: list[pytest.Item], every: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """
    Returns the items of the sample and the others, each in order. The sample has one of `every`
    cases of a function, rounded up.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    kept = set()
    for found in cases.values():
        by_hash = sorted(found, key=lambda item: zlib.crc32(item.nodeid.encode()))
        kept.update(by_hash[: -(-len(found) // every)])
    return [i for i in items if i in kept], [i for i in items if i not in kept]
