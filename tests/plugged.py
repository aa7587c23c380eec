"""Makes packages the plug-ins of the environment that a test runs in."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from xdsl.ir import Dialect

from irees import interfaces, plugins, strategies
from irees.dialects import all_factories
from irees.plugins import Plugin


class Entry:
    """An entry point, as `importlib.metadata` has them."""

    def __init__(self, name: str, plugin: object, value: str = "irees.plugins:PLUGIN"):
        self.name, self.value, self.plugin = name, value, plugin

    def load(self) -> object:
        if isinstance(self.plugin, BaseException):
            raise self.plugin
        return self.plugin


def forget() -> None:
    """Forgets what is installed."""
    plugins.installed.cache_clear()
    interfaces.clear()
    strategies.candidates.cache_clear()


Having = Callable[..., None]
"""Called with entries or plug-ins, and dialects that the parser has to know."""


def plugged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Having]:
    """Yields a function that makes these the plug-ins of the environment, until the test ends."""

    def have(*given: Entry | Plugin, dialects: Callable[[], dict[str, Dialect]] = dict) -> None:
        entries = [e if isinstance(e, Entry) else Entry(e.name, e) for e in given]
        monkeypatch.setattr(plugins, "entry_points", lambda group: entries)
        forget()
        for name, dialect in dialects().items():
            monkeypatch.setitem(all_factories(), name, lambda dialect=dialect: dialect)  # type: ignore

    yield have
    monkeypatch.undo()
    forget()
