"""
Segments of serial code: runs of ops that are neither parallel nor side-effect free.

Part of `irees-gpu-form-workgroups` and `irees-gpu-distribute-to-threads`, which wrap segments at
two levels: launcher ops that access device memory become a single workgroup, and workgroup ops that
are not distributed run on thread 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    VectorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.nvvm import FEWEST_WORKGROUPS
from irees.dialects.storage import is_allocation, is_dim, is_view, loaded
from irees.dialects.upstream.gpu import BarrierOp, BlockMappingAttr, ThreadMappingAttr
from irees.dialects.upstream.scf import ForallOp, InParallelOp
from irees.targets.nvidia import NVIDIA
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim, delinearize

FREE_DIALECTS = frozenset(("arith", "math", "complex"))
FREE_OPS = frozenset(("memref.dealloc", "memref.get_global", "nvgpu.mbarrier.create"))


def is_free(op: Operation) -> bool:
    """Whether any number of threads may execute an op: it depends only on its operands."""
    shows = is_view(op) or is_dim(op) or is_allocation(op)
    return shows or op.dialect_name() in FREE_DIALECTS or op.name in FREE_OPS


def mapped(kind: type[Attribute], count: int) -> ArrayAttr:
    """Returns the mapping attribute of a loop over workgroups or threads, linear ids in order."""
    return ArrayAttr(kind(StringAttr(f"linear_dim_{i}")) for i in range(count))


def is_mapped(op: Operation, kind: type[Attribute]) -> bool:
    """Whether a loop is over workgroups (`BlockMappingAttr`) or threads (`ThreadMappingAttr`)."""
    mapping = op.properties.get("mapping")
    return (
        isinstance(op, ForallOp)
        and isinstance(mapping, ArrayAttr)
        and all(isinstance(each, kind) for each in mapping)
    )


def workgroups(block: Block, counts: list[Size]) -> ForallOp:
    """scf.forall (%i, ...) in (counts) {block} {mapping = [#gpu.block<linear_dim_0>, ...]}"""
    return _loop(block, counts, BlockMappingAttr)


def set_counts(loop: ForallOp, counts: list[int]) -> None:
    """Sets the numbers of workgroups of a loop, per dim."""
    zeros, ones = [0] * len(counts), [1] * len(counts)
    bounds = {"LowerBound": zeros, "UpperBound": counts, "Step": ones}
    for name, values in bounds.items():
        loop.properties[f"static{name}"] = DenseArrayBase.from_list(i64, values)
    loop.properties["mapping"] = mapped(BlockMappingAttr, len(counts))


def threads(at: IndexBuilder, count: Size) -> tuple[Callable[[], None], SSAValue, IndexBuilder]:
    """Opens a loop over threads; returns a closer of its body, the thread id, and a builder."""
    block = Block(arg_types=[at.value(0).type])
    loop = _loop(block, [count], ThreadMappingAttr)
    last = block.last_op
    assert last is not None
    last.detach()
    at.insert(loop)
    return lambda: block.add_op(last), block.args[0], IndexBuilder(InsertPoint.at_end(block))


def _loop(block: Block, counts: list[Size], kind: type[Attribute]) -> ForallOp:
    block.add_op(InParallelOp())
    zeros, ones = [0] * len(counts), [1] * len(counts)
    return ForallOp.over(zeros, counts, ones, [], Region(block), mapped(kind, len(counts)))


def for_each(at: IndexBuilder, count: Size, body: Callable[[SSAValue, IndexBuilder], None]) -> None:
    """Emits a loop over threads, followed by a barrier."""
    close, index, inside = threads(at, count)
    body(index, inside)
    close()
    at.insert(BarrierOp())


def for_each_point(
    buffer: SSAValue,
    dims: Sequence[int],
    at: IndexBuilder,
    body: Callable[[dict[int, Size], IndexBuilder], None],
) -> None:
    """Emits a loop over some dims of a buffer, one thread per point, followed by a barrier."""
    sizes = {d: buffer_dim(buffer, d, at) for d in dims}

    def one(index: SSAValue, b: IndexBuilder) -> None:
        body(delinearize(index, dims, sizes, b), b)

    for_each(at, at.product(list(sizes.values())), one)


def kernel(
    at: IndexBuilder,
    count: Size,
    body: Callable[[SSAValue, IndexBuilder], None],
    threads: int,
    fewest: int = 1,
) -> None:
    """Emits a loop over `count` workgroups of `threads` threads each."""
    block = Block(arg_types=[IndexType()])
    loop = workgroups(block, [count])
    at.insert(loop)
    assert block.last_op is not None
    body(block.args[0], IndexBuilder(InsertPoint.before(block.last_op)))
    set_threads(loop, threads)
    set_fewest_workgroups(loop, fewest)


def why_not_alone(op: Operation, loop: Operation) -> str | None:
    """Returns why an op is not the only work of its workgroup, or None."""
    assert isinstance(loop, ForallOp)
    block = loop.region.block
    if any(o is not op and o is not block.last_op and not is_free(o) for o in block.ops):
        return "the workgroup also has other work"
    return None


def views_outside(
    loop: Operation, at: IndexBuilder, ids: Sequence[SSAValue] | None = None
) -> dict[SSAValue, SSAValue]:
    """Clones the free ops (views) of a loop over workgroups, of the first one by default."""
    assert isinstance(loop, ForallOp)
    arguments = loop.region.block.args
    ids = [at.value(0) for _ in arguments] if ids is None else ids
    known: dict[SSAValue, SSAValue] = dict(zip(arguments, ids, strict=True))
    for inner in loop.region.block.ops:
        if is_free(inner):
            at.insert(inner.clone(value_mapper=known))
    return known


def blocks_of(workgroup: Operation) -> list[Block]:
    """
    Returns the block of a workgroup and those of its loops and branches that contain structured
    ops. All threads execute such loops uniformly.
    """
    found = [workgroup.regions[0].block]
    for op in found[0].ops:
        if isinstance(op, scf.ForOp):
            found += _blocks_of_loop(op)
    return found


def _blocks_of_loop(loop: scf.ForOp) -> list[Block]:
    """Returns the blocks of a loop and of its branches if they contain structured ops."""
    ops = list(loop.body.block.ops)
    inside = [
        op.true_region.block
        for op in ops
        if isinstance(op, scf.IfOp)
        and any(isinstance(o, linalg.GenericOp) for o in op.true_region.block.ops)
    ]
    if inside or any(isinstance(o, linalg.GenericOp) for o in ops):
        return [loop.body.block, *inside]
    return []


def structured_ops(workgroup: Operation) -> list[linalg.GenericOp]:
    """Returns the structured ops that all threads of a workgroup reach, in order."""
    return [
        o for block in blocks_of(workgroup) for o in block.ops if isinstance(o, linalg.GenericOp)
    ]


def threads_per_workgroup(loop: Operation) -> int:
    """Returns the threads per workgroup of a loop (default: `NVIDIA.threads`)."""
    found = loop.attributes.get("threads")
    return found.value.data if isinstance(found, IntegerAttr) else NVIDIA.threads


def has_its_threads(loop: Operation, count: int) -> bool:
    """Whether other ops in a workgroup, lowered or not, fix other threads for it than `count`."""
    if any(LoweringConfigAttr.on(o).ints("block") for o in structured_ops(loop)):
        return True
    inner = [o for o in loop.walk() if is_mapped(o, ThreadMappingAttr)]
    return any(isinstance(o, BarrierOp) for each in inner for o in each.walk()) and (
        threads_per_workgroup(loop) != count
    )


def set_threads(loop: Operation, count: int) -> None:
    """Sets the threads per workgroup of a loop."""
    loop.attributes["threads"] = IntegerAttr(count, i64)


def set_fewest_workgroups(loop: Operation, count: int) -> None:
    """
    Limits registers so that `count` workgroups fit on a multiprocessor (`minnctapersm`). Without
    it, ptxas chooses a limit itself and may spill although more registers are available.
    """
    loop.attributes[FEWEST_WORKGROUPS] = IntegerAttr(count, i64)


@dataclass
class Segment:
    """A run of consecutive serial ops; independent free ops are moved out of it."""

    ops: list[Operation] = field(default_factory=list)

    def outside(self, value: SSAValue, known: dict[SSAValue, SSAValue], inside: Block) -> SSAValue:
        """Returns a value of the segment after its end: recomputed, or passed through memory."""
        op = value.owner
        if value in known or not isinstance(op, Operation) or op not in self.ops:
            return known.get(value, value)
        after = IndexBuilder(InsertPoint.after(self.end))
        if is_free(op):
            operands = {o: self.outside(o, known, inside) for o in op.operands}
            copy = op.clone(value_mapper=operands)
            # Insert after the definitions of its operands, all of which follow the loop.
            last = self.end
            for operand in copy.operands:
                owner = operand.owner
                if isinstance(owner, Operation) and owner.parent is last.parent:
                    last = owner if last.is_before_in_block(owner) else last
            Rewriter.insert_op(copy, InsertPoint.after(last))
            known.update(zip(op.results, copy.results, strict=True))
            return known[value]
        before = IndexBuilder(InsertPoint.before(self.begin))
        kind = MemRefType(value.type, [])
        place = before.insert(memref.AllocOp([], [], kind)).results[0]
        stored = memref.StoreOp.get(value, place, [])
        assert inside.last_op is not None
        Rewriter.insert_op(stored, InsertPoint.before(inside.last_op))
        known[value] = after.insert(memref.LoadOp.get(place, [])).results[0]
        return known[value]

    def wrap(self, make: Callable[[IndexBuilder], tuple[Operation, Block]], tail: Operation | None):
        """Moves the ops into a loop that `make` creates, followed by `tail`."""
        first = IndexBuilder(InsertPoint.before(self.ops[0]))
        loop, block = make(first)
        self.begin = self.end = loop
        if tail is not None:
            Rewriter.insert_op(tail, InsertPoint.after(loop))
            self.end = tail
        end = block.last_op
        assert end is not None
        for op in self.ops:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(end))
        known: dict[SSAValue, SSAValue] = {}
        for op in list(self.ops):
            for result in op.results:
                users = [u for u in result.uses if not block.is_ancestor(u.operation)]
                if not users:
                    continue
                outer = self.outside(result, known, block)
                result.replace_uses_with_if(
                    outer, lambda use, block=block: not block.is_ancestor(use.operation)
                )


def _reads(op: Operation, values: set[SSAValue]) -> bool:
    """Whether an op, or an op inside it, has one of the values as an operand."""
    return any(operand in values for inner in op.walk() for operand in inner.operands)


def segments(block: Block, parallel: Callable[[Operation], bool]) -> list[Segment]:
    """Returns the serial segments of a block; hoists independent free ops above them."""
    found: list[Segment] = []
    current: Segment | None = None
    defined: set[SSAValue] = set()
    for op in list(block.ops):
        if op is block.last_op or parallel(op):
            current = None
            continue
        depends = current is not None and _reads(op, defined)
        if current is None and loaded(op) and not isinstance(op.results[0].type, VectorType):
            continue
        if is_free(op) and not depends:
            if current is not None:
                op.detach()
                Rewriter.insert_op(op, InsertPoint.before(current.ops[0]))
            continue
        if current is None:
            current, defined = Segment(), set()
            found.append(current)
        current.ops.append(op)
        defined |= set(op.results)
    # Trailing free ops need not be in a segment, but are harmless there.
    return [s for s in found if not all(is_free(op) for op in s.ops)]
