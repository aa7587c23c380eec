"""Prints control flow as C: loops, branches, assertions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import cf, scf
from xdsl.ir import Operation, SSAValue

from irees.backends.common.printer import Place, Printer, handles
from irees.backends.common.types import scalar


def _bind(p: Printer, values: Sequence[SSAValue], places: Sequence[Place]) -> None:
    for value, place in zip(values, places, strict=True):
        p.bind(value, place)


@handles("scf.for")
def _for(p: Printer, op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    places = [p.place(init.type, init) for init in op.iter_args]
    iv, *arguments = op.body.block.args
    counter = p.fresh("i")
    p.names[iv] = counter
    kind = scalar(iv.type)
    lower, upper, step = p.name(op.lb), p.name(op.ub), p.name(op.step)
    p.before_loop(op)
    p.open(f"for ({kind} {counter} = {lower}; {counter} < {upper}; {counter} += {step})")
    _bind(p, arguments, places)
    p.block(op.body.block)
    terminator = op.body.block.last_op
    assert terminator is not None
    p.assign(places, terminator.operands)
    p.release()
    p.close()
    _bind(p, op.results, places)


@handles("scf.if")
def _if(p: Printer, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    places = [p.place(result.type) for result in op.results]
    condition = p.name(op.cond)
    for region, opening in ((op.true_region, f"if ({condition})"), (op.false_region, "else")):
        if not region.blocks:
            continue
        p.open(opening)
        p.block(region.block)
        terminator = region.block.last_op
        if terminator is not None and places:
            p.assign(places, terminator.operands)
        p.release()
        p.close()
    _bind(p, op.results, places)


@handles("scf.while")
def _while(p: Printer, op: Operation) -> None:
    assert isinstance(op, scf.WhileOp)
    before, after = op.before_region.block, op.after_region.block
    places = [p.place(init.type, init) for init in op.arguments]
    results = [p.place(result.type) for result in op.results]
    p.open("for (;;)")
    _bind(p, before.args, places)
    p.block(before)
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    p.assign(results, condition.operands[1:])
    leave = f"if (!{p.name(condition.operands[0])})"
    frees = " ".join(f"rt->free({q}); owned[{n}] = NULL;" for q, n in p.scopes[-1])
    p.line(f"{leave} {{ {frees} break; }}" if frees else f"{leave} break;")
    _bind(p, after.args, results)
    p.block(after)
    terminator = after.last_op
    assert terminator is not None
    p.assign(places, terminator.operands)
    p.release()
    p.close()
    _bind(p, op.results, results)


@handles("cf.assert")
def _assert(p: Printer, op: Operation) -> None:
    assert isinstance(op, cf.AssertOp)
    p.fail(f"!{p.name(op.arg)}", p.unit.trap(op))
