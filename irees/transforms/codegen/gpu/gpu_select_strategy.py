"""
Chooses how each kernel runs on a GPU: which ops share a workgroup, and the tile that it takes.

The ops of a kernel are cut into groups (`analysis/distribution.py`), as for a CPU; they stay
together while there are workgroups for the whole GPU, or little for each to move. A group with a
contraction takes the blocking that reads the least and still makes enough workgroups; what was
not taken is a remark. One of f16 or bf16 into f32 takes a blocking for matrix instructions, where
the GPU has them and sums may be reordered, and so does one of signed i8 into i32, which is exact,
and of f32 where it may be rounded to tf32; where the GPU copies to shared memory while it
multiplies, with several stages. Halves that can be copied in boxes, or by 4 bytes or more, go by
warpgroups where the GPU has instructions for those. In any other group a workgroup has THREADS
threads, so a tile has a few points for each: 16 bytes where they are elementwise, one where each is
a reduction of its own, a row or a few where reductions are along rows, which warps share, and so
many columns as make a line of memory where they are along columns. Long rows have more threads.
A group without a tileable loop keeps zeros and runs as one workgroup: that is the total fallback.

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
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.analysis.attention import roles_of
from irees.analysis.distribution import Group, groups_of, loops_of
from irees.analysis.transposes import crossing_loops
from irees.dialects import iree_linalg_ext as ext
from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.remarks import remark
from irees.transforms.codegen.gpu.utils.blocking import (
    WARPGROUP_CANDIDATES,
    AnyBlocking,
    WarpgroupBlocking,
    candidates_for,
    fits,
    has_matrix_form,
    matrix_candidates,
    sides,
    tiles_of,
    why_no_blocks,
    workgroups,
)
from irees.transforms.codegen.gpu.utils.boxes import boxes_of
from irees.transforms.codegen.gpu.utils.tiles import (
    DYNAMIC_GUESS,
    THREADS,
    attention_tiles,
    row_tiles,
    square_tiles,
    threads_wanted,
)
from irees.transforms.codegen.gpu.utils.warpgroup_contraction import WarpgroupContraction
from irees.transforms.utils.shapes import element_bytes


@dataclass(frozen=True)
class Machine:
    """What a choice depends on: workgroups that keep the GPU busy, and a workgroup's memory."""

    workgroups: int
    shared_bytes: int
    reassociate: bool
    matrix_kinds: tuple[str, ...]
    asynchronous: bool
    matrix_shared_bytes: int
    warpgroup_kinds: tuple[str, ...]
    warpgroup_shared_bytes: int
    small_tile: int
    boxes: bool


def configure(function: func.FuncOp, machine: Machine) -> list[LoweringConfigAttr]:
    """Writes the config of every op of one kernel, and returns all in order, with trip counts."""
    ops = [o for o in function.body.block.ops if loops_of(o) is not None]
    chosen: dict[Operation, LoweringConfigAttr] = {}
    for number, group in enumerate(groups_of(ops, machine.workgroups, machine.small_tile)):
        attention = next(
            (i for i, m in enumerate(group.members) if isinstance(m.op, ext.AttentionOp)), None
        )
        if attention is not None:
            roles = roles_of(group.members[attention].op)  # type: ignore[arg-type]
            assert roles is not None
            tiles = attention_tiles(group, attention, roles.m[-1])
            write_config(group, number, tiles, THREADS, chosen)
            continue
        heavy = next(
            (
                i
                for i, m in enumerate(group.members)
                if isinstance(m.op, linalg.GenericOp) and why_no_blocks(m.op) is None
            ),
            None,
        )
        if heavy is None:
            only = group.members[0].op
            crossing = None
            if len(group.members) == 1 and isinstance(only, linalg.GenericOp):
                crossing = crossing_loops(only)
            if crossing is None:
                tiles = row_tiles(group, machine.reassociate, machine.workgroups)
            else:
                tiles = square_tiles(group, *crossing)
            threads = threads_wanted(group, tiles, machine.reassociate)
            write_config(group, number, tiles, threads, chosen)
            continue
        tiles, blocking = contraction_tiles(group, heavy, machine)
        write_config(group, number, tiles, (heavy, blocking), chosen)
    return [chosen[op] for op in ops]


def contraction_tiles(group: Group, heavy: int, machine: Machine) -> tuple[list[int], AnyBlocking]:
    """A tile for each class of a group with a contraction, and its blocking."""
    member = group.members[heavy]
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    (_, rows), (_, columns) = sides(op)
    loops = [c[heavy] for c in group.classes]
    candidates = candidates_for(op, asynchronous=machine.asynchronous)
    best, taken, shared = [1] * len(loops), candidates[-1], machine.shared_bytes
    if has_matrix_form(op, machine.matrix_kinds, reassociate=machine.reassociate):
        size = element_bytes(op.inputs[0].type)
        candidates = matrix_candidates(size, asynchronous=machine.asynchronous)
        shared = machine.matrix_shared_bytes
    if has_matrix_form(op, machine.warpgroup_kinds, reassociate=machine.reassociate):
        candidates = (*WARPGROUP_CANDIDATES, *candidates)
    for blocking in candidates:
        taken = blocking
        tiles = {loop: 1 for loop in loops}
        tiles |= tiles_of([x for x in rows if x in loops], member.sizes, blocking.rows)
        tiles |= tiles_of([x for x in columns if x in loops], member.sizes, blocking.columns)
        best = [tiles[loop] for loop in loops]
        count = workgroups(member.sizes, tiles, DYNAMIC_GUESS)
        whole = isinstance(blocking, WarpgroupBlocking)
        reason = fits(blocking, op, machine.warpgroup_shared_bytes if whole else shared)
        if reason is None and isinstance(blocking, WarpgroupBlocking):
            # A tile is as long as it says only where it divides its loop.
            left = [n if n % tiles.get(x, 1) == 0 else -1 for x, n in enumerate(member.sizes)]
            sizes = [tiles.get(x, n) if n >= 0 else n for x, n in enumerate(left)]
            if not machine.boxes or isinstance(boxes_of(op, blocking, sizes), str):
                reason = WarpgroupContraction(op, blocking).why_not(sizes)
        if reason is None and count < machine.workgroups:
            reason = f"{count} workgroups, and {machine.workgroups} keep the GPU busy"
        if reason is None or blocking is candidates[-1]:
            break
        name = f"{blocking.rows} x {blocking.columns} x {blocking.depth}"
        remark("missed", "irees-gpu-select-strategy", op, f"blocks of {name}: {reason}")
    extents = group.extents()
    return [0 if t == e else t for t, e in zip(best, extents, strict=True)], taken


def write_config(
    group: Group,
    number: int,
    tiles: Sequence[int],
    block: tuple[int, AnyBlocking] | int,
    chosen: dict[Operation, LoweringConfigAttr],
) -> None:
    """
    One tile for each class of the group, on every op of it, and the blocking of the one of a
    number, or how many threads there are.
    """
    threads = block if isinstance(block, int) else block[1].threads
    for position, member in enumerate(group.members):
        workgroup = [0] * len(member.kinds)
        for group_class, tile in zip(group.classes, tiles, strict=True):
            workgroup[group_class[position]] = tile
        entries: dict[str, int | Sequence[int]] = {"group": number, "workgroup": workgroup}
        if not isinstance(block, int) and block[0] == position:
            entries |= block[1].as_entries()
        if isinstance(block, int) and threads != THREADS:
            entries["threads"] = threads
        member.op.attributes["lowering_config"] = LoweringConfigAttr.of(**entries)
        entries["sizes"] = [max(-1, size) for size in member.sizes]
        entries["threads"] = threads
        chosen[member.op] = LoweringConfigAttr.of(**entries)


@dataclass(frozen=True)
class GpuSelectStrategyPass(ModulePass):
    """Every op of a kernel gets a lowering config."""

    name = "irees-gpu-select-strategy"

    workgroups: int = 108
    """How many workgroups keep the whole GPU busy."""
    shared_bytes: int = 48 << 10
    reassociate: bool = True
    matrix_kinds: tuple[str, ...] = ()
    """Element types that the GPU's matrix instructions multiply."""
    asynchronous: bool = False
    """Whether copies to shared memory need not be waited for at once."""
    matrix_shared_bytes: int = 48 << 10
    """What tiles for matrix instructions may take: so much that two workgroups run at a time."""
    warpgroup_kinds: tuple[str, ...] = ()
    """Element types that warpgroups multiply together."""
    warpgroup_shared_bytes: int = 48 << 10
    """What tiles for those may take."""
    small_tile: int = 32 << 10
    """Bytes of a workgroup that it moves while another kernel would be launched."""
    boxes: bool = True
    """Whether `irees-gpu-use-bulk-copies` will run."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = Machine(
            self.workgroups,
            self.shared_bytes,
            self.reassociate,
            self.matrix_kinds,
            self.asynchronous,
            self.matrix_shared_bytes,
            self.warpgroup_kinds,
            self.warpgroup_shared_bytes,
            self.small_tile,
            self.boxes,
        )
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                configs = configure(function, machine)
                # Tiling takes the configs off the ops; reports read them here.
                executable.attributes["configs"] = ArrayAttr(configs)
