"""
Remarks: decisions of passes as data, including missed optimizations with their reasons; progress.

`remark` does nothing without a collector. `collect` collects remarks and `hearing` observes
progress inside a `with` block, in the current thread or task only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from irees.errors import describe_location

Kind = Literal["passed", "missed", "failed", "analysis"]

_PLACE = re.compile(r"(.+):(\d+):(\d+)", re.DOTALL)

_COLLECTOR: ContextVar[list[Remark] | None] = ContextVar("irees_remarks", default=None)
_PROGRESS: ContextVar[Callable[[str], None] | None] = ContextVar("irees_progress", default=None)


@dataclass(frozen=True)
class Remark:
    """One message of a pass about one location of the program."""

    kind: Kind
    pass_name: str
    location: str | None
    text: str
    op: str | None = None
    dispatch: str | None = None
    """Name of the executable that contains the op, None before executables exist."""

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}remark: [{self.kind}] {self.pass_name}: {self.text}"

    def as_json(self) -> str:
        """
        One line of JSON: kind, pass, location, op and text; unknown fields are null.

        A location is file, line and column, or a name. Remarks in kernels also have the name of
        the dispatch.
        """
        found = _PLACE.fullmatch(self.location or "")
        place: dict[str, str | int] | None = {"name": self.location} if self.location else None
        if found is not None:
            place = {"file": found[1], "line": int(found[2]), "column": int(found[3])}
        record = {
            "kind": self.kind,
            "pass": self.pass_name,
            "location": place,
            "op": self.op,
            "text": self.text,
            **({"dispatch": self.dispatch} if self.dispatch else {}),
        }
        return json.dumps(record)


def remark(kind: Kind, pass_name: str, op_location: Any, text: str) -> None:
    """Adds a remark to the collector, if any. `op_location` is an op, a location or a string."""
    if _COLLECTOR.get() is None:
        return
    is_op = hasattr(op_location, "regions") and hasattr(op_location, "location")
    location = describe_location(op_location.location if is_op else op_location)
    op, dispatch = (str(op_location.name), _executable(op_location)) if is_op else (None, None)
    tell(Remark(kind, pass_name, location, text, op, dispatch))


def _executable(op: Any) -> str | None:
    while op is not None and op.name != "flow.executable":
        op = op.parent_op()
    return None if op is None else op.sym_name.data


def made_progress(step: str) -> None:
    """Reports a finished step to the progress display, if any."""
    if (hear := _PROGRESS.get()) is not None:
        hear(step)


@contextmanager
def hearing(hear: Callable[[str], None]) -> Iterator[None]:
    """
    Calls `hear` with the name of each pass that finishes within the block.

    The callback never sees the module, so the cache is used as usual.
    """
    token = _PROGRESS.set(hear)
    try:
        yield
    finally:
        _PROGRESS.reset(token)


def tell(made: Remark) -> None:
    """Adds an existing remark to the collector, if any."""
    if (collector := _COLLECTOR.get()) is not None:
        collector.append(made)


@contextmanager
def collect() -> Iterator[list[Remark]]:
    """Yields a list that collects all remarks of the block."""
    remarks: list[Remark] = []
    token = _COLLECTOR.set(remarks)
    try:
        yield remarks
    finally:
        _COLLECTOR.reset(token)
