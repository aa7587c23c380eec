"""
Merges equal executables.

Networks repeat layers. After outlining, equal layers are functions that differ only in their names,
so each is compiled once. Executables are equal if operands, attributes and types match; names and
locations are ignored. IREE: `DeduplicateExecutables`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from irees.dialects.flow import DispatchOp, ExecutableOp
from irees.rewrites import may_rewrite


def fingerprint(function: func.FuncOp) -> Hashable:
    """
    Returns the ops of a function in order, with values numbered by definition instead of named.

    Functions with equal fingerprints compute the same. Linear in the number of ops.
    """
    numbers: dict[SSAValue, int] = {}

    def of_region(region: Region) -> Hashable:
        return tuple(of_block(block) for block in region.blocks)

    def of_block(block: Block) -> Hashable:
        for argument in block.args:
            numbers[argument] = len(numbers)
        types = tuple(a.type for a in block.args)
        return (types, tuple(of_op(op) for op in block.ops))

    def of_op(op: Operation) -> Hashable:
        operands = tuple(numbers[o] for o in op.operands)
        for result in op.results:
            numbers[result] = len(numbers)
        return (
            op.name,
            operands,
            tuple(r.type for r in op.results),
            tuple(sorted(op.properties.items(), key=lambda item: item[0])),
            tuple(sorted(op.attributes.items(), key=lambda item: item[0])),
            tuple(of_region(r) for r in op.regions),
        )

    return of_region(function.body)


@dataclass(frozen=True)
class DeduplicateExecutablesPass(ModulePass):
    """Merges equal executables and redirects their dispatches."""

    name = "irees-deduplicate-executables"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        first: dict[Hashable, str] = {}
        renamed: dict[str, str] = {}
        executables = {e.sym_name.data: e for e in op.body.block.ops if isinstance(e, ExecutableOp)}
        for name, executable in executables.items():
            function = next(f for f in executable.walk() if isinstance(f, func.FuncOp))
            kept = first.setdefault(fingerprint(function), name)
            what = f"merge of @{name} into @{kept}"
            if kept != name and may_rewrite(self.name, executable, what):
                renamed[name] = kept
        for dispatch in [d for d in op.walk() if isinstance(d, DispatchOp)]:
            kept = renamed.get(dispatch.entry_point.root_reference.data)
            if kept is not None:
                dispatch.entry_point = SymbolRefAttr(kept, [kept])
        for name in renamed:
            executables[name].detach()
            executables[name].erase()
