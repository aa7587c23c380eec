"""
Allocates the temporaries of the host program in one arena.

The live range of a buffer extends from its allocation to the last use of it or of a view. Buffers
with disjoint live ranges may share bytes. Static buffers are placed one by one at the lowest offset
that is free throughout their live range: in several orders, largest first, then repeatedly with the
buffer of the highest end moved to the front. The search stops when the arena size reaches the
maximum number of live bytes, its lower bound. Dynamic buffers follow; they share memory only with
disjoint buffers of the same size value.

    %a = memref.alloc() : memref<256xf32>         %arena = memref.alloc() : memref<2048xi8>
    stream.cmd.dispatch @f(%x, %a)           =>   %a = memref.view %arena[0][]
    %b = memref.alloc() : memref<256xf32>         %b = memref.view %arena[1024][]
    stream.cmd.dispatch @g(%a, %b)                ...

Results keep buffers of their own because the caller owns them. So do buffers whose size cannot be
computed at the start of the function. IREE: `LayoutSlices`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, cf, func, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FloatAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    f64,
    i8,
    i64,
)
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.arena import most_alive
from irees.dialects.storage import is_allocation, is_dim
from irees.transforms.utils.shapes import IndexBuilder, Size, element_bytes

HOISTED = (
    arith.ConstantOp,
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.DivUIOp,
    arith.DivSIOp,
    arith.RemUIOp,
    arith.MaxSIOp,
    arith.MinSIOp,
    arith.IndexCastOp,
    arith.FloorDivSIOp,
)
"""Index arithmetic that may move to the start of a function."""

ALIGNMENT = 64
MAX_BYTES = float(1 << 47)


@dataclass
class Life:
    """A temporary: its allocation, size in bytes, and live range in op numbers."""

    op: memref.AllocOp
    size: Size
    start: int
    end: int
    offset: Size = 0

    @property
    def static_size(self) -> int:
        """The size in bytes of a static temporary."""
        assert isinstance(self.size, int)
        return self.size

    def meets(self, other: Life) -> bool:
        """Whether the live ranges overlap."""
        return self.start <= other.end and other.start <= self.end


ORDERS: tuple[Callable[[Life], tuple[int, ...]], ...] = (
    lambda x: (-x.static_size, x.start),
    lambda x: (-x.static_size * (x.end - x.start + 1), x.start),
    lambda x: (x.start - x.end, -x.static_size),
    lambda x: (x.start, -x.static_size),
)
"""Largest first; largest size * live range; longest live range; program order."""

ROUNDS = 32
MOST_SEARCHED = 500
"""`ROUNDS` more placements are tried for at most this many temporaries."""


def aligned(size: int) -> int:
    """Returns the size rounded up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def last_use(value: SSAValue, block: Block, position: dict[Operation, int]) -> int | None:
    """Returns the number of the last op that uses a buffer or a view; None if it is returned."""
    last = -1
    for use in value.uses:
        op = use.operation
        while op.parent_block() is not block:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        if isinstance(use.operation, func.ReturnOp):
            return None
        last = max(last, position[op])
        for result in use.operation.results:
            if isinstance(result.type, MemRefType):
                later = last_use(result, block, position)
                if later is None:
                    return None
                last = max(last, later)
    return last


def hoist(value: SSAValue, block: Block, point: InsertPoint) -> bool:
    """Hoists the arithmetic of an index to `point`; returns whether that was possible."""
    if isinstance(value, BlockArgument):
        return value.block is block
    op = value.owner
    assert isinstance(op, Operation)
    if op.parent_block() is not block or not (is_dim(op) or isinstance(op, HOISTED)):
        return False
    if not all(hoist(operand, block, point) for operand in op.operands):
        return False
    anchor = point.insert_before
    assert anchor is not None
    if anchor.is_before_in_block(op):
        op.detach()
        Rewriter.insert_op(op, point)
    return True


def place_static(lives: list[Life]) -> int:
    """
    Assigns an offset to every static temporary; returns the total size in bytes.

    If no order reaches the lower bound, retries with the temporary of the highest end placed first.
    """
    least = most_alive([(x.start, x.end, aligned(x.static_size)) for x in lives])
    best, offsets, numbers = 0, [0] * len(lives), list(range(len(lives)))
    for attempt, order in enumerate(ORDERS):
        if attempt and best == least:
            break
        trial = sorted(range(len(lives)), key=lambda n, order=order: order(lives[n]))
        total, others = place_in_order(lives, trial)
        if not attempt or total < best:
            best, offsets, numbers = total, others, trial
    total, others = best, offsets
    for _ in range(ROUNDS if len(lives) <= MOST_SEARCHED else 0):
        if best == least:
            break
        ends = [o + aligned(x.static_size) for o, x in zip(others, lives, strict=True)]
        highest = ends.index(total)
        numbers = [highest, *(n for n in numbers if n != highest)]
        total, others = place_in_order(lives, numbers)
        if total < best:
            best, offsets = total, others
    for life, offset in zip(lives, offsets, strict=True):
        life.offset = offset
    return best


def place_in_order(lives: list[Life], numbers: list[int]) -> tuple[int, list[int]]:
    """Places the temporaries in this order; returns the total bytes and the offsets."""
    total = 0
    offsets = [0] * len(lives)
    placed: list[int] = []
    for number in numbers:
        size = aligned(lives[number].static_size)
        busy = sorted(
            (offsets[other], offsets[other] + aligned(lives[other].static_size))
            for other in placed
            if lives[number].meets(lives[other])
        )
        for low, high in busy:
            if offsets[number] + size <= low:
                break
            offsets[number] = max(offsets[number], high)
        total = max(total, offsets[number] + size)
        placed.append(number)
    return total, offsets


def place_dynamic(lives: list[Life], start: Size, builder: IndexBuilder) -> Size:
    """Appends the dynamic temporaries; disjoint ones of equal size share a slot."""
    slots: list[list[Life]] = []
    for life in lives:
        for slot in slots:
            if slot[0].size is life.size and not any(life.meets(other) for other in slot):
                life.offset = slot[0].offset
                slot.append(life)
                break
        else:
            life.offset = start
            padded = builder.mul(builder.ceildiv(life.size, ALIGNMENT), ALIGNMENT)
            start = builder.add(start, padded)
            slots.append([life])
    return start


def static_bytes(op: memref.AllocOp) -> int:
    """Returns the size in bytes of a buffer with all dynamic dims taken as 1."""
    kind = op.memref.type
    assert isinstance(kind, MemRefType)
    return prod(s for s in kind.get_shape() if s != DYNAMIC_INDEX) * element_bytes(kind)


def assert_fits(allocs: list[memref.AllocOp], builder: IndexBuilder) -> None:
    """
    Asserts that no dynamic size is negative, and that the dynamic temporaries fit `MAX_BYTES`.

    Integer products of sizes could wrap, so the check uses floats.
    """
    dynamic = [op for op in allocs if op.dynamic_sizes]
    for size in dict.fromkeys(size for op in dynamic for size in op.dynamic_sizes):
        if not is_dim(size.owner):
            natural = builder.insert(arith.CmpiOp(builder.value(0), size, "sle")).results[0]
            builder.insert(cf.AssertOp(natural, StringAttr("a size of a temporary is negative")))
    total: SSAValue | None = None
    for op in dynamic:
        room = FloatAttr(float(static_bytes(op)), f64)
        size = builder.insert(arith.ConstantOp(room)).results[0]
        for dim in op.dynamic_sizes:
            number = builder.insert(arith.IndexCastOp(dim, i64)).results[0]
            factor = builder.insert(arith.UIToFPOp(number, f64)).results[0]
            size = builder.insert(arith.MulfOp(size, factor)).results[0]
        total = size if total is None else builder.insert(arith.AddfOp(total, size)).results[0]
    if total is not None:
        limit = builder.insert(arith.ConstantOp(FloatAttr(MAX_BYTES, f64))).results[0]
        fits = builder.insert(arith.CmpfOp(total, limit, "olt")).results[0]
        builder.insert(cf.AssertOp(fits, StringAttr("the temporaries do not fit into memory")))


def temporaries_of(block: Block) -> list[tuple[memref.AllocOp, int, int]]:
    """Returns the buffers that a function does not return, with their live ranges."""
    position = {op: i for i, op in enumerate(block.ops)}
    allocs = [op for op in position if is_allocation(op)]
    ends = [(op, last_use(op.memref, block, position)) for op in allocs]
    return [(op, position[op], end) for op, end in ends if end is not None]


def lives_of(
    temporaries: list[tuple[memref.AllocOp, int, int]], block: Block, builder: IndexBuilder
) -> list[Life]:
    """
    Returns the temporaries whose sizes can be computed where the builder inserts.

    Hoists their sizes to there, and asserts that they fit.
    """
    hoisted = [
        (op, start, end)
        for op, start, end in temporaries
        if all(hoist(size, block, builder.point) for size in op.dynamic_sizes)
    ]
    # Size computations below rely on this: products of sizes must not wrap.
    assert_fits([op for op, _, _ in hoisted], builder)
    sizes: dict[tuple[object, ...], Size] = {}
    lives: list[Life] = []
    for op, start, end in hoisted:
        key = (static_bytes(op), *op.dynamic_sizes)
        if key not in sizes:
            sizes[key] = builder.mul(builder.product(list(op.dynamic_sizes)), key[0])
        lives.append(Life(op, sizes[key], start, end))
    return lives


def plan(function: func.FuncOp) -> None:
    """Replaces the temporaries of a function by views of an arena."""
    block = function.body.block
    temporaries = temporaries_of(block)
    if not temporaries:
        return
    first = next(op for op in block.ops if is_allocation(op))
    builder = IndexBuilder(InsertPoint.before(first))
    lives = lives_of(temporaries, block, builder)
    static_lives = [x for x in lives if isinstance(x.size, int)]
    dynamic_lives = [x for x in lives if not isinstance(x.size, int)]
    total = place_dynamic(dynamic_lives, place_static(static_lives), builder)
    if isinstance(total, int):
        arena = memref.AllocOp([], [], MemRefType(i8, [total]))
    else:
        arena = memref.AllocOp([total], [], MemRefType(i8, [DYNAMIC_INDEX]))
    builder.insert(arena)
    for life in lives:
        at = IndexBuilder(InsertPoint.before(life.op))
        view = memref.ViewOp.build(
            operands=[arena.memref, at.value(life.offset), list(life.op.dynamic_sizes)],
            result_types=[life.op.memref.type],
        )
        Rewriter.replace_op(life.op, view)


@dataclass(frozen=True)
class PlanArenaPass(ModulePass):
    """Allocates the temporaries of host functions in one arena."""

    name = "irees-plan-arena"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            if not function.is_declaration:
                plan(function)
