"""
The differences between two states of a program: at two places of the pipeline, or of two programs.

    @main: after:structured, after:fused
    -%3 = linalg.generic {...}
    +%2 = linalg.generic {...}

Top-level ops are compared by name, line by line. Lines that differ only in the numbers of SSA
values are equal, since most passes renumber the values behind what they change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irees.build import return_updates
from irees.dialects import get_context
from irees.errors import ArgumentError
from irees.insertion import canonical_insertions
from irees.options import Options
from irees.pipeline import run_phases
from irees.reports.record import printed_ops

CONTEXT = 3
"""Equal lines that are shown around a difference."""
_VALUE = re.compile(r"%[\w$.-]+(#\d+)?")


class _Snapshot(ModulePass):
    """Records the texts of the top-level ops of each module that it runs on."""

    name = "irees-snapshot"

    def __init__(self) -> None:
        object.__setattr__(self, "texts", dict[str, str]())

    texts: dict[str, str]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.texts.update(printed_ops(op))


def state_at(module: ModuleOp, options: Options, place: str) -> dict[str, str]:
    """
    Returns the texts of the top-level ops of a program at a place such as `after:fused`, by name.

    In the code generation that is one kernel after the other, without the host program. Raises
    ArgumentError if there is no such place, or if the pipeline does not get there for this program,
    and the errors of a compilation.
    """
    snapshot = _Snapshot()
    inserted = (*canonical_insertions(options.passes), *canonical_insertions({place: snapshot}))
    return_updates(module, options)
    run_phases(get_context(), module, replace(options, passes=inserted))
    if not snapshot.texts:
        raise ArgumentError(f"the program does not come to {place}", hint="name an earlier place")
    return snapshot.texts


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Yields the ops that differ, with the lines of a unified diff; in the order of `old`."""
    for name in {**old, **new}:
        lines = _compared(old.get(name, "").splitlines(), new.get(name, "").splitlines())
        if lines:
            yield name, lines


def _compared(old: list[str], new: list[str]) -> list[str]:
    matcher = SequenceMatcher(None, *([_VALUE.sub("%", x) for x in each] for each in (old, new)))
    found: list[str] = []
    for group in matcher.get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        found.append(f"@@ -{first[1] + 1},{last[2]} +{first[3] + 1},{last[4]} @@")
        for kind, a, b, c, d in group:
            if kind == "equal":
                found += [f" {line}" for line in new[c:d]]
            else:
                found += [f"-{line}" for line in old[a:b]] + [f"+{line}" for line in new[c:d]]
    return found


def colored(line: str) -> str:
    """A line of a diff in the colors of a terminal."""
    codes: dict[str, Any] = {"-": 31, "+": 32, "@": 36}
    code = codes.get(line[:1])
    return f"\x1b[{code}m{line}\x1b[0m" if code else line
