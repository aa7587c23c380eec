"""
Passes that a caller or a plug-in inserts into the pipeline.

    irees.compile(module, passes={"after:structured": "acme-x{n=2}", "after:buffers": MyPass()})

This module defines their form in `Options`: a place, and the passes to run there. It does not
import xDSL; `irees.pipeline` finds the place and creates the passes. Place and passes are part of
every cache key. A pass given as an object is identified by its class, its options and the sources
of its package. If that is not possible, the pass runs, but the program is not cached.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from irees.errors import ArgumentError

FORM = 'use places and passes, as in {"after:global-opt": "acme-x{n=2}"}'
SIDES = ("after", "before")


@dataclass(frozen=True)
class Insertion:
    """Passes for one place: their text, or an object."""

    place: str
    """`before:` or `after:`, and an anchor, a phase or a pass."""
    spec: str
    home: str | None = ""
    """Class and digest of an object; None if its code is not known, and empty for a text."""
    instance: Any = field(default=None, repr=False, compare=False)
    plugin: str | None = None
    """The plug-in that inserts it, None for the caller."""

    @property
    def is_known(self) -> bool:
        """Whether place, text and home determine what the passes do."""
        return self.home is not None


def canonical_insertions(given: Any) -> tuple[Insertion, ...]:
    """
    Returns the insertions of a mapping from places to passes: to a text, an object, or several.

    Raises ArgumentError for another form.
    """
    if given is None:
        return ()
    if isinstance(given, tuple) and all(isinstance(each, Insertion) for each in given):
        return given
    if not isinstance(given, Mapping):
        raise ArgumentError(f"passes is a {type(given).__name__}, but must be a mapping", hint=FORM)
    return tuple(
        _insertion(place, each) for place, passes in given.items() for each in _several(passes)
    )


def insertions_of(texts: Iterable[str]) -> dict[str, list[str]]:
    """Parses `after:global-opt=acme-x{n=2}`, by place. Raises ArgumentError for another form."""
    found: dict[str, list[str]] = {}
    for text in texts:
        place, equals, passes = text.partition("=")
        if not equals or not passes.strip():
            raise ArgumentError(
                f"{text!r} does not name a place and a pass",
                hint="use PLACE=PASSES, as in after:input=cse",
            )
        found.setdefault(place.strip(), []).append(passes.strip())
    return found


def _several(passes: Any) -> Iterable[Any]:
    return passes if isinstance(passes, list | tuple) else (passes,)


def _insertion(place: Any, given: Any) -> Insertion:
    side, colon, anchor = str(place).partition(":")
    if not isinstance(place, str) or side not in SIDES or not colon or not anchor:
        raise ArgumentError(
            f"a pass cannot be inserted at {place!r}",
            hint="use before:X or after:X, where X is an anchor, a phase or a pass",
        )
    if isinstance(given, str):
        return Insertion(place, given)
    if isinstance(given, type) or not callable(getattr(given, "apply", None)):
        kind = given.__name__ if isinstance(given, type) else f"a {type(given).__name__}"
        raise ArgumentError(
            f"a pass is expected at {place}, but got {kind}",
            hint="give a text, or an object such as MyPass(n=2)",
        )
    spec = _spec(given)
    return Insertion(place, spec or str(given.name), _home(given) if spec else None, given)


def _spec(given: Any) -> str | None:
    """Returns the text of a pass, or None if the text would not describe all of its state."""
    try:
        spec = given.pipeline_pass_spec()
        made = type(given).from_pass_spec(spec)
        # Dataclasses compare fields only; a pass may have other state.
        same = made == given and vars(made) == vars(given)
    except Exception:
        return None
    return str(spec) if same else None


def _home(given: Any) -> str | None:
    """Returns class and digest of a pass, or None if its class is not defined in a file."""
    from irees.plugins import sources_digest

    kind = type(given)
    module = sys.modules.get(kind.__module__)
    if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__ or module is None:
        return None
    try:
        digest = sources_digest(kind.__module__)
    except (ImportError, ValueError, OSError):
        return None
    return f"{kind.__module__}:{kind.__qualname__} {digest}" if digest else None
