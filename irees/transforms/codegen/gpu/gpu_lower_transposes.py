"""
Transposes tiles through shared memory if an op reads along one loop and writes along another.

Both loads and stores of adjacent threads should be coalesced. If no loop is contiguous in both, the
transposed operand is copied to shared memory in its own order, and the op then reads the tile in
the order of its output. Rows of the tile are padded by one element, which avoids bank conflicts in
both orders.

    linalg.generic ins(%x : memref<32x32xf32>) outs(%y : memref<32x32xf32>)  { y[i, j] = x[j, i] }
  =>
    %0 = memref.alloc() : memref<32x33xf32, #gpu.address_space<workgroup>>
    scf.forall (%t) in (1024) {
      store %x[%t / 32, %t mod 32], %0[%t / 32, %t mod 32] } {mapping = ...}
    gpu.barrier
    linalg.generic ins(subview %0) outs(%y) { y[i, j] = 0[j, i] }

`irees-gpu-distribute-to-threads` lowers the op itself. Ops whose tiles do not fit into shared
memory, or whose operand is not indexed by plain loops, are left unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from irees.analysis.transposes import crossing_loops
from irees.dialects.storage import slice_of
from irees.dialects.upstream.gpu import (
    AddressSpace,
    AddressSpaceAttr,
    BarrierOp,
    BlockMappingAttr,
)
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.segments import is_mapped, threads
from irees.transforms.utils.shapes import (
    IndexBuilder,
    buffer_dim,
    constant_value,
    delinearize,
    element_bytes,
)
from irees.transforms.utils.structured import maps
from irees.transforms.utils.views import subview


def crossing_operand(op: linalg.GenericOp) -> int | None:
    """Returns the input that is transposed relative to the outputs, or None."""
    crossing = crossing_loops(op)
    if crossing is None:
        return None
    across, _ = crossing
    for position, indexing in enumerate(maps(op)[: len(op.inputs)]):
        last = indexing.results[-1] if indexing.results else None
        if isinstance(last, AffineDimExpr) and last.position == across:
            return position
    return None


def why_not(op: linalg.GenericOp, position: int) -> str | None:
    """Returns why an operand cannot be transposed in shared memory, or None."""
    kind, indexing = op.operands[position].type, maps(op)[position]
    assert isinstance(kind, MemRefType)
    plain = [e.position for e in indexing.results if isinstance(e, AffineDimExpr)]
    if len(set(plain)) != len(indexing.results):
        return "the transposed operand is not indexed by plain loops"
    bounds = [bound_of(op.operands[position], axis) for axis in range(kind.get_num_dims())]
    if None in bounds:
        return "the tile size has no static bound"
    size = prod(b for b in bounds if b is not None) * element_bytes(kind)
    most = NVIDIA.transposed_bytes
    return None if size <= most else f"the tile has {size} bytes; the limit is {most}"


def bound_of(buffer: SSAValue, axis: int) -> int | None:
    """Returns an upper bound of a dim: its static size, or the tile size of its subview."""
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    size = kind.get_shape()[axis]
    if size >= 0:
        return size
    view = slice_of(buffer.owner)
    if view is None:
        return None
    value = view.sizes[view.kept[axis]]
    if not isinstance(value, SSAValue) or not isinstance(value.owner, arith.MinSIOp):
        return None
    found = (constant_value(operand) for operand in value.owner.operands)
    return next((number for number in found if number is not None), None)


def turn(op: linalg.GenericOp, position: int) -> None:
    """transposed input  =>  copy of it in shared memory"""
    source = op.operands[position]
    kind = source.type
    assert isinstance(kind, MemRefType)
    at = IndexBuilder(InsertPoint.before(op))
    rank = kind.get_num_dims()
    bounds = [bound_of(source, axis) or 1 for axis in range(rank)]
    space = AddressSpaceAttr(AddressSpace.WORKGROUP)
    padded = [*bounds[:-1], bounds[-1] + 1]
    tile = at.insert(
        memref.AllocOp([], [], MemRefType(kind.element_type, padded, memory_space=space))
    ).results[0]
    sizes = [buffer_dim(source, axis, at) for axis in range(rank)]
    close, index, inside = threads(at, at.product(sizes))
    places = delinearize(index, range(rank), sizes, inside)
    where = [inside.value(places[axis]) for axis in range(rank)]
    value = inside.insert(memref.LoadOp.get(source, where)).results[0]
    inside.insert(memref.StoreOp.get(value, tile, where))
    close()
    at.insert(BarrierOp())
    view = at.insert(subview(tile, [0] * rank, sizes, [1] * rank)).results[0]
    op.operands[position] = view


@dataclass(frozen=True)
class GpuLowerTransposesPass(ModulePass):
    """Transposes tiles through shared memory."""

    name = "irees-gpu-lower-transposes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            for inner in [o for o in loop.regions[0].block.ops if isinstance(o, linalg.GenericOp)]:
                position = crossing_operand(inner)
                if position is None:
                    continue
                reason = why_not(inner, position)
                if reason is not None:
                    remark("missed", self.name, inner, reason)
                elif may_rewrite(self.name, inner, "in shared memory"):
                    turn(inner, position)
