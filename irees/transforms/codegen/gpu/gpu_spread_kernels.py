"""
Spreads the parallel loops of kernels that a program brings over workgroups and threads.

Before tiling, the parallel loops of a kernel are those that the program itself has
(`irees-inline-kernels`). Each thread of a workgroup runs one iteration.

    scf.forall (%i) in (%n) { "use"(%i) }
  =>
    scf.forall (%w) in (ceil(%n / 128)) {
      scf.forall (%t) in (min(128, %n - 128 * %w)) {
        "use"(128 * %w + %t)
      } {mapping = [#gpu.thread<linear_dim_0>]}
    } {mapping = [#gpu.block<linear_dim_0>]}
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.upstream.scf import ForallOp
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.segments import kernel, threads
from irees.transforms.utils.inlining import splice
from irees.transforms.utils.shapes import IndexBuilder, delinearize


def spread(loop: ForallOp) -> None:
    """forall (%i, %j) in (%n, %m)  =>  workgroups, and threads over their share of %n * %m"""
    at = IndexBuilder(InsertPoint.before(loop))
    _, counts, _ = loop.bounds()
    total, share = at.product(counts), NVIDIA.threads
    body = loop.region.block
    end = body.last_op
    assert end is not None
    Rewriter.replace_op(end, scf.YieldOp())

    def workgroup(index: SSAValue, b: IndexBuilder) -> None:
        first = b.mul(index, share)
        close, thread, inside = threads(b, b.minimum(share, b.sub(total, first)))
        place = inside.value(inside.add(first, thread))
        places = delinearize(place, list(range(len(counts))), counts, inside)
        splice(body, inside.point, [inside.value(places[d]) for d in range(len(counts))])
        close()

    kernel(at, at.ceildiv(total, share), workgroup, share)
    Rewriter.erase_op(loop)


@dataclass(frozen=True)
class GpuSpreadKernelsPass(ModulePass):
    """Spreads parallel loops of the program's own over workgroups and threads."""

    name = "irees-gpu-spread-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if isinstance(o, ForallOp)]:
            if isinstance(loop.parent_op(), func.FuncOp) and loop.mapping is None:
                spread(loop)
