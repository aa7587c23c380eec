"""
Puts the bodies of private functions where they are called.

A call may span devices as any other code does, so it has to be seen whole before it is cut.

    func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = "f"(%x) ; return %0 }
    %1 = func.call @g(%y)
  =>
    %1 = "f"(%y)

A function is inlined at each of its calls and then erased. One of several blocks splits the
block of its call. What calls itself, is only declared, or is public too stays a call: it has no
one place in the program, and whoever cannot run it says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import cf, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import BlockInsertPoint, InsertPoint, Rewriter


def _callees(function: func.FuncOp) -> set[str]:
    return {op.callee.string_value() for op in function.walk() if isinstance(op, func.CallOp)}


def bottom_up(functions: dict[str, func.FuncOp]) -> list[str]:
    """Names so that each comes after what it calls; without those that call themselves."""
    order: list[str] = []
    state: dict[str, bool] = {}

    def visit(name: str) -> bool:
        """Whether everything below a function ends."""
        if name not in functions:
            return True
        if name in state:
            return state[name]
        state[name] = False
        state[name] = all([visit(each) for each in sorted(_callees(functions[name]))])
        if state[name]:
            order.append(name)
        return state[name]

    for name in functions:
        visit(name)
    return order


def inline(call: func.CallOp, function: func.FuncOp) -> None:
    """call @g(%y)  =>  the body of @g with %y for its arguments"""
    body = function.body.clone()
    if len(body.blocks) == 1:
        block = body.blocks[0]
        end = block.last_op
        assert isinstance(end, func.ReturnOp)
        returned = list(end.operands)
        mapping = dict(zip(block.args, call.arguments, strict=True))
        end.detach()
        end.drop_all_references()
        Rewriter.inline_block(block, InsertPoint.before(call), list(call.arguments))
        Rewriter.replace_op(call, [], [mapping.get(value, value) for value in returned])
        return
    here = call.parent_block()
    assert here is not None
    rest = here.split_before(call)
    for result in call.results:
        result.replace_all_uses_with(rest.insert_arg(result.type, len(rest.args)))
    entry, operands = body.blocks[0], list(call.arguments)
    for block in body.blocks:
        if isinstance(end := block.last_op, func.ReturnOp):
            Rewriter.replace_op(end, cf.BranchOp(rest, *end.operands))
    Rewriter.inline_region(body, BlockInsertPoint.before(rest))
    here.add_op(cf.BranchOp(entry, *operands))
    Rewriter.erase_op(call)


@dataclass(frozen=True)
class InlineCallsPass(ModulePass):
    """Calls of private functions become their bodies."""

    name = "irees-inline-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {
            f.sym_name.data: f
            for f in op.body.block.ops
            if isinstance(f, func.FuncOp) and not f.is_declaration
        }
        private = {
            name: f
            for name, f in functions.items()
            if f.sym_visibility is not None and f.sym_visibility.data == "private"
        }
        order = [name for name in bottom_up(functions) if name in private]
        for name in order:
            for call in [c for c in op.walk() if isinstance(c, func.CallOp)]:
                if call.callee.string_value() != name:
                    continue
                inside = isinstance(call.parent_op(), func.FuncOp)
                if inside or len(private[name].body.blocks) == 1:
                    inline(call, private[name])
        for name in order:
            left = {c.callee.string_value() for c in op.walk() if isinstance(c, func.CallOp)}
            if name not in left:
                Rewriter.erase_op(private[name], safe_erase=False)
