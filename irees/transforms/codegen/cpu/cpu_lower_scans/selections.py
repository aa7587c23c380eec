"""
Combiners that select one of their operands by comparisons. Part of `irees-cpu-lower-scans`.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from itertools import product
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, SSAValue

from irees.dialects.upstream.math import IsNaNOp
from irees.transforms.utils.combiners import IDEMPOTENT
from irees.transforms.utils.constants import constant_number

Element = tuple[float, int]
"""A number, and a name that tells equal numbers apart."""

SAMPLES: tuple[Element, ...] = tuple(
    (number, name) for number in (-1.0, 0.0, 1.0, numbers.nan) for name in range(2)
)
"""Elements in every order that three of them may have; NaN has none."""

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def is_selection(block: Block) -> bool:
    """
    Whether a combiner is associative and idempotent: one op that is, or comparisons that select an
    operand. The latter see only how their operands compare, so a few samples stand for all.
    """
    ops = list(block.ops)[:-1]
    if len(ops) == 1 and ops[0].name in IDEMPOTENT:
        return (
            set(ops[0].operands) == set(block.args)
            and block.last_op.operands[0] == ops[0].results[0]
        )
    if not _is_comparing(block):
        return False

    def f(a: Element, b: Element) -> Element:
        return _evaluated(block, a, b)

    return all(f(f(a, b), c) == f(a, f(b, c)) for a, b, c in product(SAMPLES, repeat=3)) and all(
        f(a, a) == a for a in SAMPLES
    )


def _is_comparing(block: Block) -> bool:
    """Whether a combiner has only comparisons of its operands, in one order, and selects."""
    ops = list(block.ops)[:-1]
    inside = {*block.args, *(r for op in ops for r in op.results)}
    if not all(v in inside for op in block.ops for v in op.operands):
        return False
    signs = {sign for op in ops if (sign := _sign(op)) is not None}
    if block.args[0].type == i1 or len(signs) > 1:
        return False
    return all(isinstance(op, arith.SelectOp) or _is_test(op) for op in ops)


def _relation(op: arith.CmpfOp | arith.CmpiOp) -> str | None:
    is_float = isinstance(op, arith.CmpfOp)
    names = arith.CMPF_COMPARISON_OPERATIONS if is_float else arith.CMPI_COMPARISON_OPERATIONS
    name = names[op.predicate.value.data]
    if is_float and not name.startswith("o"):
        return None
    name = name if name in RELATIONS else name[1:]
    return name if name in RELATIONS else None


def _sign(op: Operation) -> str | None:
    """Returns `s` or `u` for an order of integers."""
    name = (
        arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
        if isinstance(op, arith.CmpiOp)
        else "eq"
    )
    return None if name in RELATIONS else name[0]


def _is_test(op: Operation) -> bool:
    """Whether an op makes a truth value."""
    if isinstance(op, arith.CmpfOp | arith.CmpiOp):
        return _relation(op) is not None
    return op.results[0].type == i1 and isinstance(
        op, IsNaNOp | arith.AndIOp | arith.OrIOp | arith.XOrIOp | arith.ConstantOp
    )


def _evaluated(block: Block, a: Element, b: Element) -> Element:
    """Returns what a combiner makes of two elements."""
    known: dict[SSAValue, Any] = dict(zip(block.args, (a, b), strict=True))
    for op in list(block.ops)[:-1]:
        values = [known[v] for v in op.operands]
        match op:
            case arith.SelectOp():
                found = values[1] if values[0] else values[2]
            case arith.CmpfOp() | arith.CmpiOp():
                found = RELATIONS[_relation(op) or ""](values[0][0], values[1][0])
            case IsNaNOp():
                found = numbers.isnan(values[0][0])
            case arith.AndIOp():
                found = values[0] and values[1]
            case arith.OrIOp():
                found = values[0] or values[1]
            case arith.XOrIOp():
                found = values[0] != values[1]
            case _:
                found = bool(constant_number(op.results[0]))
        known[op.results[0]] = found
    return known[block.last_op.operands[0]]
