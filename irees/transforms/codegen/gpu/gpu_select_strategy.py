"""
Chooses how each kernel runs on a GPU: which ops share a workgroup, and the tile that it takes.

The ops of a kernel are cut into groups (`analysis/distribution.py`), as for a CPU. A workgroup has
THREADS threads, so a tile has a few points for each: four where they are elementwise, one where each
is a reduction of its own. A group without a tileable loop keeps zeros and runs as one workgroup: that
is the total fallback.

    linalg.generic {...}   =>   linalg.generic {..., lowering_config =
                                    #iree_codegen.lowering_config<{group = 0, workgroup = [8, 0]}>}

IREE: `KernelConfig.cpp` of LLVMGPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.analysis.distribution import Group, groups_of, loops_of
from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.transforms.codegen.gpu._tiles import THREADS, row_tiles


def configure(function: func.FuncOp, workgroups: int) -> list[LoweringConfigAttr]:
    """Writes the config of every op of one kernel, and returns all in order, with trip counts."""
    ops = [o for o in function.body.block.ops if loops_of(o) is not None]
    chosen: dict[Operation, LoweringConfigAttr] = {}
    for number, group in enumerate(groups_of(ops, enough=workgroups)):
        write_config(group, number, row_tiles(group), chosen)
    return [chosen[op] for op in ops]


def write_config(
    group: Group, number: int, tiles: Sequence[int], chosen: dict[Operation, LoweringConfigAttr]
) -> None:
    """One tile for each class of the group, on every op of it."""
    for position, member in enumerate(group.members):
        workgroup = [0] * len(member.kinds)
        for group_class, tile in zip(group.classes, tiles, strict=True):
            workgroup[group_class[position]] = tile
        entries: dict[str, int | Sequence[int]] = {"group": number, "workgroup": workgroup}
        member.op.attributes["lowering_config"] = LoweringConfigAttr.of(**entries)
        entries["sizes"] = [max(-1, size) for size in member.sizes]
        entries["threads"] = THREADS
        chosen[member.op] = LoweringConfigAttr.of(**entries)


@dataclass(frozen=True)
class GpuSelectStrategyPass(ModulePass):
    """Every op of a kernel gets a lowering config."""

    name = "irees-gpu-select-strategy"

    workgroups: int = 216
    """How many workgroups keep the whole GPU busy."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                configs = configure(function, self.workgroups)
                # Tiling takes the configs off the ops; reports read them here.
                executable.attributes["configs"] = ArrayAttr(configs)
