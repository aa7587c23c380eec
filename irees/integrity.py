"""
Detects whether irees code was patched at run time.

Cache keys hash the sources of irees on disk. A test, a plug-in or a notebook may patch functions
or constants in the running process; programs from such a compiler must not be stored. Every
module is recorded when it is loaded, and compared by member before a program is stored.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any

_PACKAGE = "irees"
_APART = frozenset(("integrity", "runtime", "testing", "tools"))
"""Parts of irees that do not affect compiled programs: they run programs or call the compiler."""

_NEVER_STORED = object()

_recorded: dict[int, tuple[Any, dict[str, Any]]] = {}
"""id => a module or class, and its members when it was recorded."""
_loading: list[tuple[str, Any]] = []
"""Modules whose import had not finished when they were seen."""
_seen = 0


def record() -> None:
    """Records the irees modules loaded since the last call."""
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
    """Whether a member of a module or class was replaced since it was recorded."""
    record()
    return any(
        vars(home).get(name, _NEVER_STORED) is not value
        for home, members in _recorded.values()
        for name, value in members.items()
    )
