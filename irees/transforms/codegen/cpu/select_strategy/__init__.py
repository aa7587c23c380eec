"""
Selects the tile sizes of each kernel, and the ops that share a tile loop.

The ops of a kernel are partitioned into groups (`analysis/distribution.py`). Each op gets a
`#iree_codegen.lowering_config` with the number of its group and a tile size per loop, 0 for a loop
that is not tiled. A group with a contraction is tiled for its packed panels, and the contraction
gets its register block, MR x NR. Any other group is tiled into chunks of rows, each large enough to
pay for its dispatch to a thread. A group without a tileable loop keeps zeros and is not tiled: this
fallback covers every kernel.

    linalg.generic {...}   =>   linalg.generic {..., lowering_config =
                                    #iree_codegen.lowering_config<{group = 0, workgroup = [1, 0]}>}

IREE: `KernelDispatch.cpp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.analysis.contractions import is_contraction, multiply_add, vector_side
from irees.analysis.distribution import Group, groups_of, loops_of
from irees.analysis.masked_columns import masked_columns
from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.irees_target import target_of
from irees.strategies import Config, config_of_plugins
from irees.target import Target
from irees.transforms.codegen.cpu.select_strategy.chunks import (
    chunk_tiles,
    crossing_member,
    crossing_tiles,
)
from irees.transforms.codegen.cpu.select_strategy.contraction_tiles import (
    Machine,
    contraction_config,
)
from irees.transforms.codegen.cpu.select_strategy.masked_tiles import masked_config
from irees.transforms.codegen.cpu.select_strategy.tuned_configs import tuned_block, tuned_tiles


def _has_panels(op: linalg.GenericOp) -> bool:
    """Whether an op is a contraction that profits from packing, so no depthwise convolution."""
    parts = multiply_add(op)
    return parts is not None and is_contraction(op) and vector_side(op, parts) is not None


def own_config(group: Group, machine: Machine) -> Config:
    """Returns the built-in config of a group: that of its contraction, or chunks of rows."""
    contractions = [
        i
        for i, m in enumerate(group.members)
        if isinstance(m.op, linalg.GenericOp) and _has_panels(m.op)
    ]
    heavy = contractions[0] if contractions else None
    masked = masked_columns(group.members) if len(contractions) > 1 else None
    if masked is not None:
        return masked_config(group, masked, contractions, machine)
    if heavy is not None:
        tiles, block = contraction_config(group, heavy, machine)
        if block is None:
            return Config(tiles)
        chosen = tuned_block(group.members[heavy].op, block, machine.vector_bytes // 4)
        return Config(tiles, entries={heavy: {"block": chosen}})
    crossing = crossing_member(group)
    return Config(chunk_tiles(group) if crossing is None else crossing_tiles(group, *crossing))


def tile_groups(ops: Sequence[Operation], machine: Machine) -> list[Group]:
    """Partitions the ops of a kernel into tile loops; those with masked columns share one."""
    whole = Group.of([loops for op in ops if (loops := loops_of(op)) is not None])
    if whole.classes and masked_columns(whole.members) is not None:
        return [whole]
    return groups_of(ops, enough=4 * machine.threads)


def configure(function: func.FuncOp, target: Target) -> list[LoweringConfigAttr]:
    """
    Writes the config of every op of one kernel, and returns all in order, with trip counts.

    Tiles and a register block that an op has already (`irees-apply-tuning`) stay as they are.
    """
    ops = [o for o in function.body.block.ops if loops_of(o) is not None]
    machine = Machine(target.threads, target.vector_bytes, target.vector_registers, target.l2_bytes)
    chosen: dict[Operation, LoweringConfigAttr] = {}
    for number, group in enumerate(tile_groups(ops, machine)):
        found = config_of_plugins(group, target, SelectStrategyPass.name)
        config = found or own_config(group, machine)
        tiles = tuned_tiles(group, config.tiles)
        for position, member in enumerate(group.members):
            workgroup = [0] * len(member.kinds)
            for group_class, tile in zip(group.classes, tiles, strict=True):
                workgroup[group_class[position]] = tile
            entries: dict[str, int | Sequence[int]] = {"group": number, "workgroup": workgroup}
            entries |= config.entries.get(position, {})
            member.op.attributes["lowering_config"] = LoweringConfigAttr.of(**entries)
            entries["sizes"] = [max(-1, size) for size in member.sizes]
            chosen[member.op] = LoweringConfigAttr.of(**entries)
    return [chosen[op] for op in ops]


@dataclass(frozen=True)
class SelectStrategyPass(ModulePass):
    """Gives every op of a kernel a lowering config."""

    name = "irees-select-strategy"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                # Tiling removes the configs from the ops; reports read them here.
                executable.attributes["configs"] = ArrayAttr(configure(function, target))
