"""
Selects contractions for stream-K, which avoids a last wave of workgroups that leaves the GPU idle.

Workgroups with one tile each run in waves. With one tile more than multiprocessors, the kernel
takes twice as long, and the second wave keeps only one multiprocessor busy. Stream-K (Osama et al.,
"Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on the GPU",
2023) concatenates the reduction steps of all tiles and divides them equally among the workgroups;
workgroups that share a tile add their partial sums. This pass uses the hybrid of the paper: whole
waves of tiles stay one per workgroup, and only the rest is shared by one wave of workgroups. No
workgroup waits: the last one to arrive adds the partial sums. The passes that lower contractions
emit the code (`utils/shares.py`); this pass only sets the config:

    linalg.generic {lowering_config = #iree_codegen.lowering_config<{block = [128, 128, ...]}>}
  =>
    linalg.generic {lowering_config =
        #iree_codegen.lowering_config<{block = [128, 128, ...], stream_k = [110, 108]}>}

The pass tries all numbers of sharing workgroups that fit on the GPU at a time, with all or all but
one of the whole waves kept, and picks the fewest cycles (`utils/waves.py`), those of partial sums
included. The gain must be at least an eighth. Split-K (`irees-split-reductions`) still handles
contractions with few tiles. Step ranges are fixed and added in order of K, so results are
deterministic.

Left unchanged: float sums with `fp=strict`, dynamic sizes, and operands computed in the tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, MemRefType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from irees.analysis.contractions import multiply_add, roles
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.irees_target import gpu_of, is_strict
from irees.dialects.storage import is_allocation, root, slice_of
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.common.utils.surroundings import fill_of
from irees.transforms.codegen.gpu.utils.blocking import blocking_of, may_share, sides, why_no_blocks
from irees.transforms.codegen.gpu.utils.segments import is_free, is_mapped
from irees.transforms.codegen.gpu.utils.shares import STREAM_K, counts_of, depth_of, is_inside
from irees.transforms.codegen.gpu.utils.waves import Waves, step_of
from irees.transforms.utils.shapes import constant_value, element_bytes
from irees.transforms.utils.structured import iterators, loop_sources, static_ranges


def most_points(op: linalg.GenericOp) -> list[int]:
    """Returns an upper bound of each trip count, or -1 if unknown."""
    found: list[int] = []
    for size, source in zip(static_ranges(op), loop_sources(op), strict=True):
        if size < 0 and source is not None:
            size = _bound(op.operands[source[0]], source[1])
        found.append(size)
    return found


def _bound(value: SSAValue, axis: int) -> int:
    """Returns an upper bound of a tile's size along an axis (the last tile is partial), or -1."""
    view = slice_of(value.owner)
    if view is None:
        return -1
    size = view.sizes[axis]
    if isinstance(size, int) or not isinstance(size.owner, arith.MinSIOp):
        return -1
    return max(constant_value(o) or -1 for o in size.owner.operands)


def why_not(loop: ForallOp, op: linalg.GenericOp) -> str | None:
    """Returns why the tiles of a contraction cannot be shared, or None."""
    parts = multiply_add(op)
    assert parts is not None
    sizes, found, blocking = most_points(op), roles(op, parts), blocking_of(op)
    if min(*sizes, *counts_of(loop)) < 0:
        return "a size is dynamic"
    (_, rows), (_, columns) = sides(op)
    points = (prod(sizes[x] for x in loops) for loops in (found.batch, rows, columns))
    limits = 1, blocking.rows, blocking.columns
    if any(count > limit for count, limit in zip(points, limits, strict=True)):
        return "a tile has several blocks"
    fill = fill_of(op)
    for other in loop.region.block.ops:
        if other is op:
            break
        if fill is not None and other is fill[0]:
            continue
        if (reason := why_not_after(other, loop, op)) is not None:
            return reason
    return None


def why_not_after(other: Operation, loop: ForallOp, op: linalg.GenericOp) -> str | None:
    """Returns why a tile with another op before the contraction cannot be shared, or None."""
    if is_allocation(other) and other.operands:
        return "a size is dynamic"
    if is_free(other):
        return None
    written = {root(o) for o in other.outputs} if isinstance(other, linalg.GenericOp) else set()
    if not written or len({is_inside(buffer, loop) for buffer in written}) > 1:
        return f"{other.name} precedes it in its tile"
    if written & {root(value) for value in op.inputs}:
        return "an operand is computed in its tile"
    return None


def is_blocked(op: object) -> bool:
    """Whether an op is a contraction that will be lowered to blocks."""
    return (
        isinstance(op, linalg.GenericOp)
        and "reduction" in iterators(op)
        and why_no_blocks(op) is None
        and LoweringConfigAttr.on(op).ints("block") is not None
    )


@dataclass(frozen=True)
class GpuStreamKPass(ModulePass):
    """Marks the contractions whose tiles are shared by several workgroups."""

    name = "irees-gpu-stream-k"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(loop, ForallOp)
            found = [o for o in loop.region.block.ops if is_blocked(o)]
            if len(found) == 1 and not self._share(loop, found[0]):
                return

    def _share(self, loop: ForallOp, op: linalg.GenericOp) -> bool:
        """Marks a contraction if sharing pays off; False if the rewrite limit is reached."""
        reason = why_not(loop, op)
        kind = op.outputs[0].type
        assert isinstance(kind, MemRefType)
        if reason is None and is_strict(op) and not isinstance(kind.element_type, IntegerType):
            reason = "fp=strict keeps the order of a sum"
        blocking, gpu = blocking_of(op), gpu_of(op)
        cut = min(static_ranges(op)) < 0
        if reason is None and not may_share(blocking, gpu, cut=cut):
            reason = "too few registers for partial sums"
        if reason is not None:
            remark("missed", self.name, op, reason)
            return True
        size = blocking.rows * blocking.columns * element_bytes(kind)
        depth = -(-depth_of(op) // blocking.depth)
        tiles = prod(counts_of(loop))
        step = step_of(blocking, element_bytes(op.inputs[0].type), gpu)
        waves = Waves(tiles, depth, size, gpu.multiprocessors, step)
        way = waves.best()
        if way is None:
            return True
        text = f"{way.tiles} of {tiles} tiles shared by {way.workgroups} workgroups"
        if not may_rewrite(self.name, op, text):
            return False
        remark(
            "passed",
            self.name,
            op,
            f"{text}: predicted {way.cycles:.0f} cycles, and {waves.whole():.0f} without sharing",
        )
        entries = LoweringConfigAttr.on(op).as_data() | {STREAM_K: [way.tiles, way.workgroups]}
        op.attributes["lowering_config"] = LoweringConfigAttr.of(**entries)
        return True
