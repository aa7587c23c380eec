"""
Lowers scatters of slices to a loop over updates, each a structured op on one slice.

Updates are applied in order, but the elements of a slice are independent: the structured op becomes
a loop over vectors in `irees-vectorize-structured-ops`, and the index of an update is read once.

    iree_linalg_ext.scatter dimension_map = [0] ins(%u : 9x8, %i : 9x1) outs(%t : 5x8) {addf}
  =>
    scf.for %n = 0 to 9 {
      %r = memref.load %i[%n, 0]
      scf.if %r ult 5 {
        linalg.generic ins(%u[%n, :]) outs(%t[%r, :]) { addf }
      }
    }

Scatters of single elements are left for `irees-lower-linalg-ext-to-loops`. IREE:
`LinalgExtToLoops`, one element at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Region
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import target_of
from irees.rewrites import may_rewrite
from irees.transforms.codegen.common.utils.accumulating import batch_rank, destination
from irees.transforms.codegen.common.utils.rows import rows
from irees.transforms.utils.loops import if_else
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim
from irees.transforms.utils.structured import element_type, generic
from irees.transforms.utils.tensors import rank_of
from irees.transforms.utils.views import subview


def lower(op: ext.ScatterOp, at: IndexBuilder) -> None:
    """scatter of slices  =>  a loop over updates, in order"""
    batch = batch_rank(op)
    rows(op.updates, list(range(batch)), at, lambda ivs, b: update(op, ivs, b))


def update(op: ext.ScatterOp, ivs: dict[int, Size], b: IndexBuilder) -> None:
    """Applies one update if its index is in bounds and not masked."""
    batch, rank = batch_rank(op), rank_of(op.updates)
    slices = range(batch, rank)
    where, valid = destination(op, {**ivs, **dict.fromkeys(slices, 0)}, b)
    close = None
    if valid is not None:
        close, b = if_else(b, valid)
    sizes = [buffer_dim(op.updates, d, b) for d in slices]
    indexed = set(op.dimension_map.get_values())
    kept = [d for d in range(rank_of(op.original)) if d not in indexed]
    left = iter(sizes)
    shape = [1 if d in indexed else next(left) for d in range(rank_of(op.original))]
    new = subview(
        op.updates, [*(ivs[d] for d in range(batch)), *[0] * len(sizes)],
        [*[1] * batch, *sizes], [1] * rank, list(slices),
    )  # fmt: skip
    old = subview(op.original, where, shape, [1] * len(shape), kept)
    source, target = b.insert(new).results[0], b.insert(old).results[0]
    block = Block(arg_types=[element_type(source), element_type(target)])
    inner = IndexBuilder(InsertPoint.at_end(block))
    block.add_op(linalg.YieldOp(*inline_region(op.body.block, block.args, inner)))
    identity = AffineMap.identity(len(sizes))
    kinds = ["parallel"] * len(sizes)
    b.insert(generic([source], [target], [identity] * 2, kinds, Region(block)))
    if close is not None:
        close()


@dataclass(frozen=True)
class CpuLowerScattersPass(ModulePass):
    """Lowers scatters of slices to a loop over updates, each a structured op on one slice."""

    name = "irees-cpu-lower-scatters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None:
            return
        for inner in [o for o in op.walk() if isinstance(o, ext.ScatterOp)]:
            if inner.results or not isinstance(inner.updates.type, MemRefType):
                continue
            if batch_rank(inner) == rank_of(inner.updates):
                continue
            if may_rewrite(self.name, inner, "apply each update as a structured op"):
                lower(inner, IndexBuilder(InsertPoint.before(inner)))
                Rewriter.erase_op(inner)
