"""Which cases of a test function a sample runs: every Nth, always the same."""

from __future__ import annotations

import pytest

FEW_CASES = 3
"""A test function with no more cases runs all of them in a sample, too."""


def sampled(items: list[pytest.Item], every: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Returns the items of the sample and the others, each in order."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    kept = {
        item
        for found in cases.values()
        for item in (found if len(found) <= FEW_CASES else found[::every])
    }
    return [i for i in items if i in kept], [i for i in items if i not in kept]
