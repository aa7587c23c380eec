"""
Annotates functions and kernels with their work, before bufferization.

A function with structured ops gets `work`: its arithmetic operations and its minimum memory traffic
in bytes, if known (`analysis/work.py`). An executable also gets the `key` of its content, which
tuned configurations refer to. The manifest stores both for `explain` and the benchmarks; generated
code does not depend on them.

    flow.executable @e { func.func @e(...) {...} }
  =>
    flow.executable @e {key = "1f0c...", work = {bytes = 96 : i64, flops = 16 : i64}} { ... }

The pipeline runs the pass twice: before dispatches are formed, for host functions, and after equal
executables are merged. Existing `work` is kept.
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
    """Sets the `work` attribute of a function or its executable."""
    if function.is_declaration or "work" in owner.attributes:
        return
    work = work_of(function)
    if work is None:
        return
    known = {"flops": work.flops, "bytes": work.bytes}
    # The byte count of a kernel may exceed 63 bits.
    entries = {n: IntegerAttr(v, i64) for n, v in known.items() if v is not None and v < LARGEST}
    if entries:
        owner.attributes["work"] = DictionaryAttr(entries)


@dataclass(frozen=True)
class AnnotateDispatchesPass(ModulePass):
    """Annotates functions and executables with their work."""

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
