"""
Builders for the sort and scatter kernels: integers, shared and private memory, and warp-level
exchanges.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, IntegerType, MemRefType, UnitAttr, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from irees.dialects.nvvm import MATCHED_BITS, MatchSyncOp, SyncWarpOp
from irees.dialects.storage import is_view
from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr
from irees.dialects.upstream.scf import UNROLL
from irees.transforms.codegen.common.utils.rows import as_type
from irees.transforms.utils.loops import LoopBody, for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size

EVERY_LANE = -1
"""The mask of all lanes of a warp."""


def count_type_for(size: Size) -> IntegerType:
    """Returns the type of element counts of a row (i32 or i64)."""
    return i32 if isinstance(size, int) and 0 <= size < 1 << 31 else i64


def unrolled(at: IndexBuilder, count: int) -> tuple[LoopBody, SSAValue, IndexBuilder]:
    """Opens an unrolled loop: private arrays that are indexed by it stay in registers."""
    body, i, b = for_loop(at, 0, count, 1)
    body.loop.attributes[UNROLL] = UnitAttr()
    return body, i, b


def match(value: SSAValue, bits: int, at: IndexBuilder) -> SSAValue:
    """Returns the mask of lanes with the same value; values may differ only in their low bits."""
    op = MatchSyncOp(integer(EVERY_LANE, i32, at), value)
    op.attributes[MATCHED_BITS] = IntegerAttr(bits, i32)
    return at.insert(op).results[0]


def wait(at: IndexBuilder) -> None:
    """Synchronizes the warp: orders earlier reads before later writes, and vice versa."""
    at.insert(SyncWarpOp(integer(EVERY_LANE, i32, at)))


def shared(kind: Attribute, shape: Sequence[int], at: IndexBuilder) -> SSAValue:
    """Allocates a buffer in shared memory."""
    space = AddressSpaceAttr(AddressSpace.WORKGROUP)
    place = memref.AllocOp([], [], MemRefType(kind, shape, memory_space=space))
    return at.insert(place).results[0]


def private(kind: Attribute, count: int, at: IndexBuilder) -> SSAValue:
    """Allocates an array of a thread."""
    space = AddressSpaceAttr(AddressSpace.PRIVATE)
    kind = MemRefType(kind, [count], memory_space=space)
    return at.insert(memref.AllocaOp.build(operands=[[], []], result_types=[kind])).results[0]


def integer(value: int, kind: object, at: IndexBuilder) -> SSAValue:
    """Returns an integer constant."""
    assert isinstance(kind, IntegerType)
    return at.insert(arith.ConstantOp(IntegerAttr(value, kind, truncate_bits=True))).results[0]


def truth(at: IndexBuilder) -> SSAValue:
    """Returns a true i1."""
    return at.insert(arith.ConstantOp.from_int_and_width(1, 1)).results[0]


def both(op: type[Operation], lhs: SSAValue, rhs: SSAValue, at: IndexBuilder) -> SSAValue:
    """op(lhs, rhs)"""
    return at.insert(op(lhs, rhs)).results[0]  # type: ignore[call-arg]


def before(place: Size, end: SSAValue, at: IndexBuilder) -> SSAValue:
    """place < end, for an i32: one instruction, while an index compare takes two."""
    return at.insert(arith.CmpiOp(as_type(at.value(place), i32, at), end, "slt")).results[0]


def widened(value: SSAValue, kind: IntegerType, at: IndexBuilder) -> SSAValue:
    """Extends a non-negative i32 to a count type."""
    return value if value.type == kind else at.insert(arith.ExtUIOp(value, kind)).results[0]


def narrowed(value: SSAValue, at: IndexBuilder) -> SSAValue:
    """Truncates a count to i32."""
    return value if value.type == i32 else at.insert(arith.TruncIOp(value, i32)).results[0]


def digit_of(key: SSAValue, shift: SSAValue, at: IndexBuilder, bits: int) -> SSAValue:
    """(key >> shift) mod 2^bits, as an i32"""
    assert isinstance(key.type, IntegerType)
    # Tells the compiler that no bit is shifted out.
    shift = both(arith.AndIOp, shift, integer(key.type.width.data - 1, key.type, at), at)
    shifted = both(arith.ShRUIOp, key, shift, at)
    digit = both(arith.AndIOp, shifted, integer((1 << bits) - 1, key.type, at), at)
    return resized(digit, i32, at)


def resized(value: SSAValue, kind: IntegerType, at: IndexBuilder) -> SSAValue:
    """Zero-extends or truncates a non-negative integer to another width."""
    assert isinstance(value.type, IntegerType)
    have, wanted = value.type.width.data, kind.width.data
    if have == wanted:
        return value
    change = arith.ExtUIOp if have < wanted else arith.TruncIOp
    return at.insert(change(value, kind)).results[0]


def put(value: SSAValue, space: Attribute) -> None:
    """Moves a buffer and all its views to a memory space."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    moved = MemRefType(kind.element_type, kind.shape, kind.layout, space)
    views = [u.operation for u in value.uses if is_view(u.operation)]
    Rewriter.replace_value_with_new_type(value, moved)
    for view in views:
        put(view.results[0], space)
