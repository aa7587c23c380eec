"""Tests of one model go to one worker, which exports it once (`pytest --dist loadgroup`)."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test that has a parameter `name` with the group of that name."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and "name" in callspec.params:
            item.add_marker(pytest.mark.xdist_group(callspec.params["name"]))
