"""Relations of sizes that are asserted where they are not known: of `irees-insert-shape-checks`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, cf
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from irees.errors import VerifyError
from irees.transforms.utils.shapes import IndexBuilder, Size, constant_value, same_size


def require(
    lhs: Size, rhs: Size, predicate: str, message: str, op: Operation, b: IndexBuilder,
    unless: Sequence[Size] = (),
) -> None:  # fmt: skip
    """
    Asserts a relation of two sizes, unless one of the others is 0.

    Raises VerifyError when the relation is known to be false.
    """
    if any(isinstance(size, int) and size == 0 for size in unless):
        return
    if is_known(lhs, rhs, predicate):
        return
    if all(isinstance(size, int) for size in unless):
        refuse_false(lhs, rhs, predicate, message, op)
    condition = b.insert(arith.CmpiOp(b.value(lhs), b.value(rhs), predicate)).results[0]
    for size in unless:
        if isinstance(size, SSAValue):
            empty = b.insert(arith.CmpiOp(size, b.value(0), "eq")).results[0]
            condition = b.insert(arith.OrIOp(condition, empty)).results[0]
    check = cf.AssertOp(condition, StringAttr(message))
    check.location = op.location
    b.insert(check)


def is_known(lhs: Size, rhs: Size, predicate: str) -> bool:
    """Whether a relation is known to hold."""
    lhs, rhs = number_of(lhs), number_of(rhs)
    if same_size(lhs, rhs):
        return True
    if isinstance(lhs, int) and isinstance(rhs, int):
        return lhs == rhs if predicate == "eq" else lhs <= rhs
    return predicate == "sle" and isinstance(lhs, int) and lhs <= 0 and is_dim(rhs)


def number_of(size: Size) -> Size:
    """The number of a size that is a constant."""
    known = size if isinstance(size, int) else constant_value(size)
    return size if known is None else known


def refuse_false(lhs: Size, rhs: Size, predicate: str, message: str, op: Operation) -> None:
    """Raises VerifyError for a relation that is known not to hold."""
    known = least(lhs)
    if not isinstance(rhs, int) or known is None:
        return
    if isinstance(lhs, int):
        raise VerifyError(
            f"{message}, but they are {lhs} and {rhs}", op=op.name, location=op.location
        )
    if known > rhs:
        raise VerifyError(
            f"{message}, but it is {known} at least", op=op.name, location=op.location
        )


def least(size: Size) -> int | None:
    """What a sum of numbers and of sizes of dims is at least; None for anything else."""
    if isinstance(size, int):
        return size
    if is_dim(size):
        return 0
    if (known := constant_value(size)) is not None:
        return known
    if not isinstance(size.owner, arith.AddiOp):
        return None
    parts = [least(part) for part in size.owner.operands]
    return None if None in parts else sum(part for part in parts if part is not None)


def is_dim(size: Size) -> bool:
    """Whether a size is that of a dim, so not negative."""
    if isinstance(size, int):
        return size >= 0
    return isinstance(size.owner, Operation) and size.owner.name in ("tensor.dim", "memref.dim")
