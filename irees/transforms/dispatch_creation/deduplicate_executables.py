"""
Keeps one of several equal executables.

A network repeats its layers, and after outlining equal layers are equal functions on
equal types: only their names differ. Each is compiled once (IREE:
`DeduplicateExecutables`). Equality is equality of the printed function, so operands,
attributes and types all count, and locations do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from irees.dialects.flow import DispatchOp, ExecutableOp


def _text(executable: ExecutableOp) -> str:
    function = next(op for op in executable.walk() if isinstance(op, func.FuncOp))
    name = function.sym_name
    function.sym_name = StringAttr("f")
    out = StringIO()
    Printer(out, print_generic_format=True).print_op(function)
    function.sym_name = name
    return out.getvalue()


@dataclass(frozen=True)
class DeduplicateExecutablesPass(ModulePass):
    """Equal executables are merged and their dispatches redirected."""

    name = "irees-deduplicate-executables"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        first: dict[str, str] = {}
        renamed: dict[str, str] = {}
        executables = {
            e.sym_name.data: e for e in op.body.block.ops if isinstance(e, ExecutableOp)
        }
        for name, executable in executables.items():
            kept = first.setdefault(_text(executable), name)
            if kept != name:
                renamed[name] = kept
        for dispatch in [d for d in op.walk() if isinstance(d, DispatchOp)]:
            kept = renamed.get(dispatch.entry_point.root_reference.data)
            if kept is not None:
                dispatch.entry_point = SymbolRefAttr(kept, [kept])
        for name in renamed:
            executables[name].detach()
            executables[name].erase()
