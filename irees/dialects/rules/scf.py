"""Verification rules for scf."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, UnregisteredOp
from xdsl.ir import BlockArgument, Operation
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from irees.errors import VerifyError


def check_for(op: Any) -> None:
    """Checks that results have the types of the initial values."""
    inits = [v.type for v in op.iter_args]
    if len(op.results) != len(inits):
        raise VerifyException("mismatch in number of loop-carried values and defined values")
    for number, (result, kind) in enumerate(zip(op.results, inits, strict=True)):
        if result.type != kind:
            raise VerifyException(
                f"successor operand type #{number} {kind} should match successor input type "
                f"#{number} {result.type}"
            )


def _check_no_arguments(op: Operation) -> None:
    for number, region in enumerate(op.regions):
        if region.blocks and region.blocks[0].args:
            raise VerifyException(f"region #{number} should have no arguments")


def check_if(op: Any) -> None:
    """Checks that both branches yield as many values as the op has results."""
    _check_no_arguments(op)
    if op.results and not op.false_region.blocks:
        raise VerifyException("must have an else block if defining values")
    wanted = [r.type for r in op.results]
    for region in op.regions:
        last = region.blocks[0].last_op if region.blocks else None
        if last is not None and last.name == "scf.yield":
            if len(last.operands) != len(wanted):
                raise VerifyException(
                    f"region branch point has {len(last.operands)} operands, but region "
                    f"successor needs {len(wanted)} inputs"
                )


def _check_terminator(op: Any, name: str) -> None:
    """Checks that the body's first terminator has this name."""
    for inner in op.regions[0].blocks[0].ops:
        if isinstance(inner, UnregisteredOp):
            continue
        if inner.has_trait(IsTerminator) or inner.next_op is None:
            if inner.name != name:
                raise VerifyException(
                    f"expects body to terminate with {name!r}, found {inner.name!r}"
                )
            return


def check_parallel(op: Any) -> None:
    """Checks that there is a loop, steps are positive, and the body ends in scf.reduce."""
    if not op.lowerBound:
        raise VerifyException(
            "needs at least one tuple element for lowerBound, upperBound and step"
        )
    for step in op.step:
        constant = step.owner
        value = constant.value if isinstance(constant, arith.ConstantOp) else None
        if isinstance(value, IntegerAttr) and value.value.data <= 0:
            raise VerifyException("constant step operand must be positive")
    _check_terminator(op, "scf.reduce")
    last = op.regions[0].blocks[0].last_op
    _check_reduce(last, [r.type for r in op.results])


def _check_reduce(op: Operation, results: list[Any]) -> None:
    if len(op.regions) != len(op.operands):
        raise VerifyError(
            f"expects number of reduction regions: {len(op.regions)} to be the same as number of "
            f"reduction operands: {len(op.operands)}",
            op=op,
        )
    for number, (value, kind) in enumerate(zip(op.operands, results)):
        if value.type != kind:
            raise VerifyError(
                f"expects type of {number}-th reduction operand: {value.type} to be the same as "
                f"the {number}-th result type: {kind}",
                op=op,
            )


def check_reduce(op: Any) -> None:
    """Checks that each reduction region returns the type of its operand."""
    for region, value in zip(op.regions, op.operands):
        last = region.blocks[0].last_op
        if last is None or last.name != "scf.reduce.return":
            continue
        if last.operands[0].type != value.type:
            raise VerifyError(
                f"must have type {value.type} (the type of the reduction inputs)", op=last
            )


def check_execute_region(op: Operation) -> None:
    """Checks that the region of an execute_region has no arguments."""
    _check_no_arguments(op)


def check_forall(op: Any) -> None:
    """Checks that the body ends in in_parallel, which inserts only into the loop's own outputs."""
    block = op.regions[0].blocks[0]
    _check_terminator(op, "scf.forall.in_parallel")
    last = block.last_op
    for inner in last.regions[0].blocks[0].ops if last.regions[0].blocks else ():
        if inner.name != "tensor.parallel_insert_slice":
            continue
        target = inner.operands[1]
        if not isinstance(target, BlockArgument) or target.block is not block:
            raise VerifyError("may only insert into an output block argument", op=inner)


def check_switch(op: Any) -> None:
    """Checks that each region ends in scf.yield."""
    for region in op.regions:
        last = region.blocks[0].last_op if region.blocks else None
        if last is not None and last.name != "scf.yield":
            raise VerifyException(f"expected region to end with scf.yield, but got {last.name}")


RULES = {
    "scf.index_switch": (check_switch,),
    "scf.for": (check_for,),
    "scf.if": (check_if,),
    "scf.parallel": (check_parallel,),
    "scf.reduce": (check_reduce,),
    "scf.execute_region": (check_execute_region,),
    "scf.forall": (check_forall,),
}
