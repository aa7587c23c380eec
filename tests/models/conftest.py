"""
Tests of one model go to one worker, which exports and compiles it once.

pytest-xdist has `--dist loadgroup` for that, but puts the group into a field of an item that
pytest 9.2 no longer reads: each test is then a group of its own.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling


class ByModel(LoadScopeScheduling):
    """Tests of models by their first parameter, the others one by one."""

    def _split_scope(self, nodeid: str) -> str:
        path, _, parameters = nodeid.partition("[")
        if "models/" not in path or not parameters:
            return nodeid
        return parameters.rstrip("]").split("-")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByModel:
    """The scheduler of this run (a hook of pytest-xdist)."""
    return ByModel(config, log)
