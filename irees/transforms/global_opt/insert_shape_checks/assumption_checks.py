"""Asserts for `util.assume.int`. Part of `irees-insert-shape-checks`."""

from __future__ import annotations

from functools import reduce

from xdsl.dialects import arith, cf, func, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.util import AssumeIntOp
from irees.dialects.util.hints import IntAssumptionAttr
from irees.transforms.utils.shapes import IndexBuilder

MESSAGE = "an operand of util.assume.int is not what is assumed"


def check_assumption(op: AssumeIntOp) -> None:
    """
    %n = util.assume.int %m<umin = 1, umax = 9>  =>  assert 1 <= %m <= 9 (unsigned) before the op

    Analyses derive index bounds from it, so a wrong assumption would cause out-of-bounds accesses.
    Asserts are not possible in the body of an op: there the assumption is dropped.
    """
    if not is_on_host(op):
        Rewriter.replace_op(op, [], op.operands)
        return
    b = IndexBuilder(InsertPoint.before(op))
    for value, each in zip(op.values, op.assumptions, strict=True):
        ways = [holds(value, one, b) for one in each]
        if not ways or None in ways:
            continue
        condition = reduce(
            lambda x, y: b.insert(arith.OrIOp(x, y)).results[0], [w for w in ways if w is not None]
        )
        check = cf.AssertOp(condition, StringAttr(MESSAGE))
        check.location = op.location
        b.insert(check)


def holds(value: SSAValue, what: IntAssumptionAttr, b: IndexBuilder) -> SSAValue | None:
    """Returns an i1 that is true if the assumption holds; None for an empty assumption."""

    def constant(number: int) -> SSAValue:
        kind = value.type
        if isinstance(kind, IntegerType):
            number %= 1 << kind.width.data
        signed = number - (1 << 64) if number >= 1 << 63 else number
        return b.insert(arith.ConstantOp(IntegerAttr(signed, kind))).results[0]  # type: ignore

    found: list[SSAValue] = []
    for bound, predicate in (("umin", "uge"), ("umax", "ule")):
        if (limit := what.get(bound)) is not None:
            found.append(b.insert(arith.CmpiOp(value, constant(limit), predicate)).results[0])
    if (divisor := what.get("udiv")) is not None and divisor > 1:
        rest = b.insert(arith.RemUIOp(value, constant(divisor))).results[0]
        found.append(b.insert(arith.CmpiOp(rest, constant(0), "eq")).results[0])
    if not found:
        return None
    return reduce(lambda x, y: b.insert(arith.AndIOp(x, y)).results[0], found)


def is_on_host(op: Operation) -> bool:
    """Whether an op is nested only in a function and in scf for, if and while ops."""
    around = op.parent_op()
    while around is not None and not isinstance(around, func.FuncOp):
        if not isinstance(around, scf.ForOp | scf.IfOp | scf.WhileOp):
            return False
        around = around.parent_op()
    return around is not None
