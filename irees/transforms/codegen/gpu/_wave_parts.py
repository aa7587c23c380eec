"""
The parts of a group: its first points in whole tiles, the others in slices of the reduction. Part
of `irees-gpu-split-last-wave`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.builtin import DenseArrayBase, MemRefType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.distribution import Access, Group, groups_of
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.transforms.codegen.common.tile_and_distribute import shift_indices
from irees.transforms.codegen.gpu._tiles import row_tiles, threads_wanted
from irees.transforms.utils.combiners import combine, combiners, neutral_element
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.shapes import IndexBuilder
from irees.transforms.utils.structured import generic, maps
from irees.transforms.utils.views import subview


def why_no_parts(group: Group, heavy: int) -> str | None:
    """Why the points of a group cannot be done in parts, or None."""
    member = group.members[heavy]
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    written = {a.buffer for m in group.members[:heavy] for a in m.accesses if a.writes}
    if written & set(op.inputs):
        return "what it multiplies is computed in its tile"
    if any(m.anywhere for m in group.members):
        return "a body reads what it likes"
    if any(isinstance(inner, linalg.IndexOp) for inner in op.walk()):
        return "it asks where it is"
    reduction = member.kinds.index("reduction")
    for indexing in maps(op):
        for expr in indexing.results:
            if reduction in expr.used_dims() and not isinstance(expr, AffineDimExpr):
                return "an operand is a window"
    for group_class in group.classes:
        for number, each in enumerate(group.members):
            for access in each.accesses:
                for expr in access.map.results:
                    if group_class[number] in expr.used_dims() and not isinstance(
                        expr, AffineDimExpr
                    ):
                        return "an operand is a window"
    return None


@dataclass
class Range:
    """Some points of a class, and the buffers that only they need."""

    offset: int
    size: int
    locals: dict[SSAValue, SSAValue] = field(default_factory=dict)
    _views: dict[object, SSAValue] = field(default_factory=dict)

    def extents(self, access: Access, loop: int) -> tuple[list[int], list[int]]:
        """Sizes and offsets of what the points of a loop touch of a buffer."""
        kind = access.buffer.type
        assert isinstance(kind, MemRefType)
        sizes, offsets = list(kind.get_shape()), [0] * kind.get_num_dims()
        for axis, expr in enumerate(access.map.results):
            if loop in expr.used_dims():
                sizes[axis], offsets[axis] = self.size, self.offset
        return sizes, offsets

    def view(self, access: Access, loop: int, at: IndexBuilder) -> SSAValue:
        """That part of the buffer, the same view for all who ask."""
        buffer = access.buffer
        sizes, offsets = self.extents(access, loop)
        if tuple(sizes) == tuple(buffer.type.get_shape()):  # type: ignore[attr-defined]
            return buffer
        key = (buffer, *sizes, *offsets)
        if key not in self._views:
            ones = [1] * len(sizes)
            self._views[key] = at.insert(subview(buffer, offsets, sizes, ones)).results[0]
        return self._views[key]


@dataclass(frozen=True)
class Parts:
    """A group that is done in parts along one of its classes."""

    group: Group
    heavy: int
    position: int
    reassociate: bool
    workgroups: int
    small_tile: int

    def split(self, whole: int, slices: int) -> None:
        """Replaces the ops of the group."""
        members = self.group.members
        at = IndexBuilder(InsertPoint.before(members[-1].op))
        self._hoist()
        block = members[0].op.parent
        assert block is not None
        free = 1 + max(LoweringConfigAttr.on(o).int("group") or 0 for o in block.ops)
        extent = self.group.extents()[self.position]
        if whole:
            first = Range(0, whole)
            for number in range(len(members)):
                self._copy(number, first, at)
        last = Range(whole, extent - whole)
        partial = self._partial(last, slices, free, at)
        following: list[Operation] = []
        for number in range(len(members)):
            if number == self.heavy:
                following.append(self._sum(partial, last, at))
            else:
                following.append(self._copy(number, last, at))
        self._configure(following, free + 1)
        buffers = [o for m in members for o in m.op.operands]
        for member in reversed(members):
            Rewriter.erase_op(member.op)
        for buffer in dict.fromkeys(buffers):
            if isinstance(buffer.owner, memref.AllocOp) and not buffer.uses:
                Rewriter.erase_op(buffer.owner)

    def _hoist(self) -> None:
        """What is between the ops of the group only prepares them: it goes in front."""
        ops = [m.op for m in self.group.members]
        between: list[Operation] = []
        current: Operation | None = ops[0]
        while current is not None and current is not ops[-1]:
            if current not in ops:
                between.append(current)
            current = current.next_op
        for op in between:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(ops[0]))

    # --- the same op on some points ---------------------------------------------------------------

    def _copy(self, number: int, points: Range, at: IndexBuilder) -> Operation:
        """An op of the group on a part of its points."""
        member = self.group.members[number]
        remaining = list(member.accesses)
        operands: list[SSAValue] = []
        for operand in member.op.operands:
            if remaining and operand is remaining[0].buffer:
                operands.append(self._part(remaining.pop(0), number, points, at))
            else:
                operands.append(operand)
        copy = at.insert(same_op(member.op, operands, ()))
        shift_indices(copy, {self._loop(number): points.offset})
        return copy

    def _loop(self, number: int) -> int:
        return self.group.classes[self.position][number]

    def _part(self, access: Access, number: int, points: Range, at: IndexBuilder) -> SSAValue:
        """What some points touch of a buffer: a view, or a buffer that is only theirs."""
        buffer, loop = access.buffer, self._loop(number)
        if not self._is_local(buffer):
            return points.view(access, loop, at)
        if buffer not in points.locals:
            shape, _ = points.extents(access, loop)
            kind = MemRefType(buffer.type.element_type, shape)  # type: ignore[attr-defined]
            points.locals[buffer] = at.insert(memref.AllocOp([], [], kind)).results[0]
        return points.locals[buffer]

    def _is_local(self, buffer: SSAValue) -> bool:
        """Whether nobody else knows a buffer, and every op of the group has its part of it."""
        ops = {m.op for m in self.group.members}
        if not isinstance(buffer.owner, memref.AllocOp):
            return False
        if any(use.operation not in ops for use in buffer.uses):
            return False
        return all(
            any(self._loop(n) in e.used_dims() for e in a.map.results)
            for n, m in enumerate(self.group.members)
            for a in m.accesses
            if a.buffer is buffer
        )

    # --- slices of the reduction ------------------------------------------------------------------

    def _partial(self, points: Range, slices: int, number: int, at: IndexBuilder) -> SSAValue:
        """The contraction of each slice, and the buffer with all of them."""
        member, loop = self.group.members[self.heavy], self._loop(self.heavy)
        op, written, config = member.op, member.accesses[-1], LoweringConfigAttr.on(member.op)
        tiles, folds = config.ints("workgroup"), combiners(op)  # type: ignore[arg-type]
        assert isinstance(op, linalg.GenericOp)
        assert tiles is not None
        assert folds is not None
        reduction, rank = member.kinds.index("reduction"), len(member.kinds) + 1

        def moved(expr: AffineExpr) -> list[AffineExpr]:
            if isinstance(expr, AffineDimExpr) and expr.position == reduction:
                return [AffineDimExpr(0), AffineDimExpr(reduction + 1)]
            loops = [AffineDimExpr(d + 1) for d in range(rank - 1)]
            return [expr.replace_dims_and_symbols(loops, [])]

        inputs: list[SSAValue] = []
        indexing: list[AffineMap] = []
        for access in member.accesses[: len(op.inputs)]:
            axes = [a for a, e in enumerate(access.map.results) if reduction in e.used_dims()]
            sliced = _sliced(access.buffer, axes[0], slices, at) if axes else access.buffer
            exprs = tuple(x for e in access.map.results for x in moved(e))
            indexing.append(AffineMap(rank, 0, exprs))
            inputs.append(points.view(Access(sliced, indexing[-1], False), loop + 1, at))
        shape, _ = points.extents(written, loop)
        element = written.buffer.type.element_type  # type: ignore[attr-defined]
        kind = MemRefType(element, [slices, *shape])
        partial = at.insert(memref.AllocOp([], [], kind)).results[0]
        zero = _fill(partial, folds[0], at)
        own = [tiles[e.position] for e in written.map.results if isinstance(e, AffineDimExpr)]
        zero.attributes["lowering_config"] = LoweringConfigAttr.of(
            group=number, workgroup=[1, *own]
        )
        exprs = tuple(x for e in written.map.results for x in moved(e))
        indexing.append(AffineMap(rank, 0, (AffineDimExpr(0), *exprs)))
        contraction = generic(
            inputs, [partial], indexing, ["parallel", *member.kinds], op.body.clone()
        )
        # There are hardly more of them than multiprocessors: a thread may have many registers.
        entries = {**config.as_data(), "group": number, "workgroup": [1, *tiles], "fewest": 1}
        contraction.attributes["lowering_config"] = LoweringConfigAttr.of(**entries)
        contraction.location = op.location
        at.insert(contraction)
        return partial

    def _sum(self, partial: SSAValue, points: Range, at: IndexBuilder) -> Operation:
        """What the slices have together, with what the output held."""
        member = self.group.members[self.heavy]
        op, written = member.op, member.accesses[-1]
        assert isinstance(op, linalg.GenericOp)
        output = self._part(written, self.heavy, points, at)
        assert isinstance(output.type, MemRefType)
        (fold,) = combiners(op) or [None]
        assert fold is not None
        rank = output.type.get_num_dims()
        plain = tuple(AffineDimExpr(d) for d in range(rank))
        block = Block(arg_types=[output.type.element_type] * 2)
        b = IndexBuilder(InsertPoint.at_end(block))
        total = b.insert(combine(fold, block.args[1], block.args[0])).results[0]
        b.insert(linalg.YieldOp(total))
        result = generic(
            [partial],
            [output],
            [AffineMap(rank + 1, 0, (AffineDimExpr(rank), *plain)), AffineMap(rank + 1, 0, plain)],
            ["parallel"] * rank + ["reduction"],
            Region(block),
        )
        result.location = op.location
        at.insert(result)
        return result

    def _configure(self, ops: Sequence[Operation], number: int) -> None:
        """Tiles for what has no contraction any more."""
        for each in groups_of(ops, self.workgroups, self.small_tile):
            tiles = row_tiles(each, self.reassociate, self.workgroups)
            threads = threads_wanted(each, tiles, self.reassociate)
            for position, member in enumerate(each.members):
                workgroup = [0] * len(member.kinds)
                for group_class, tile in zip(each.classes, tiles, strict=True):
                    workgroup[group_class[position]] = tile
                member.op.attributes["lowering_config"] = LoweringConfigAttr.of(
                    group=number, workgroup=workgroup, threads=threads
                )
            number += 1


def _fill(buffer: SSAValue, fold: Operation, at: IndexBuilder) -> linalg.GenericOp:
    """What no point gives, everywhere."""
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    block = Block(arg_types=[kind.element_type])
    b = IndexBuilder(InsertPoint.at_end(block))
    b.insert(linalg.YieldOp(b.insert(neutral_element(fold)).results[0]))
    rank = kind.get_num_dims()
    op = generic([], [buffer], [AffineMap.identity(rank)], ["parallel"] * rank, Region(block))
    at.insert(op)
    return op


def _sliced(buffer: SSAValue, axis: int, count: int, at: IndexBuilder) -> SSAValue:
    """A buffer with one dim as slices and what is in them."""
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    shape = list(kind.get_shape())
    longer = [*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :]]
    strides, step = [], 1
    for size in reversed(longer):
        strides.append(step)
        step *= size
    view = memref.ReinterpretCastOp.build(
        operands=[buffer, [], [], []],
        properties={
            "static_offsets": DenseArrayBase.from_list(i64, [0]),
            "static_sizes": DenseArrayBase.from_list(i64, longer),
            "static_strides": DenseArrayBase.from_list(i64, strides[::-1]),
        },
        result_types=[MemRefType(kind.element_type, longer)],
    )
    return at.insert(view).results[0]
