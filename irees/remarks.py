"""
Remarks: what a pass did, what it did not do and why, as data.

`remark` costs nothing unless somebody listens; `collect` listens for the length of a `with`
block, in the current thread or task only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from irees.errors import describe_location

Kind = Literal["passed", "missed", "failed", "analysis"]

_PLACE = re.compile(r"(.+):(\d+):(\d+)", re.DOTALL)

_COLLECTOR: ContextVar[list[Remark] | None] = ContextVar("irees_remarks", default=None)


@dataclass(frozen=True)
class Remark:
    """One sentence of a pass about one place of the program."""

    kind: Kind
    pass_name: str
    location: str | None
    text: str
    op: str | None = None
    dispatch: str | None = None
    """The executable that the op is in, once there are executables."""

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}remark: [{self.kind}] {self.pass_name}: {self.text}"

    def as_json(self) -> str:
        """
        One line of JSON: kind, pass, location, op and text; what is not known is null.

        A location is file, line and column, or the name that stands for one. In a kernel, the
        name of the dispatch follows.
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
    """Tells the listener, if there is one. `op_location` is an op, a location or a string."""
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


def tell(made: Remark) -> None:
    """Tells the listener, if there is one, of a remark that was made before."""
    if (collector := _COLLECTOR.get()) is not None:
        collector.append(made)


@contextmanager
def collect() -> Iterator[list[Remark]]:
    """Yields the list that all remarks made inside the block are appended to."""
    remarks: list[Remark] = []
    token = _COLLECTOR.set(remarks)
    try:
        yield remarks
    finally:
        _COLLECTOR.reset(token)
