"""
Inlines function calls.

Fusion, common subexpressions and memory placement are decided for the whole program, and a callee
may use several devices like any other code.

    func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = "f"(%x) ; return %0 }
    %1 = func.call @g(%y)
  =>
    %1 = "f"(%y)

The pass inlines a function at every call, then erases the function unless it is an entry point.
Calls stay for functions that are only declared, are recursive or call a recursive function, or have
several blocks (`irees-lift-cf-to-scf` runs before). A later pass that cannot handle such a call
reports an error. MLIR: `inline`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees import limits
from irees.dialects.signature import is_entry
from irees.transforms.utils.inlining import splice


def _callees(function: func.FuncOp) -> set[str]:
    return {op.callee.string_value() for op in function.walk() if isinstance(op, func.CallOp)}


def bottom_up(functions: dict[str, func.FuncOp]) -> list[str]:
    """Returns names, callees first, without functions that recurse or call one that recurses."""
    order: list[str] = []
    ends: dict[str, bool] = {}
    """Whether no call path from a function is recursive; False while the search is in progress."""
    calls = {name: sorted(_callees(f) & functions.keys()) for name, f in functions.items()}
    for root in functions:
        stack = [(root, iter(calls[root]))] if root not in ends else []
        ends.setdefault(root, False)
        while stack:
            name, rest = stack[-1]
            below = next((each for each in rest if each not in ends), None)
            if below is not None:
                ends[below] = False
                stack.append((below, iter(calls[below])))
                continue
            stack.pop()
            if all(ends[each] for each in calls[name]):
                ends[name] = True
                order.append(name)
    return order


class Inliner:
    """Inlines functions; every copy except the first is charged to the work budget."""

    def __init__(self):
        self._sizes: dict[func.FuncOp, int] = {}

    def inline(self, call: func.CallOp, function: func.FuncOp) -> None:
        """
        call @g(%y)  =>  the body of @g with %y for its arguments

        Raises LimitExceededError if the program grows too large.
        """
        if function not in self._sizes:
            self._sizes[function] = sum(1 for _ in function.body.walk())
        else:
            limits.spend("inlining", self._sizes[function], op=call)
        body = function.body.clone().block
        results = splice(body, InsertPoint.before(call), list(call.arguments))
        Rewriter.replace_op(call, [], results)


@dataclass(frozen=True)
class InlineCallsPass(ModulePass):
    """Inlines function calls."""

    name = "irees-inline-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, func.FuncOp)}
        order = bottom_up({n: f for n, f in functions.items() if len(f.body.blocks) == 1})
        flat = {name: functions[name] for name in order}
        inliner = Inliner()
        # Callees first: an inlined body then has no inlinable calls left.
        for caller in (*flat.values(), *(f for n, f in functions.items() if n not in flat)):
            for call in [c for c in caller.walk() if isinstance(c, func.CallOp)]:
                if (callee := flat.get(call.callee.string_value())) is not None:
                    inliner.inline(call, callee)
        for function in flat.values():
            if not is_entry(function):
                Rewriter.erase_op(function)
