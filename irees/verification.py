"""
Verifies IR that the compiler made.

It checks what `module.verify()` checks. Generated kernels are thousands of ops of which few differ
in more than their operands, and verifying one takes xDSL as long as making it; so of ops that are
alike, only the first is verified.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.ir import ErasedSSAValue, Operation
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from irees.errors import VerifyError

_PLAIN = ("arith.", "math.", "vector.", "memref.load", "memref.store", "memref.prefetch")
"""Ops that are valid or not by their attributes and by the types of their operands and results."""


def verify(module: Operation) -> None:
    """Raises VerifyException or ValueError for the first op that breaks a rule."""
    verified: set[Hashable] = set()
    for op in module.walk():
        # The last op of a block has to be a terminator.
        if op.name.startswith(_PLAIN) and op.next_op is not None and not op.regions:
            likeness = _likeness(op)
            if likeness in verified:
                continue
            verified.add(likeness)
        op.verify(verify_nested_ops=False)
        for region in op.regions:
            block = region.first_block
            if block is None or block is not region.last_block or block.last_op is not None:
                continue
            if not op.has_trait(NoTerminator):
                raise VerifyException(f"{op.name} has an empty block that needs a terminator")


def verify_made(new: Operation, source: Operation) -> None:
    """
    Raises VerifyError, at the op that it was made from, for a new op that breaks a rule: the op of
    one dialect may say less of its operands than that of another.
    """
    try:
        new.verify()
    except VerifyException as error:
        while isinstance(error.__cause__, VerifyException):
            error = error.__cause__
        raise VerifyError(str(error).strip(), op=source) from None


def _likeness(op: Operation) -> Hashable:
    """What is equal for ops that are valid only together; unique where a value is no more."""
    operands = op.operands
    if any(isinstance(value, ErasedSSAValue) for value in operands):
        return op
    return (
        type(op),
        tuple([value.type for value in operands]),
        tuple([value.type for value in op.results]),
        tuple(op.properties.items()),
        tuple(op.attributes.items()),
    )
