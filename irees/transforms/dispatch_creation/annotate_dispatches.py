"""
Writes down what each function and each kernel has to do, while it is still on tensors.

A function with structured ops gets `work`, its arithmetic operations and the bytes that must move
(`analysis/work.py`), where they are known. An executable gets the same, and the `key` of its
content, by which a tuned configuration finds it again. The manifest takes both along, for
`explain` and the benchmarks; nothing that is compiled depends on them.

    flow.executable @e { func.func @e(...) {...} }
  =>
    flow.executable @e {key = "1f0c...", work = {bytes = 96 : i64, flops = 16 : i64}} { ... }

The pipeline runs it twice: before ops become dispatches, for functions of the host, and after
equal executables were merged. Whatever has its `work` already keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.analysis.work import work_of
from irees.dialects.flow import ExecutableOp
from irees.rewrites import may_rewrite
from irees.transforms.utils.content_key import content_key

LARGEST = 1 << 63


def annotate(function: func.FuncOp, owner: Operation) -> None:
    """Writes the work of a function onto it or its executable."""
    if function.is_declaration or "work" in owner.attributes:
        return
    work = work_of(function)
    if work is None:
        return
    known = {"flops": work.flops, "bytes": work.bytes}
    # A kernel may read and write more than 63 bits count.
    entries = {n: IntegerAttr(v, i64) for n, v in known.items() if v is not None and v < LARGEST}
    if entries:
        owner.attributes["work"] = DictionaryAttr(entries)


@dataclass(frozen=True)
class AnnotateDispatchesPass(ModulePass):
    """Functions and executables say how much work they are."""

    name = "irees-annotate-dispatches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for top in op.body.block.ops:
            if not may_rewrite(self.name, top, f"annotate {top.name}"):
                continue
            if isinstance(top, func.FuncOp):
                annotate(top, top)
            elif isinstance(top, ExecutableOp):
                function = next(f for f in top.walk() if isinstance(f, func.FuncOp))
                annotate(function, top)
                top.attributes["key"] = StringAttr(content_key(function))
