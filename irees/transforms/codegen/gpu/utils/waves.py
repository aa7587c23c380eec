"""
Predicts the run time of the workgroups of a contraction. Part of `irees-gpu-select-strategy` and
`irees-gpu-stream-k`.

A workgroup runs the steps of the reduction one after another. If it is alone on a multiprocessor, a
step takes its latency: loads from shared memory, the multiply-adds that depend on them, and a
barrier. Resident workgroups hide each other's latency until the throughput of multiply-adds, of
shared memory or of operand loads is the limit:

    step(r) = max(latency, r * work)            r workgroups on a multiprocessor
    whole   = sum over waves of depth * step(r)
    shared  = share * step(r) + cost of partial sums

Times are in cycles of a multiprocessor; they only rank the variants.
"""

from __future__ import annotations

from dataclasses import dataclass

from irees.target import GpuFacts
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.blocking import (
    WARPGROUP_ROWS,
    AnyBlocking,
    MatrixBlocking,
    WarpgroupBlocking,
)
from irees.transforms.codegen.gpu.utils.points import ACCESS_BYTES
from irees.transforms.codegen.gpu.utils.tiles import WARP


@dataclass(frozen=True)
class Step:
    """
    One step of the reduction of a workgroup: its latency in cycles, and the cycles for which it
    occupies the multiprocessor, which `resident` workgroups share.
    """

    latency: float
    work: float
    resident: int

    def cycles(self, workgroups: int) -> float:
        """Returns the cycles of a step if `resident` workgroups share a multiprocessor."""
        return max(self.latency, workgroups * self.work)


def step_of(blocking: AnyBlocking, element_bytes: int, gpu: GpuFacts) -> Step:
    """Returns the cost of a step; `element_bytes` is the size of an operand's element."""
    tile = (blocking.rows + blocking.columns) * blocking.depth * element_bytes
    points = blocking.rows * blocking.columns * blocking.depth
    read, slices = 0.0, blocking.depth * element_bytes / NVIDIA.fragment_bytes
    if isinstance(blocking, WarpgroupBlocking):
        busy = points / NVIDIA.warpgroup_rate
        latency = busy + NVIDIA.warpgroup_latency
        # Each warpgroup reads 64 rows and all columns.
        groups = blocking.rows // WARPGROUP_ROWS
        read = slices * NVIDIA.fragment_bytes * groups * (WARPGROUP_ROWS + blocking.columns)
    elif isinstance(blocking, MatrixBlocking):
        busy = points * element_bytes / 2 / NVIDIA.matrix_rate
        products = blocking.warp_rows * blocking.warp_columns / NVIDIA.matrix_points
        latency = slices * (NVIDIA.shared_latency + NVIDIA.matrix_cycles * products)
        lines = blocking.warp_rows + blocking.warp_columns
        read = slices * NVIDIA.fragment_bytes * lines * blocking.threads / WARP
    else:
        sums = blocking.thread_rows * blocking.thread_columns
        operands = (blocking.thread_rows + blocking.thread_columns) * element_bytes
        loads = NVIDIA.simt_load * operands / ACCESS_BYTES
        busy = points / NVIDIA.simt_lanes * (1 + loads / sums)
        latency = blocking.depth * (NVIDIA.shared_latency + NVIDIA.multiply_latency * sums)
        # A warp has one row of lanes, or two, which read the same columns.
        lines = blocking.thread_rows + WARP / 2 * blocking.thread_columns
        read = blocking.depth * element_bytes * lines * blocking.threads / WARP
    shared = (read + tile) / NVIDIA.shared_bytes_per_cycle
    work = max(tile / NVIDIA.l2_bytes_per_cycle, shared, busy)
    return Step(latency, work, _resident(blocking, element_bytes, gpu))


def _resident(blocking: AnyBlocking, element_bytes: int, gpu: GpuFacts) -> int:
    """Returns how many workgroups fit on a multiprocessor."""
    threads, shared = blocking.threads, blocking.shared_bytes(element_bytes)
    registers = blocking.registers(element_bytes) * threads
    fitting = (
        gpu.registers // registers,
        gpu.shared_opt_in_bytes // max(1, shared),
        gpu.threads_per_multiprocessor // threads,
    )
    return max(1, min(fitting))


@dataclass(frozen=True)
class Way:
    """A partition: `workgroups` share `tiles`; the kernel then takes `cycles`."""

    cycles: float
    tiles: int
    workgroups: int


@dataclass(frozen=True)
class Waves:
    """`tiles` of `depth` steps each; `tile_bytes` is the size of the sums of a tile."""

    tiles: int
    depth: int
    tile_bytes: int
    multiprocessors: int
    step: Step

    def whole(self, tiles: int | None = None) -> float:
        """Returns the cycles without sharing: those of the full waves and of the last wave."""
        count = self.tiles if tiles is None else tiles
        full, rest = divmod(count, self.multiprocessors * self.step.resident)
        last = -(-rest // self.multiprocessors)
        cycles = full * self.step.cycles(self.step.resident)
        return self.depth * (cycles + (self.step.cycles(last) if rest else 0))

    def shared(self, tiles: int, workgroups: int) -> float | None:
        """Returns the cycles of shared tiles, with partial sums, or None above the limits."""
        share = tiles * self.depth // workgroups
        sharing = min(workgroups, -(-self.depth // max(1, share)) + 1)
        if share < NVIDIA.least_shared_steps or sharing > NVIDIA.workgroups_per_tile:
            return None
        resident = -(-workgroups // self.multiprocessors)
        # A workgroup stores partial sums of its first and last tile, and may read all of a tile.
        moved = resident * (2 + sharing) * self.tile_bytes / NVIDIA.l2_bytes_per_cycle
        cost = NVIDIA.share_cycles and NVIDIA.share_cycles + moved
        return -(-tiles * self.depth // workgroups) * self.step.cycles(resident) + cost

    def best(self) -> Way | None:
        """Returns the fastest partition, or None if it saves too little."""
        wave, best = self.multiprocessors * self.step.resident, None
        waves = self.tiles // wave
        for before in (waves, waves - 1):
            rest = self.tiles - before * wave
            if before < 0 or not rest:
                continue
            for resident in range(1, self.step.resident + 1):
                most = resident * self.multiprocessors
                for workgroups in range(most, most - self.multiprocessors, -1):
                    cycles = self.shared(rest, workgroups) if workgroups > 1 else None
                    if cycles is None:
                        continue
                    way = Way(cycles + self.whole(before * wave), rest, workgroups)
                    best = way if best is None or way.cycles < best.cycles else best
        most = self.whole() * NVIDIA.shared_tiles_ratio
        return best if best is not None and best.cycles <= most else None

    def fewest(self, *, sharing: bool) -> float:
        """Returns the cycles of the fastest partition."""
        way = self.best() if sharing else None
        return self.whole() if way is None else way.cycles
