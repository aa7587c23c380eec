"""Asserts for `util.assume.int`. Part of `irees-insert-shape-checks`."""

from __future__ import annotations

from functools import reduce

from xdsl.dialects import arith, cf
from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, i1
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.util import AssumeIntOp
from irees.dialects.util.hints import VIOLATED, IntAssumptionAttr, is_on_host
from irees.transforms.utils.shapes import IndexBuilder


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
        check = cf.AssertOp(condition, StringAttr(VIOLATED))
        check.location = op.location
        b.insert(check)


def holds(value: SSAValue, what: IntAssumptionAttr, b: IndexBuilder) -> SSAValue | None:
    """Returns an i1 that is true if the assumption holds; None for an empty assumption."""

    kind = value.type
    top = (1 << (kind.width.data if isinstance(kind, IntegerType) else 64)) - 1

    def constant(number: int) -> SSAValue:
        signed = number - (1 << 64) if number >= 1 << 63 else number
        return b.insert(arith.ConstantOp(IntegerAttr(signed, kind))).results[0]  # type: ignore

    low, high, divisor = (what.get(bound) or 0 for bound in ("umin", "umax", "udiv"))
    if low > top:
        return b.insert(arith.ConstantOp(IntegerAttr(0, i1))).results[0]
    found: list[SSAValue] = []
    if what.get("umin") is not None:
        found.append(b.insert(arith.CmpiOp(value, constant(low), "uge")).results[0])
    if what.get("umax") is not None and high < top:
        found.append(b.insert(arith.CmpiOp(value, constant(high), "ule")).results[0])
    if divisor > 1:
        rest = value
        if divisor <= top:
            rest = b.insert(arith.RemUIOp(value, constant(divisor))).results[0]
        found.append(b.insert(arith.CmpiOp(rest, constant(0), "eq")).results[0])
    if not found:
        return None
    return reduce(lambda x, y: b.insert(arith.AndIOp(x, y)).results[0], found)
