"""
Says where the buffers of a workgroup are: shared memory as far as it goes, else scratch memory.

What a workgroup allocates is for all of its threads. The smallest buffers come first, since most
of what is read again and again is small, and each takes shared memory while there is some left;
the rest stays without a memory space, which is a part of the device's memory that the launcher
allocates for each workgroup that runs at a time. So a fused kernel of any size runs. What one
thread allocates in its loop is its own.

    scf.forall (%b) in (8) { %0 = memref.alloca() : memref<64xf32> ; ... }
  =>
    scf.forall (%b) in (8) {
      %0 = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>> ; ... }

Views of a buffer follow it. IREE: `iree-codegen-gpu-infer-memory-space`, which fails where a choice
does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.distribution import VIEWS
from irees.dialects.nvgpu import MBarrierCreateOp
from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr, BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.transforms.codegen.gpu.utils.segments import is_mapped
from irees.transforms.utils.shapes import element_bytes

ALIGNMENT = 16
"""Of each buffer in shared memory: what one access takes at most."""


def put(value: SSAValue, space: Attribute) -> None:
    """Moves a buffer, and every view of it, to a memory space."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    moved = MemRefType(kind.element_type, kind.shape, kind.layout, space)
    views = [u.operation for u in value.uses if isinstance(u.operation, VIEWS)]
    Rewriter.replace_value_with_new_type(value, moved)
    for view in views:
        put(view.results[0], space)


def shared_bytes(kind: MemRefType) -> int | None:
    """What a buffer takes of shared memory, or None where nobody knows before it runs."""
    if any(size < 0 for size in kind.get_shape()):
        return None
    return -(-max(1, prod(kind.get_shape())) * element_bytes(kind) // ALIGNMENT) * ALIGNMENT


def is_in(op: Operation, space: AddressSpace) -> bool:
    """Whether an allocation has that memory space."""
    kind = op.results[0].type
    assert isinstance(kind, MemRefType)
    found = kind.memory_space
    return isinstance(found, AddressSpaceAttr) and found.data is space


def place_buffers(workgroup: ForallOp, limit: int) -> None:
    """Chooses the memory space of each allocation of a workgroup."""
    block = workgroup.region.block
    found = [o for o in block.ops if isinstance(o, memref.AllocOp | memref.AllocaOp)]
    taken = workgroup.attributes.get("shared_bytes")
    left = limit = taken.value.data if isinstance(taken, IntegerAttr) else limit
    for op in [o for o in block.walk() if isinstance(o, memref.AllocOp)]:
        if op.parent is not block and is_in(op, AddressSpace.WORKGROUP):
            left -= shared_bytes(op.memref.type) or 0
    left -= sum(o.barriers.type.bytes for o in block.walk() if isinstance(o, MBarrierCreateOp))
    wanting: list[tuple[int, int, Operation]] = []
    for number, op in enumerate(found):
        kind = op.results[0].type
        assert isinstance(kind, MemRefType)
        size = shared_bytes(kind)
        if is_in(op, AddressSpace.WORKGROUP):
            assert size is not None
            left -= size
        elif size is None:
            remark("missed", "irees-gpu-infer-memory-space", op, "scratch: its size is not known")
        else:
            wanting.append((size, number, op))
    for size, _, op in sorted(wanting, key=lambda entry: entry[:2]):
        kind = op.results[0].type
        assert isinstance(kind, MemRefType)
        if isinstance(op, memref.AllocaOp):
            alloc = memref.AllocOp([], [], kind)
            Rewriter.insert_op(alloc, InsertPoint.before(op))
            Rewriter.replace_op(op, [], [alloc.memref])
            op = alloc
        if size > left:
            text = f"scratch: {size} bytes, and {max(0, left)} of {limit} are left"
            remark("missed", "irees-gpu-infer-memory-space", op, text)
            continue
        left -= size
        put(op.results[0], AddressSpaceAttr(AddressSpace.WORKGROUP))


@dataclass(frozen=True)
class GpuInferMemorySpacePass(ModulePass):
    """The buffers of workgroups are in shared memory, or in scratch memory."""

    name = "irees-gpu-infer-memory-space"

    limit: int = 48 << 10

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            assert isinstance(loop, ForallOp)
            place_buffers(loop, self.limit)
