"""What all tests share: a cache that is kept between the tests of one run only."""

from __future__ import annotations

import os
import tempfile

import pytest

# Before anything of irees asks for the cache, and for child processes too.
_CACHE = tempfile.TemporaryDirectory(prefix="irees-tests-")
os.environ["IREES_CACHE_DIR"] = os.environ.get("IREES_TEST_CACHE_DIR", _CACHE.name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what needs a GPU on a machine that has none."""
    if os.path.exists("/proc/driver/nvidia/version") or os.path.exists("/dev/nvidia0"):
        return
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU"))
