"""
What all tests share: a cache that is kept between the tests of one run only, and that no pass may
fail unasked.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sampling import sampled

# Before anything of irees asks for the cache, and for child processes too.
if "IREES_TEST_CACHE_DIR" not in os.environ:
    # The workers of pytest-xdist are given this one: they end without removing theirs.
    _CACHE = tempfile.TemporaryDirectory(prefix="irees-tests-")
    os.environ["IREES_TEST_CACHE_DIR"] = _CACHE.name
os.environ["IREES_CACHE_DIR"] = os.environ["IREES_TEST_CACHE_DIR"]


from irees import pipeline

_FAILED: list[str] = []
_TOLD = pipeline.remark


def _hear(kind: Any, name: str, place: Any, text: str) -> None:
    if kind == "failed":
        _FAILED.append(f"{name}: {text}")
    _TOLD(kind, name, place, text)


# Once, and before a compilation: what a patched compiler makes is not stored in the cache.
pipeline.remark = _hear


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--sample`."""
    parser.addoption(
        "--sample", type=int, default=1, metavar="N",
        help="of the cases of a test function run one of N, always the same",
    )  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is not in the sample; skips what needs a GPU on a machine without one."""
    if (every := config.getoption("--sample")) > 1:
        _, left_out = sampled([x for x in items if not x.get_closest_marker("whole")], every)
        without = set(left_out)
        items[:] = [item for item in items if item not in without]
        config.hook.pytest_deselected(items=left_out)
    if os.path.exists("/proc/driver/nvidia/version") or os.path.exists("/dev/nvidia0"):
        return
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """
    Fails a test in which an optional pass failed: it is left out, so that results stay right and
    nobody would notice. Those that mean it have the mark `passes_fail`.
    """
    _FAILED.clear()
    result = yield
    failed = list(_FAILED)
    assert not failed or item.get_closest_marker("passes_fail"), failed
    return result


@pytest.fixture(autouse=True)
def pytorch_settings_are_restored() -> Generator[None]:
    """
    Fails a test that leaves PyTorch's settings changed: later tests of the process would run with
    them. `monkeypatch.setattr` deletes such a setting when it restores it; use `config.patch`.
    """
    before = _settings()
    yield
    assert not before or _settings() == before


def _settings() -> dict[str, Any]:
    """The settings of TorchDynamo, if it is imported; a copy alone has deleted ones, too."""
    if (config := sys.modules.get("torch._dynamo.config")) is None:
        return {}
    found = config.get_config_copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some settings are deprecated
        return {name: value if hasattr(config, name) else "" for name, value in found.items()}
