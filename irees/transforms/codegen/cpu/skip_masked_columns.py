"""
Skips columns that a mask hides from all rows of a tile, as the later keys of a causal attention.

`irees-select-strategy` finds the ops whose results hidden columns do not change, and names their
column loop (`analysis/masked_columns.py`). This pass finds the first and the last column of a tile
that any of its rows sees, and narrows the ops to the columns between them.

    scf.forall (%i) in (8) {
      linalg.generic {%s = %q . %k} outs(%s : memref<128x1024xf32>)
      linalg.generic {%t = row >= column ? %s : -inf} ...
      ...
  =>
    scf.forall (%i) in (8) {
      linalg.generic {%low, %high = min, max of the columns with row >= column}
      %n = %high - %low
      linalg.generic {%q . subview %k[%low] [%n]} outs(subview %s[0, 0] [128, %n])

The mask is read, not understood: one that is computed from indices, a constant and an argument of
the program are skipped alike. The range is rounded to whole vectors. It has at least one column, so
a row that sees none is still NaN, or what the program makes of it. What is hidden is assumed to be
finite, as in PyTorch's attention: with `fp=strict`, nothing is skipped. Source: causal attention
skips blocks in FlashAttention-2 (Dao, 2023) and in PyTorch's `cpu_flash_attention`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import AnyFloat, IndexType, MemRefType, ModuleOp, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from irees.analysis.masked_columns import LOWEST, Condition, conditions_of, sources
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.irees_target import target_of
from irees.dialects.storage import is_allocation, root
from irees.rewrites import may_rewrite
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim
from irees.transforms.utils.structured import generic, maps, shift_indices
from irees.transforms.utils.tensors import ScalarBuilder, constant
from irees.transforms.utils.views import subview

NAME = "irees-skip-masked-columns"

COLUMNS, MASK = "columns", "mask"
"""Entries of a lowering config: the column loop of an op, and whether the op applies the mask."""

Views = dict[tuple[SSAValue, int], SSAValue]
"""A buffer and its dim of columns => its narrow view."""


@dataclass(frozen=True)
class Columns:
    """The columns of a tile that are computed."""

    first: Size
    count: Size


def narrow_tile(block: Block, lanes: int) -> None:
    """Narrows the ops of one tile to the columns that its rows see, in whole vectors."""
    members: dict[linalg.GenericOp, int] = {}
    masks: list[linalg.GenericOp] = []
    for op in block.ops:
        config = LoweringConfigAttr.on(op)
        loop = config.int(COLUMNS)
        if loop is not None and isinstance(op, linalg.GenericOp):
            members[op] = loop
            masks += [op] if config.int(MASK) else []
    for mask in masks:
        computed = {v for v in mask.inputs if is_private(v, block)}
        conditions = conditions_of(mask, members[mask], computed)
        if not conditions or not may_rewrite(NAME, mask, "only columns that a row sees"):
            continue
        first = next(iter(members))
        raise_views(mask, first)
        b = IndexBuilder(InsertPoint.before(first))
        columns = visible_columns(mask, members[mask], conditions, lanes, b)
        views: Views = {}
        for member, loop in members.items():
            drop_entries(member)
            narrow(member, loop, columns, views)


def drop_entries(op: Operation) -> None:
    """Removes the entries of this pass from the config of an op."""
    entries = LoweringConfigAttr.on(op).as_data()
    entries = {key: value for key, value in entries.items() if key not in (COLUMNS, MASK)}
    if entries:
        op.attributes["lowering_config"] = LoweringConfigAttr.of(**entries)
    else:
        del op.attributes["lowering_config"]


def is_private(buffer: SSAValue, block: Block) -> bool:
    """Whether a buffer is allocated in a block."""
    owner = root(buffer).owner
    return is_allocation(owner) and owner.parent is block


def raise_views(op: Operation, first: Operation) -> None:
    """Moves what the operands of an op are computed from before an earlier op of its block."""
    assert op.parent is not None
    needed = {value.owner for value in sources(op.operands)}
    for each in [o for o in op.parent.ops if o in needed]:
        if not each.is_before_in_block(first):
            each.detach()
            Rewriter.insert_op(each, InsertPoint.before(first))


def visible_columns(
    mask: linalg.GenericOp, loop: int, conditions: list[Condition], lanes: int, b: IndexBuilder
) -> Columns:
    """Emits the range of the columns of a mask that any row sees."""
    indexing = maps(mask)[-1]
    axis = indexing.results.index(AffineDimExpr(loop))
    total = buffer_dim(mask.outputs[0], axis, b)
    low, high = (b.insert(memref.AllocaOp.get(i32, shape=[])).results[0] for _ in range(2))
    end = b.insert(arith.IndexCastOp(b.value(total), i32)).results[0]
    zero = b.insert(constant(0, i32)).results[0]
    for value, cell in ((end, low), (zero, high)):
        b.insert(memref.StoreOp.get(value, cell, []))
    b.insert(search(mask, loop, conditions, (low, high), end))
    first, last = (b.insert(memref.LoadOp.get(cell, [])).results[0] for cell in (low, high))
    begin, stop = (b.insert(arith.IndexCastOp(v, IndexType())).results[0] for v in (first, last))
    start = b.maximum(0, b.minimum(begin, b.sub(total, 1)))
    start = b.mul(b.floordiv(start, lanes), lanes)
    stop = b.mul(b.ceildiv(b.maximum(stop, b.add(start, 1)), lanes), lanes)
    return Columns(start, b.sub(b.minimum(stop, total), start))


def search(
    mask: linalg.GenericOp, loop: int, conditions: list[Condition],
    cells: tuple[SSAValue, SSAValue], end: SSAValue,
) -> linalg.GenericOp:  # fmt: skip
    """min and max + 1 of the columns that the mask does not hide, over all its rows"""
    needed = sources([c.value for c in conditions])
    kept = [i for i, arg in enumerate(mask.body.block.args) if arg in needed]
    # The output is an operand for its shape only.
    kept.append(len(mask.inputs))
    arguments = [mask.body.block.args[i] for i in kept]
    block = Block(arg_types=[*(a.type for a in arguments), i32, i32])
    copies: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=False))
    for op in mask.body.block.ops:
        if any(result in needed for result in op.results):
            block.add_op(op.clone(copies))
    s = ScalarBuilder(block)
    visible = s.all([is_visible(c, copies[c.value], s) for c in conditions])
    assert visible is not None
    column = s.cast(s.index(loop), i32)
    one, zero = s.number(1, i32), s.number(0, i32)
    lowest = s.op(arith.MinSIOp, block.args[-2], s.select(visible, column, end))
    after = s.select(visible, s.op(arith.AddiOp, column, one), zero)
    block.add_op(linalg.YieldOp(lowest, s.op(arith.MaxSIOp, block.args[-1], after)))
    rank = len(mask.iterator_types)
    indexing = [*(maps(mask)[i] for i in kept), *[AffineMap(rank, 0, ())] * 2]
    inputs = [mask.operands[i] for i in kept]
    return generic(inputs, cells, indexing, ["reduction"] * rank, Region(block))


def is_visible(condition: Condition, value: SSAValue, s: ScalarBuilder) -> SSAValue:
    """Whether a condition does not hide an element."""
    if isa(value.type, AnyFloat):
        lowest = s.number(LOWEST, value.type)
        return s.op(arith.CmpfOp, value, lowest, arg="une")
    if not condition.hides:
        return value
    return s.op(arith.XOrIOp, value, s.number(1, value.type))


def narrow(op: linalg.GenericOp, loop: int, columns: Columns, views: Views) -> None:
    """Narrows one loop of an op to the columns."""
    b = IndexBuilder(InsertPoint.before(op))
    for position, indexing in enumerate(maps(op)):
        buffer = op.operands[position]
        if not isinstance(buffer.type, MemRefType) or loop not in indexing.used_dims():
            continue
        axis = indexing.results.index(AffineDimExpr(loop))
        if (buffer, axis) not in views:
            views[buffer, axis] = part_of(buffer, axis, columns, op.parent, b)
        op.operands[position] = views[buffer, axis]
    shift_indices(op, {loop: columns.first})


def part_of(
    buffer: SSAValue, axis: int, columns: Columns, block: Block | None, b: IndexBuilder
) -> SSAValue:
    """Returns the view of the columns; a buffer of the tile has them at its start."""
    assert isinstance(buffer.type, MemRefType)
    assert block is not None
    sizes = [buffer_dim(buffer, a, b) for a in range(buffer.type.get_num_dims())]
    offsets: list[Size] = [0] * len(sizes)
    sizes[axis] = columns.count
    if not is_private(buffer, block):
        offsets[axis] = columns.first
    return b.insert(subview(buffer, offsets, sizes, [1] * len(sizes))).results[0]


@dataclass(frozen=True)
class SkipMaskedColumnsPass(ModulePass):
    """Narrows the ops of a tile to the columns that a mask does not hide."""

    name = "irees-skip-masked-columns"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lanes = max(1, target_of(op).vector_bytes // 4)
        for forall in [o for o in op.walk() if o.name == "scf.forall"]:
            narrow_tile(forall.regions[0].block, lanes)
