"""
Selects the strategy of each GPU kernel: which ops are fused, their tile sizes, and the threads.

`analysis/distribution.py` partitions the ops into groups, as on a CPU. An op joins a group if there
is still a workgroup per multiprocessor, no parallelism is lost, or the tiles are small.

* Contraction: the blocking with the fewest predicted cycles (`utils/waves.py`), where tiles may be
  shared by workgroups; among similar ones, the one with the least operand traffic. Remarks give the
  cycles of the others. Matrix instructions need GPU support: f16 or bf16 into f32 if sums may be
  reordered, f32 if it may be rounded to tf32, and signed i8 into i32, which is exact. Tiles are
  multi-stage if the GPU copies to shared memory asynchronously. `wgmma` also needs operands that
  TMA, or asynchronous copies of 4 bytes or more, can load. If scalar loads for `mma.sync` would
  spill, the block gets fewer steps at a time, or more warps.
* Attention: a tile of queries of one batch, of one or two warpgroups if `wgmma` can compute it.
* Transpose: square tiles. Other elementwise ops: 16 bytes per thread.
* Reduction: one result per thread; along rows, one or a few rows, which warps share; along columns,
  whole 128-byte lines. Long rows get more threads.

A group without tileable loops keeps zeros and runs as one workgroup, so every kernel compiles.

    linalg.generic {...}   =>   linalg.generic {..., lowering_config =
                                    #iree_codegen.lowering_config<{group = 0, workgroup = [8, 0]}>}

IREE: `KernelConfig.cpp` of LLVMGPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.analysis.attention import roles_of
from irees.analysis.contractions import element_kinds, multiply_add, roles
from irees.analysis.distribution import Group, Loops, groups_of, loops_of
from irees.analysis.transposes import crossing_loops
from irees.dialects import iree_linalg_ext as ext
from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.irees_target import gpu_of, is_strict, matrix_kinds_of, target_of
from irees.remarks import remark
from irees.strategies import config_of_plugins
from irees.target import GpuFacts, Target
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.attention_forms import why_no_warpgroups
from irees.transforms.codegen.gpu.utils.blocking import (
    WARPGROUP_CANDIDATES,
    WARPGROUP_ROWS,
    WIDE_CANDIDATE,
    AnyBlocking,
    AttentionBlocking,
    Blocking,
    MatrixBlocking,
    WarpgroupBlocking,
    candidates_for,
    fits,
    has_matrix_form,
    matrix_candidates,
    may_share,
    sides,
    tiles_of,
    why_no_blocks,
    workgroups,
)
from irees.transforms.codegen.gpu.utils.boxes import boxes_of
from irees.transforms.codegen.gpu.utils.operands import why_no_thread_copies, why_not_wide
from irees.transforms.codegen.gpu.utils.predictions import add_cycles
from irees.transforms.codegen.gpu.utils.single_loads import why_no_single_loads
from irees.transforms.codegen.gpu.utils.tiles import (
    attention_tiles,
    row_tiles,
    square_tiles,
    threads_wanted,
)
from irees.transforms.codegen.gpu.utils.waves import Waves, step_of
from irees.transforms.utils.lanes import lane_bytes
from irees.transforms.utils.shapes import element_bytes

LEAST_WARP_COLUMNS = 16
"""Minimum columns of a warp: those of two `mma.sync`, whose fragments are loaded together."""


@dataclass(frozen=True)
class Machine:
    """Facts and options that the strategy depends on; `workgroups` is one per multiprocessor."""

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
    gpu: GpuFacts


def configure(function: func.FuncOp, machine: Machine, target: Target) -> list[LoweringConfigAttr]:
    """Sets the config of every op of a kernel; returns them in order, with trip counts."""
    ops = [o for o in function.body.block.ops if loops_of(o) is not None]
    chosen: dict[Operation, LoweringConfigAttr] = {}
    for number, group in enumerate(groups_of(ops, machine.workgroups, machine.small_tile)):
        found = config_of_plugins(group, target, GpuSelectStrategyPass.name)
        if found is None:
            tiles, block = own_tiles(group, machine)
            write_config(group, number, tiles, block, chosen)
        else:
            threads = found.threads or NVIDIA.threads
            write_config(group, number, found.tiles, threads, chosen, found.entries)
    return [chosen[op] for op in ops]


def own_tiles(
    group: Group, machine: Machine
) -> tuple[Sequence[int], tuple[int, AnyBlocking | AttentionBlocking] | int]:
    """Returns the tile of each loop class, and the blocking of a contraction or the threads."""
    attention = next(
        (i for i, m in enumerate(group.members) if isinstance(m.op, ext.AttentionOp)), None
    )
    if attention is not None:
        op = group.members[attention].op
        assert isinstance(op, ext.AttentionOp)
        roles, blocking = roles_of(op), attention_blocking(op, machine)
        assert roles is not None
        rows = NVIDIA.attention_rows if blocking is None else blocking.rows
        tiles = attention_tiles(group, attention, roles.row, rows)
        return tiles, NVIDIA.threads if blocking is None else (attention, blocking)
    heavy = next(
        (
            i
            for i, m in enumerate(group.members)
            if isinstance(m.op, linalg.GenericOp) and why_no_blocks(m.op) is None
        ),
        None,
    )
    if heavy is not None:
        tiles, blocking = contraction_tiles(group, heavy, machine)
        return tiles, (heavy, blocking)
    only = group.members[0].op
    crossing = None
    if len(group.members) == 1 and isinstance(only, linalg.GenericOp):
        crossing = crossing_loops(only)
    if crossing is None:
        tiles = row_tiles(group, machine.reassociate, machine.workgroups)
    else:
        tiles = square_tiles(group, *crossing)
    return tiles, threads_wanted(group, tiles, machine.reassociate)


def attention_blocking(op: ext.AttentionOp, machine: Machine) -> AttentionBlocking | None:
    """Returns the rows of queries of an attention by `wgmma`, or None if it has none."""
    if not machine.boxes or not machine.warpgroup_kinds:
        return None
    roles = roles_of(op)
    assert roles is not None
    for count in NVIDIA.attention_warpgroups:
        blocking = AttentionBlocking(count * WARPGROUP_ROWS)
        reason = why_no_warpgroups(
            op, machine.warpgroup_kinds, blocking.rows, machine.warpgroup_shared_bytes
        )
        tiles = {roles.row: blocking.rows} | {loop: 1 for loop in roles.outer}
        found = workgroups(roles.sizes, tiles, NVIDIA.assumed_trip_count)
        last = count == NVIDIA.attention_warpgroups[-1]
        if reason is None and found < machine.workgroups and not last:
            reason = f"{found} workgroups; {machine.workgroups} are needed to fill the GPU"
        if reason is None:
            return blocking
        remark("missed", GpuSelectStrategyPass.name, op, f"{count} warpgroups: {reason}")
    return None


def contraction_tiles(group: Group, heavy: int, machine: Machine) -> tuple[list[int], AnyBlocking]:
    """Returns the tile of each loop class of a group with a contraction, and its blocking."""
    member = group.members[heavy]
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    (_, rows), (_, columns) = sides(op)
    loops = [c[heavy] for c in group.classes]
    candidates, shared = candidates_of(op, machine)
    best, taken, fewest = [1] * len(loops), candidates[-1], inf
    others: list[tuple[str, float]] = []
    for blocking in candidates:
        tiles = {loop: 1 for loop in loops}
        tiles |= tiles_of([x for x in rows if x in loops], member.sizes, blocking.rows)
        tiles |= tiles_of([x for x in columns if x in loops], member.sizes, blocking.columns)
        # If none fits, the last is chosen; if it does not fit later either, loops are emitted.
        last = fewest == inf and blocking is candidates[-1]
        blocking = with_fewer_loads(op, blocking, trips_of(member, tiles))
        name = f"{blocking.rows} x {blocking.columns} x {blocking.depth}"
        reason = why_not(member, blocking, tiles, machine, shared)
        if reason is not None and not last:
            remark("missed", GpuSelectStrategyPass.name, op, f"blocks of {name}: {reason}")
            continue
        cycles = predicted(member, blocking, tiles, machine)
        others.append((name, cycles))
        if cycles < NVIDIA.block_ratio * fewest:
            fewest, taken, best = cycles, blocking, [tiles[loop] for loop in loops]
    report(member, others, fewest)
    extents = group.extents()
    return [0 if t == e else t for t, e in zip(best, extents, strict=True)], taken


def report(member: Loops, others: Sequence[tuple[str, float]], fewest: float) -> None:
    """Emits a remark with the cycles of each block not chosen; records those of the chosen one."""
    for name, cycles in others:
        if cycles != fewest:
            said = f"blocks of {name}: predicted {cycles:.0f} cycles, the best takes {fewest:.0f}"
            remark("missed", GpuSelectStrategyPass.name, member.op, said)
    if fewest < inf and min(member.sizes) >= 0:
        add_cycles(member.op, fewest)


def candidates_of(op: linalg.GenericOp, machine: Machine) -> tuple[Sequence[AnyBlocking], int]:
    """
    Returns the candidates for a contraction, in order of increasing operand traffic for each kind
    of instruction, and the shared memory of those without warpgroups.
    """
    candidates: Sequence[AnyBlocking] = candidates_for(op, asynchronous=machine.asynchronous)
    shared = machine.shared_bytes
    if has_matrix_form(op, machine.matrix_kinds, reassociate=machine.reassociate):
        size = element_bytes(op.inputs[0].type)
        candidates = matrix_candidates(size, asynchronous=machine.asynchronous)
        shared = machine.matrix_shared_bytes
    if has_matrix_form(op, machine.warpgroup_kinds, reassociate=machine.reassociate):
        candidates = (*WARPGROUP_CANDIDATES, *candidates)
    return candidates, shared


def trips_of(member: Loops, tiles: dict[int, int]) -> list[int]:
    """Returns the trip counts of a workgroup's loops (-1: dynamic, or a partial tile)."""
    # Tile sizes are static only if they divide the trip counts.
    left = [n if n % tiles.get(x, 1) == 0 else -1 for x, n in enumerate(member.sizes)]
    return [tiles.get(x, n) if n >= 0 else n for x, n in enumerate(left)]


def with_fewer_loads(
    op: linalg.GenericOp, blocking: AnyBlocking, trips: Sequence[int]
) -> AnyBlocking:
    """
    Reduces the depth of a block for `mma.sync`, then the columns of its warps, until the elements
    that a thread loads one at a time fit into its registers.
    """
    size = element_bytes(op.inputs[0].type)
    while isinstance(blocking, MatrixBlocking):
        reason = why_no_single_loads(op, blocking, trips)
        if reason is None:
            break
        name = f"blocks of {blocking.rows} x {blocking.columns} x {blocking.depth}"
        if blocking.depth * size > NVIDIA.fragment_bytes:
            blocking = replace(blocking, depth=blocking.depth // 2)
        elif blocking.warp_columns > LEAST_WARP_COLUMNS:
            blocking = replace(blocking, warp_columns=blocking.warp_columns // 2)
        else:
            break
        remark("missed", GpuSelectStrategyPass.name, op, f"{name}: {reason}")
    return blocking


def why_not(
    member: Loops, blocking: AnyBlocking, tiles: dict[int, int], machine: Machine, shared: int
) -> str | None:
    """Returns why a contraction cannot be computed in these blocks, or None."""
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    sizes, warpgroups = trips_of(member, tiles), isinstance(blocking, WarpgroupBlocking)
    most = machine.warpgroup_shared_bytes if warpgroups else shared
    if blocking == WIDE_CANDIDATE:
        most = machine.matrix_shared_bytes
    if (reason := fits(blocking, op, most)) is not None:
        return reason
    if isinstance(blocking, MatrixBlocking):
        return why_no_single_loads(op, blocking, sizes)
    if isinstance(blocking, Blocking) and blocking == WIDE_CANDIDATE:
        return why_not_wide(op, blocking, sizes)
    if not isinstance(blocking, WarpgroupBlocking):
        return None
    if machine.boxes and not isinstance(boxes_of(op, blocking, sizes), str):
        return None
    return why_no_thread_copies(op, blocking, sizes)


def predicted(
    member: Loops, blocking: AnyBlocking, tiles: dict[int, int], machine: Machine
) -> float:
    """Returns the cycles of a contraction in blocks, whose tiles may be shared by workgroups."""
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    parts = multiply_add(op)
    assert parts is not None
    assumed = NVIDIA.assumed_trip_count
    depth = prod(assumed if n < 0 else n for n in (member.sizes[x] for x in roles(op, parts).k))
    *_, output = element_kinds(op, parts)
    count = workgroups(member.sizes, tiles, assumed)
    size = blocking.rows * blocking.columns * lane_bytes(output)
    step = step_of(blocking, element_bytes(op.inputs[0].type), machine.gpu)
    waves = Waves(count, max(1, -(-depth // blocking.depth)), size, machine.workgroups, step)
    cut = any(member.sizes[loop] % tile for loop, tile in tiles.items())
    sharing = min(member.sizes) >= 0 and (machine.reassociate or isinstance(output, IntegerType))
    sharing = sharing and may_share(blocking, machine.gpu, cut=cut)
    return waves.fewest(sharing=sharing)


def write_config(
    group: Group,
    number: int,
    tiles: Sequence[int],
    block: tuple[int, AnyBlocking | AttentionBlocking] | int,
    chosen: dict[Operation, LoweringConfigAttr],
    more: Mapping[int, Mapping[str, int | Sequence[int]]] | None = None,
) -> None:
    """
    Sets the configs of a group: the tile of each loop class, and the thread count.

    `block` is the number of the contraction and its blocking, or the thread count without one.
    `more` has more entries by the number of the member.
    """
    threads = block if isinstance(block, int) else block[1].threads
    for position, member in enumerate(group.members):
        workgroup = [0] * len(member.kinds)
        for group_class, tile in zip(group.classes, tiles, strict=True):
            workgroup[group_class[position]] = tile
        entries: dict[str, int | Sequence[int]] = {"group": number, "workgroup": workgroup}
        if not isinstance(block, int) and block[0] == position:
            entries |= block[1].as_entries()
        if isinstance(block, int) and threads != NVIDIA.threads:
            entries["threads"] = threads
        entries |= (more or {}).get(position, {})
        member.op.attributes["lowering_config"] = LoweringConfigAttr.of(**entries)
        entries["sizes"] = [max(-1, size) for size in member.sizes]
        entries["threads"] = threads
        chosen[member.op] = LoweringConfigAttr.of(**entries)


@dataclass(frozen=True)
class GpuSelectStrategyPass(ModulePass):
    """Sets the lowering config of every op of a kernel."""

    name = "irees-gpu-select-strategy"

    boxes: bool = True
    """Whether `irees-gpu-use-bulk-copies` will run."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = gpu_of(op)
        machine = Machine(
            gpu.multiprocessors,
            gpu.shared_bytes,
            not is_strict(op),
            matrix_kinds_of(op),
            gpu.asynchronous_copies,
            gpu.matrix_shared_bytes,
            gpu.warpgroup_kinds,
            gpu.shared_opt_in_bytes,
            gpu.launch_bytes,
            self.boxes,
            gpu,
        )
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                configs = configure(function, machine, target_of(op))
                # Tiling removes the configs from the ops; reports read this copy.
                executable.attributes["configs"] = ArrayAttr(configs)
