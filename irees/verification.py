"""
A fast verifier for compiler-generated IR, equivalent to `module.verify()`.

Generated kernels have thousands of ops, most of which differ only in their operands, and xDSL
takes as long to verify an op as to create it. So one op of each equivalence class is verified.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.ir import ErasedSSAValue, Operation
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from irees.errors import VerifyError

_PLAIN = ("arith.", "math.", "vector.", "memref.load", "memref.store", "memref.prefetch")
"""Ops whose validity depends only on attributes and on types of operands and results."""


class InvalidOp(VerifyException):
    """The message of an op that does not verify, on one line, and the op."""

    def __init__(self, error: Exception, op: Operation):
        super().__init__(" ".join(str(error).split()))
        self.op = op


def verify(module: Operation) -> None:
    """Raises InvalidOp for the first invalid op."""
    verified: set[Hashable] = set()
    for op in module.walk():
        # The last op of a block is always verified, because it must be a terminator.
        if op.name.startswith(_PLAIN) and op.next_op is not None and not op.regions:
            likeness = _likeness(op)
            if likeness in verified:
                continue
            verified.add(likeness)
        try:
            op.verify(verify_nested_ops=False)
        except (VerifyException, ValueError) as error:  # an erased value is a ValueError
            raise InvalidOp(error, op) from error
        for region in op.regions:
            block = region.first_block
            if block is None or block is not region.last_block or block.last_op is not None:
                continue
            if not op.has_trait(NoTerminator):
                text = "it has an empty block that needs a terminator"
                raise InvalidOp(VerifyException(text), op)


def verify_made(new: Operation, source: Operation) -> None:
    """
    Raises VerifyError, located at the source op, for an invalid new op: a conversion's source
    dialect may have weaker constraints than its target dialect.
    """
    try:
        new.verify()
    except VerifyException as error:
        while isinstance(error.__cause__, VerifyException):
            error = error.__cause__
        raise VerifyError(str(error).strip(), op=source) from None


def _likeness(op: Operation) -> Hashable:
    """Returns a key that is equal for ops of equal validity; unique if an operand is erased."""
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
