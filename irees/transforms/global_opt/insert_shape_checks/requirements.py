"""Asserts for relations of sizes that are not known. Part of `irees-insert-shape-checks`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, cf, scf
from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from irees.dialects.storage import is_dim
from irees.errors import VerifyError
from irees.transforms.utils.shapes import IndexBuilder, Size, constant_value, same_size


@dataclass(frozen=True)
class Requirement:
    """A relation of two sizes that must hold, unless one of the sizes in `unless` is 0."""

    lhs: Size
    predicate: str
    """`eq` or `sle`."""
    rhs: Size
    message: str
    unless: Sequence[Size] = ()

    def check(self, op: Operation, b: IndexBuilder) -> None:
        """Asserts the relation for `op`. Raises VerifyError if it is known to be false."""
        if any(isinstance(size, int) and size == 0 for size in self.unless):
            return
        if self.is_known():
            return
        if all(isinstance(size, int) for size in self.unless):
            self.refuse_false(op)
        lhs, rhs = b.value(self.lhs), b.value(self.rhs)
        condition = b.insert(arith.CmpiOp(lhs, rhs, self.predicate)).results[0]
        for size in self.unless:
            if isinstance(size, SSAValue):
                empty = b.insert(arith.CmpiOp(size, b.value(0), "eq")).results[0]
                condition = b.insert(arith.OrIOp(condition, empty)).results[0]
        _assert(condition, self.message, op, b)

    def is_known(self) -> bool:
        """Whether the relation is known to hold."""
        lhs, rhs = number_of(self.lhs), number_of(self.rhs)
        if same_size(lhs, rhs):
            return True
        if isinstance(lhs, int) and isinstance(rhs, int):
            return lhs == rhs if self.predicate == "eq" else lhs <= rhs
        return self.predicate == "sle" and isinstance(lhs, int) and lhs <= 0 and is_natural(rhs)

    def refuse_false(self, op: Operation) -> None:
        """Raises VerifyError if the relation is known not to hold."""
        known = least(self.lhs)
        if not isinstance(self.rhs, int) or known is None:
            return
        if isinstance(self.lhs, int):
            raise VerifyError(f"{self.message}, but they are {self.lhs} and {self.rhs}", op=op)
        if known > self.rhs:
            raise VerifyError(f"{self.message}, but it is {known} at least", op=op)


def number_of(size: Size) -> Size:
    """Returns a constant size as an int, any other size unchanged."""
    known = size if isinstance(size, int) else constant_value(size)
    return size if known is None else known


def least(size: Size) -> int | None:
    """Returns a lower bound of a sum of constants and dims; None for any other size."""
    if isinstance(size, int):
        return size
    if is_natural(size):
        return 0
    if (known := constant_value(size)) is not None:
        return known
    if not isinstance(size.owner, arith.AddiOp):
        return None
    parts = [least(part) for part in size.owner.operands]
    return None if None in parts else sum(part for part in parts if part is not None)


def is_natural(size: Size) -> bool:
    """Whether a size is a dim or a non-negative constant."""
    if isinstance(size, int):
        return size >= 0
    return is_dim(size.owner)


def count_iterations(op: scf.ForOp) -> None:
    """
    Asserts that the step of a loop is positive, and makes the loop count its iterations.

    for %i = %lb to %ub step %s  =>  %n = %lb < %ub ? (%ub - %lb - 1) / max(%s, 1) + 1 : 0
                                     for %k = 0 to %n step 1 { %i = %lb + %k * max(%s, 1) }

    Kernels continue after a failed assert, so a loop with step 0 would hang. A loop whose induction
    variable wraps would hang, too: an i8 from 0 to 127 by 2. Loops with step 1 and index loops with
    a constant step stay. Raises VerifyError for a constant step below 1.
    """
    known, message = constant_value(op.step), f"a step of {op.name} is not positive"
    if known is not None and known < 1:
        raise VerifyError(message, op=op)
    narrow = not isinstance(op.step.type, IndexType)
    if known == 1 or (known is not None and not narrow):
        return
    b = IndexBuilder(InsertPoint.before(op))

    def value(new: Operation, at: IndexBuilder = b) -> SSAValue:
        return at.insert(new).results[0]

    lb, ub, step = (
        value(arith.IndexCastOp(v, IndexType())) if narrow else v for v in (op.lb, op.ub, op.step)
    )
    zero, one = b.value(0), b.value(1)
    _assert(value(arith.CmpiOp(one, step, "sle")), message, op, b)
    step = value(arith.MaxSIOp(step, one))
    last = value(arith.SubiOp(value(arith.SubiOp(ub, lb)), one))
    count = value(arith.AddiOp(value(arith.DivUIOp(last, step)), one))
    count = value(arith.SelectOp(value(arith.CmpiOp(lb, ub, "slt")), count, zero))
    _assert(value(arith.CmpiOp(zero, count, "sle")), f"{op.name} has too many iterations", op, b)
    old, block = op.body.block.args[0], op.body.block
    inside = IndexBuilder(InsertPoint.at_start(block))
    place = block.insert_arg(IndexType(), 0)
    index = value(arith.AddiOp(lb, value(arith.MuliOp(place, step), inside)), inside)
    old.replace_all_uses_with(
        value(arith.IndexCastOp(index, old.type), inside) if narrow else index
    )
    block.erase_arg(old)
    op.operands = [zero, count, one, *op.iter_args]


def _assert(condition: SSAValue, message: str, op: Operation, b: IndexBuilder) -> None:
    check = cf.AssertOp(condition, StringAttr(message))
    check.location = op.location
    b.insert(check)
