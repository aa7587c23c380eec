"""
Lowers scatters to loops over the threads of one workgroup, or of many.

If `unique_indices` says that updates do not collide (trusted, as in IREE), each element of each
update gets its own thread. Otherwise the updates of one target are applied in order, in one of two
variants:

* a few updates are applied in order by one thread per slice element;
* many are sorted by target index, and one thread per element applies those of a target in order
  (`scatter_rows.py`).

Sums are thus rounded as in a serial loop. Atomic float additions are not reproducible and never
used, whatever `fp` is.

    scf.forall (%b) in (1) {
      store %v, %t[0]
      iree_linalg_ext.scatter ins(%u, %i : memref<3x8xf32>, memref<3x1xi32>) outs(%t)
    }
  =>
    scf.forall (%b) in (1) {
      store %v, %t[0]
      scf.forall (%n) in (8) {
        scf.for %k = 0 to 3 { if %i[%k] is in bounds { %t[%i[%k], %n] = %t[..] + %u[%k, %n] } }
      } {mapping = [#gpu.thread<linear_dim_0>]} ; gpu.barrier
    }

A scatter that is the only work of its workgroup uses many workgroups if that is cheaper
(`wide_scatter.py`). Its sort, if it has one, is left to `irees-gpu-lower-sorts`. The cost model
(`scatter_costs.py`) counts the sequential memory accesses of a thread and has not been validated by
measurement.

Left to `irees-lower-linalg-ext-to-loops`: scatters of so few elements that one thread is cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import gpu_of
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.common.utils.accumulating import batch_rank, scatter_point
from irees.transforms.codegen.common.utils.rows import rows
from irees.transforms.codegen.gpu.gpu_lower_scatters.scatter_costs import why_no_sort_of_updates
from irees.transforms.codegen.gpu.gpu_lower_scatters.scatter_rows import scatter_in_order
from irees.transforms.codegen.gpu.gpu_lower_scatters.wide_scatter import scatter_widely
from irees.transforms.codegen.gpu.utils.block_radix import why_no_digits
from irees.transforms.codegen.gpu.utils.segments import for_each_point, is_mapped
from irees.transforms.utils.footprint import shared_memory
from irees.transforms.utils.shapes import IndexBuilder, Size


def lower_scatter(op: ext.ScatterOp, at: IndexBuilder, room: int) -> str | None:
    """scatter  =>  one slice element per thread, with the updates in order; or why not"""
    assert isinstance(op.updates.type, MemRefType)
    rank, batch = op.updates.type.get_num_dims(), batch_rank(op)
    if op.unique_indices.value.data:
        for_each_point(op.updates, range(rank), at, lambda ivs, b: scatter_point(op, ivs, b))
        return None
    reason = why_no_digits(op, why_no_sort_of_updates(op, room))
    if reason is None:
        scatter_in_order(op, room, at)
        return None
    if batch == rank:
        return reason

    def point(ivs: dict[int, Size], b: IndexBuilder) -> None:
        lead = list(range(batch))
        rows(op.updates, lead, b, lambda found, c: scatter_point(op, {**found, **ivs}, c))

    for_each_point(op.updates, range(batch, rank), at, point)
    return None


@dataclass(frozen=True)
class GpuLowerScattersPass(ModulePass):
    """Lowers scatters to all threads of a workgroup, or to many workgroups."""

    name = "irees-gpu-lower-scatters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(loop, ForallOp)
            for inner in [o for o in loop.region.block.ops if isinstance(o, ext.ScatterOp)]:
                if not may_rewrite(self.name, inner, "by all threads"):
                    return
                if self._lower(inner, loop):
                    break

    def _lower(self, op: ext.ScatterOp, loop: ForallOp) -> bool:
        """Lowers a scatter if possible; returns whether the loop around it was replaced, too."""
        gpu = gpu_of(op)
        reason = scatter_widely(op, loop, gpu.multiprocessors, gpu.matrix_shared_bytes)
        if reason is None:
            return True
        if reason:
            remark("missed", self.name, op, f"using one workgroup: {reason}")
        room = gpu.matrix_shared_bytes - shared_memory(loop).known
        reason = lower_scatter(op, IndexBuilder(InsertPoint.before(op)), room)
        if reason is not None:
            remark("missed", self.name, op, reason)
            return False
        Rewriter.erase_op(op)
        return False
