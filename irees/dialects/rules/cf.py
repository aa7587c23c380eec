"""Verification rules for cf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import VerifyException


def _check_successor(number: int, block: Block, given: Sequence[SSAValue]) -> None:
    """Checks that the values for a successor have the types of its block arguments."""
    if len(given) != len(block.args):
        raise VerifyException(
            f"branch has {len(given)} operands for successor #{number}, but target block has "
            f"{len(block.args)}"
        )
    for at, (value, argument) in enumerate(zip(given, block.args, strict=True)):
        if value.type != argument.type:
            raise VerifyException(
                f"type mismatch for bb argument #{at} of successor #{number}: {value.type} is "
                f"given for {argument.type}"
            )


def check_branch(op: Any) -> None:
    """Checks the successor of cf.br."""
    _check_successor(0, op.successor, op.arguments)


def check_conditional_branch(op: Any) -> None:
    """Checks both successors of cf.cond_br."""
    _check_successor(0, op.then_block, op.then_arguments)
    _check_successor(1, op.else_block, op.else_arguments)


def check_switch(op: Any) -> None:
    """Checks the default and all cases of cf.switch."""
    _check_successor(0, op.default_block, op.default_operands)
    for number, (block, given) in enumerate(zip(op.case_blocks, op.case_operand), 1):
        _check_successor(number, block, given)


RULES = {
    "cf.br": (check_branch,),
    "cf.cond_br": (check_conditional_branch,),
    "cf.switch": (check_switch,),
}
