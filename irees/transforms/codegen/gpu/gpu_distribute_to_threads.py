"""
Distributes the work of each workgroup over its threads.

The ops of a workgroup run in order, separated by barriers. Each thread computes some parallel
iterations of a structured op, including all of their reduction loops in order. Adjacent iterations
of the last loop use one 16-byte access if all accesses are aligned: with a vector body, or with a
scalar body between vector accesses if the element type has no vector ops (f16, bf16). All other ops
(loops of a lowered sort, a store) run on thread 0. Every op is supported, and the result does not
depend on the order of threads.

    scf.forall (%b) in (8) {
      linalg.generic ins(%x : memref<64x128xf32>) outs(%y : memref<64x128xf32>) { negf }
    } {mapping = [#gpu.block<linear_dim_0>]}
  =>
    scf.forall (%b) in (8) {
      scf.forall (%t) in (2048) {
        %i = divui %t, 32 ; %j = muli (remui %t, 32), 4
        %v = vector.load %x[%i, %j] ; vector.store negf(%v), %y[%i, %j]
      } {mapping = [#gpu.thread<linear_dim_0>]}
      gpu.barrier
    } {mapping = [#gpu.block<linear_dim_0>]}

An op whose parallel iterations may write the same element is not distributed: thread 0 runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.storage import loaded
from irees.dialects.upstream.gpu import BarrierOp, BlockMappingAttr, ThreadMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.transforms.codegen.gpu.utils.points import Points
from irees.transforms.codegen.gpu.utils.segments import (
    blocks_of,
    is_mapped,
    segments,
    threads,
)
from irees.transforms.utils.lanes import NotVectorizableError
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size, delinearize


def spread(op: linalg.GenericOp) -> None:
    """linalg.generic  =>  a loop over its parallel iterations, one thread each"""
    points, at = Points(op), IndexBuilder(InsertPoint.before(op))
    sizes = points.sizes(at)
    axis = points.parallel[-1] if points.parallel and not points.reduction else None
    lanes = points.widest(axis)
    if lanes > 1:
        try:
            spread_by(points, points.vector, lanes, sizes, at)
            return
        except NotVectorizableError as reason:
            remark("missed", "irees-gpu-distribute-to-threads", op, f"not vectorized: {reason}")
    elif (lanes := points.packed(axis)) > 1:
        spread_by(points, points.pack, lanes, sizes, at)
        return
    close, index, inside = threads(at, at.product([sizes[x] for x in points.parallel]))
    points.point(delinearize(index, points.parallel, sizes, inside), sizes, inside)
    close()


def spread_by(
    points: Points,
    build: Callable[[dict[int, Size], IndexBuilder, int], None],
    lanes: int,
    sizes: Sequence[Size],
    at: IndexBuilder,
) -> None:
    """Assigns `lanes` iterations of the last loop per thread. Raises NotVectorizableError."""
    axis, whole = points.parallel[-1], list(sizes)
    whole[axis] = at.floordiv(sizes[axis], lanes)
    close, index, inside = threads(at, at.product([whole[x] for x in points.parallel]))
    loop = inside.point.block.parent_op()
    ivs = delinearize(index, points.parallel, whole, inside)
    ivs[axis] = inside.mul(ivs[axis], lanes)
    try:
        build(ivs, inside, lanes)
    except NotVectorizableError:
        close()
        assert loop is not None
        Rewriter.erase_op(loop)
        raise
    close()


def loop_over(op: linalg.GenericOp) -> None:
    """linalg.generic  =>  scalar loops, for one thread"""
    points, at = Points(op), IndexBuilder(InsertPoint.before(op))
    sizes = points.sizes(at)

    def nest(loops: Sequence[int], ivs: dict[int, Size], here: IndexBuilder) -> None:
        if not loops:
            points.point(ivs, sizes, here)
            return
        body, iv, inner = for_loop(here, 0, sizes[loops[0]], 1)
        nest(loops[1:], {**ivs, loops[0]: iv}, inner)
        body()

    nest(points.parallel, {}, at)
    Rewriter.erase_op(op)


def first_thread(at: IndexBuilder) -> tuple[Operation, Block]:
    """Creates an empty loop that only thread 0 runs; returns it and its body."""
    close, _, inside = threads(at, 1)
    close()
    block = inside.point.block
    loop = block.parent_op()
    assert loop is not None
    return loop, block


def is_spread(op: Operation) -> bool:
    """Whether an op of a workgroup is distributed to its threads already."""
    return any(
        is_mapped(inner, ThreadMappingAttr) or isinstance(inner, BarrierOp) for inner in op.walk()
    )


def distribute(workgroup: ForallOp) -> None:
    """Turns all ops of a workgroup into loops over threads."""
    block, together = workgroup.region.block, blocks_of(workgroup)
    for op in [o for o in block.walk() if isinstance(o, linalg.GenericOp)]:
        if op.parent in together and Points(op).writes_apart():
            spread(op)
            Rewriter.replace_op(op, BarrierOp())
        else:
            loop_over(op)
    for inner in reversed(together):
        for segment in segments(inner, is_spread):
            segment.wrap(first_thread, BarrierOp())
    for op in [o for o in block.ops if loaded(o)]:
        # All threads must load the element before any thread may overwrite it.
        Rewriter.insert_op(BarrierOp(), InsertPoint.after(op))
    # A trailing barrier is redundant.
    last = block.last_op
    previous = None if last is None else last.prev_op
    if isinstance(previous, BarrierOp):
        Rewriter.erase_op(previous)


@dataclass(frozen=True)
class GpuDistributeToThreadsPass(ModulePass):
    """Distributes the ops of workgroups to loops over threads."""

    name = "irees-gpu-distribute-to-threads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(loop, ForallOp)
            distribute(loop)
