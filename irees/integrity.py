"""
Whether the code of irees that runs is the code that was imported.

A cache key names the sources of irees as they are on disk. A test, a plug-in or a notebook may put
other functions or constants in their place while the process runs; what such a compiler makes must
not be stored. Every module is recorded when it is loaded, and compared, name by name, before a
program is stored.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any

_PACKAGE = "irees"
_APART = frozenset(("integrity", "runtime", "testing", "tools"))
"""Parts of irees that change no program: what runs programs, and what calls the compiler."""

_NEVER_STORED = object()

_recorded: dict[int, tuple[Any, dict[str, Any]]] = {}
"""Modules and classes by identity, each with its members as they were."""
_loading: list[tuple[str, Any]] = []
"""Modules that were still being imported when they were met."""
_seen = 0


def record() -> None:
    """Records the modules of irees that were loaded since the last call."""
    global _seen
    modules = [*_loading, *islice(sys.modules.items(), _seen, None)]
    _seen = len(sys.modules)
    _loading.clear()
    for name, module in modules:
        package, _, rest = name.partition(".")
        if package == _PACKAGE and rest.partition(".")[0] not in _APART:
            if getattr(module.__spec__, "_initializing", False):
                _loading.append((name, module))
            else:
                _record(name, module)


def _record(name: str, module: Any) -> None:
    if id(module) in _recorded:
        return
    members = dict(vars(module))
    _recorded[id(module)] = (module, members)
    for value in members.values():
        if isinstance(value, type) and value.__module__ == name:
            _recorded[id(value)] = (value, dict(vars(value)))


def is_patched() -> bool:
    """Whether a module, or a class of one, has other members than when it was recorded."""
    record()
    return any(
        vars(home).get(name, _NEVER_STORED) is not value
        for home, members in _recorded.values()
        for name, value in members.items()
    )
