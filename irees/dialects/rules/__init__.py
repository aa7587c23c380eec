"""
Rules of MLIR and IREE that no verifier of an op has here, by the name of the op.

A verifier runs after every pass, and says what passes count on. These rules run once, when a text
is read: they refuse what MLIR refuses, so that an error stands where the fault is. Each dialect
has a module with `RULES`, loaded when the first op of the dialect is verified. A rule is for one
op, or for all of a dialect (`"*"`). It raises VerifyException, or VerifyError with the op that is
wrong where that is another one, such as the terminator of a region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from xdsl.ir import Operation

Rule = Callable[[Any], None]

DIALECTS = frozenset(
    "affine arith builtin flow func iree_linalg_ext linalg memref ml_program scf tensor util"
    " vector".split()
)
"""The dialects that have a module here."""


@cache
def _table(dialect: str) -> Mapping[str, tuple[Rule, ...]]:
    return import_module(f"irees.dialects.rules.{dialect}").RULES if dialect in DIALECTS else {}


@cache
def rules_of(name: str) -> tuple[Rule, ...]:
    """The rules for ops of a name."""
    table = _table(name.partition(".")[0])
    return (*table.get("*", ()), *table.get(name, ()))


def check_rules(op: Operation) -> None:
    """Raises VerifyException or VerifyError for the first rule that an op breaks."""
    for rule in rules_of(op.name):
        rule(op)
