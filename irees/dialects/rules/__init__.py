"""
Verification rules of MLIR and IREE that the op verifiers here lack, by op name.

Op verifiers run after every pass and check what passes rely on. These rules run once, on parsed
text: they reject what MLIR rejects, so that the error points at the fault in the input.

Each dialect has a module with `RULES`, loaded when its first op is verified. A rule applies to one
op, or to all ops of the dialect (`"*"`). It raises VerifyException, or VerifyError if another op is
at fault, such as the terminator of a region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from xdsl.ir import Operation

Rule = Callable[[Any], None]

DIALECTS = frozenset(
    "affine arith builtin cf flow func iree_linalg_ext linalg memref ml_program scf tensor util"
    " vector".split()
)
"""Dialects with a rules module."""


@cache
def _table(dialect: str) -> Mapping[str, tuple[Rule, ...]]:
    return import_module(f"irees.dialects.rules.{dialect}").RULES if dialect in DIALECTS else {}


@cache
def rules_of(name: str) -> tuple[Rule, ...]:
    """Returns the rules for an op name."""
    table = _table(name.partition(".")[0])
    return (*table.get("*", ()), *table.get(name, ()))


def check_rules(op: Operation) -> None:
    """Raises VerifyException or VerifyError for the first rule that an op breaks."""
    for rule in rules_of(op.name):
        rule(op)
