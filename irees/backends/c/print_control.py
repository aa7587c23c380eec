"""C of control flow: loops, branches, assertions."""

from __future__ import annotations

from xdsl.dialects import cf, scf
from xdsl.ir import Operation

from irees.backends.c.printer import Printer, handles
from irees.backends.c.types import scalar


@handles("scf.for")
def _for(p: Printer, op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    names = p.carried(op.results, op.iter_args)
    iv, *arguments = op.body.block.args
    counter = p.fresh("i")
    p.names[iv] = counter
    for argument, name in zip(arguments, names, strict=True):
        p.names[argument] = name
    kind = scalar(iv.type)
    lower, upper, step = p.name(op.lb), p.name(op.ub), p.name(op.step)
    p.nested(op.body, f"for ({kind} {counter} = {lower}; {counter} < {upper}; {counter} += {step})")
    terminator = op.body.block.last_op
    assert terminator is not None
    p.assign(names, terminator.operands)
    p.release()
    p.close()
    for result, name in zip(op.results, names, strict=True):
        p.names[result] = name


@handles("scf.if")
def _if(p: Printer, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    names: list[str] = []
    for result in op.results:
        name = p.fresh("x")
        p.line(f"{p.expressions.type(result.type)} {name};")
        names.append(name)
    condition = p.name(op.cond)
    for region, opening in ((op.true_region, f"if ({condition})"), (op.false_region, "else")):
        if not region.blocks:
            continue
        p.nested(region, opening)
        terminator = region.block.last_op
        if terminator is not None and names:
            p.assign(names, terminator.operands)
        p.release()
        p.close()
    for result, name in zip(op.results, names, strict=True):
        p.names[result] = name


@handles("scf.while")
def _while(p: Printer, op: Operation) -> None:
    assert isinstance(op, scf.WhileOp)
    before, after = op.before_region.block, op.after_region.block
    names = p.carried(before.args, op.arguments)
    for argument, name in zip(before.args, names, strict=True):
        p.names[argument] = name
    results: list[str] = []
    for result in op.results:
        name = p.fresh("x")
        p.line(f"{p.expressions.type(result.type)} {name};")
        results.append(name)
    p.line("for (;;) {")
    p.depth += 1
    p.scopes.append([])
    p.block(before)
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    p.assign(results, condition.operands[1:])
    leave = f"if (!{p.name(condition.operands[0])})"
    frees = " ".join(f"rt->free({q}); owned[{n}] = NULL;" for q, n in p.scopes[-1])
    p.line(f"{leave} {{ {frees} break; }}" if frees else f"{leave} break;")
    for argument, name in zip(after.args, results, strict=True):
        p.names[argument] = name
    p.block(after)
    terminator = after.last_op
    assert terminator is not None
    p.assign(names, terminator.operands)
    p.release()
    p.close()
    for result, name in zip(op.results, results, strict=True):
        p.names[result] = name


@handles("cf.assert")
def _assert(p: Printer, op: Operation) -> None:
    assert isinstance(op, cf.AssertOp)
    p.fail(f"!{p.name(op.arg)}", p.unit.trap(op))
