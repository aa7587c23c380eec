"""
Drops what a program says of IREE's kernels: configs, strategies and pipelines on its ops.

    %r = linalg.matmul {lowering_config = #iree_cpu.lowering_config<distribution = [64, 64]>} ...
  =>
    %r = linalg.matmul ...

They hold tile sizes for passes of IREE, and do not change what an op computes. Passes here choose
their own, and trust configs that they find: a list that is too short or sizes that do not divide
would be wrong code. A remark tells of each op. To choose tiles, pass `tuning` to the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from irees.remarks import remark

DIALECTS = ("iree_codegen", "iree_cpu", "iree_gpu")


def is_config(attribute: Attribute) -> bool:
    """Whether an attribute is one of those dialects."""
    return attribute.name.partition(".")[0] in DIALECTS


@dataclass(frozen=True)
class DropLoweringConfigsPass(ModulePass):
    """Ops have no configs."""

    name = "irees-drop-lowering-configs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            for key in [k for k, value in inner.attributes.items() if is_config(value)]:
                del inner.attributes[key]
                remark("missed", self.name, inner, f"{key!r} is for kernels of IREE: ignored")
