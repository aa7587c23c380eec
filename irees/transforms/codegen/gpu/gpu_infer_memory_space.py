"""
Places workgroup buffers in shared memory, smallest first, and the rest in global scratch memory.

All threads of a workgroup share its allocations. Small buffers come first because most reused data
is small. A buffer that does not fit, or whose shape is dynamic, keeps no memory space: the launcher
allocates it in device memory, once per concurrently running workgroup. A fused kernel of any size
therefore runs. Allocations inside a thread's loop stay private to the thread.

    scf.forall (%b) in (8) { %0 = memref.alloca() : memref<64xf32> ; ... }
  =>
    scf.forall (%b) in (8) {
      %0 = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>> ; ... }

Views of a buffer get its memory space. IREE: `iree-codegen-gpu-infer-memory-space`, which fails
where this pass falls back to scratch memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.irees_target import gpu_of
from irees.dialects.nvgpu import MBarrierCreateOp
from irees.dialects.storage import is_allocation, is_on_stack
from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr, BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.transforms.codegen.gpu.utils.segments import is_mapped
from irees.transforms.codegen.gpu.utils.warps import put
from irees.transforms.utils.shapes import element_bytes

ALIGNMENT = 16
"""Alignment of buffers in shared memory, in bytes: the widest access of a thread."""


def shared_bytes(kind: MemRefType) -> int | None:
    """Returns the aligned size of a buffer in bytes, or None if its shape is dynamic."""
    if any(size < 0 for size in kind.get_shape()):
        return None
    return -(-max(1, prod(kind.get_shape())) * element_bytes(kind) // ALIGNMENT) * ALIGNMENT


def is_in(op: Operation, space: AddressSpace) -> bool:
    """Whether an allocation is in a memory space."""
    kind = op.results[0].type
    assert isinstance(kind, MemRefType)
    found = kind.memory_space
    return isinstance(found, AddressSpaceAttr) and found.data is space


def _bytes_taken(block: Block) -> int:
    """Returns the bytes of shared memory that a workgroup already takes."""
    taken = 0
    for op in block.walk():
        if isinstance(op, MBarrierCreateOp):
            taken += op.barriers.type.bytes
        elif is_allocation(op):
            if is_in(op, AddressSpace.WORKGROUP):
                taken += shared_bytes(op.results[0].type) or 0
    return taken


def place_buffers(workgroup: ForallOp, limit: int) -> None:
    """Assigns a memory space to each allocation of a workgroup."""
    block = workgroup.region.block
    found = [o for o in block.ops if is_allocation(o)]
    taken = workgroup.attributes.get("shared_bytes")
    limit = taken.value.data if isinstance(taken, IntegerAttr) else limit
    left = limit - _bytes_taken(block)
    wanting: list[tuple[int, int, Operation]] = []
    for number, op in enumerate(found):
        kind = op.results[0].type
        assert isinstance(kind, MemRefType)
        if is_in(op, AddressSpace.WORKGROUP) or is_in(op, AddressSpace.PRIVATE):
            continue
        size = shared_bytes(kind)
        if size is None:
            remark("missed", "irees-gpu-infer-memory-space", op, "in scratch memory: dynamic size")
        else:
            wanting.append((size, number, op))
    for size, _, op in sorted(wanting, key=lambda entry: entry[:2]):
        kind = op.results[0].type
        assert isinstance(kind, MemRefType)
        if is_on_stack(op):
            alloc = memref.AllocOp([], [], kind)
            Rewriter.insert_op(alloc, InsertPoint.before(op))
            Rewriter.replace_op(op, [], [alloc.memref])
            op = alloc
        if size > left:
            text = f"in scratch memory: {size} bytes; {max(0, left)} of {limit} are free"
            remark("missed", "irees-gpu-infer-memory-space", op, text)
            continue
        left -= size
        put(op.results[0], AddressSpaceAttr(AddressSpace.WORKGROUP))


@dataclass(frozen=True)
class GpuInferMemorySpacePass(ModulePass):
    """Places workgroup buffers in shared memory or in global scratch memory."""

    name = "irees-gpu-infer-memory-space"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(loop, ForallOp)
            place_buffers(loop, gpu_of(op).shared_bytes)
