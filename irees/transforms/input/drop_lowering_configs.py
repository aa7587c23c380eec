"""
Drops IREE's code generation attributes from ops: lowering configs, strategies and pipelines.

    %r = linalg.matmul {lowering_config = #iree_cpu.lowering_config<distribution = [64, 64]>} ...
  =>
    %r = linalg.matmul ...

These attributes hold tile sizes for IREE's passes and do not affect the result. irees chooses its
own configs and trusts any config that it finds: a list that is too short, or sizes that do not
divide, would produce wrong code. Each dropped attribute gets a remark. To choose tile sizes, pass
`tuning` to the compiler.
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
    """Whether the attribute belongs to one of DIALECTS."""
    return attribute.name.partition(".")[0] in DIALECTS


@dataclass(frozen=True)
class DropLoweringConfigsPass(ModulePass):
    """Removes IREE's code generation attributes from ops."""

    name = "irees-drop-lowering-configs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            for key in [k for k, value in inner.attributes.items() if is_config(value)]:
                del inner.attributes[key]
                remark(
                    "missed",
                    self.name,
                    inner,
                    f"ignored {key!r}: it configures IREE's code generation",
                )
