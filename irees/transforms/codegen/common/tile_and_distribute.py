"""
Tiles the ops of a kernel, fuses them per group, and distributes the tiles to workgroups.

Ops of one group (see `irees-select-strategy`) become the body of one `scf.forall`, each on its
slice of every buffer. A buffer that only this group uses shrinks to one tile, and so do slices of
it that tiles have whole, such as the inside of a padded image: the working set of a fused kernel is
the sum of these tiles.

    linalg.generic ins(%x : memref<512x64xf32>) outs(%y : memref<512x64xf32>) {workgroup = [32, 0]}
  =>
    scf.forall (%i) in (16) {
      %o = arith.muli %i, 32
      linalg.generic ins(subview %x[%o, 0] [32, 64]) outs(subview %y[%o, 0] [32, 64])
    }

A group without tiled loops becomes a forall of one workgroup. Small private tiles are on the stack,
larger ones in the scratch memory of the thread. Any tensor size compiles.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, MemRefType, ModuleOp, i32, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.affine_steps import even_tile
from irees.analysis.distribution import Access, Loops, classes_of, loops_of
from irees.dialects import get_op
from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.storage import is_allocation, root, slice_of
from irees.transforms.codegen.common.utils.surroundings import erase_unused_buffer
from irees.transforms.utils.constants import take_in_constants
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim, element_bytes
from irees.transforms.utils.structured import affine_value, shift_indices
from irees.transforms.utils.views import subview

STACK_BYTES = 16 << 10

INNER_LEVELS = ("block", "columns", "mask", "stages", "threads")
"""Config entries for levels inside a tile, which are kept on the tiled op."""


@dataclass
class Tile:
    """A range of one tiled loop inside the forall."""

    offset: Size
    size: Size
    tile: int


def _part_of(extent: Size, tile: int, iv: SSAValue, inside: IndexBuilder) -> Tile:
    """Returns a tile of a loop by its number; the last one may be smaller."""
    offset = inside.mul(iv, tile)
    size: Size = tile
    if not isinstance(extent, int) or extent % tile:
        size = inside.minimum(tile, inside.sub(extent, offset))
    return Tile(offset, size, tile)


def _offset_of(expr: AffineExpr, loops: int, ranges: dict[int, Tile], inside: IndexBuilder) -> Size:
    """Returns how far a tile moves an index; untiled loops start at 0 and do not move it."""
    starts = [ranges[d].offset if d in ranges else 0 for d in range(loops)]
    moved = affine_value(expr, starts, inside)
    return inside.sub(moved, affine_value(expr, [0] * loops, inside))


def _is_used_in(buffer: SSAValue, ops: set[Operation]) -> bool:
    """Whether all uses of a buffer, and of its slices, are among some ops."""
    return all(
        user in ops or (slice_of(user) is not None and _is_used_in(user.results[0], ops))
        for user in (use.operation for use in buffer.uses)
    )


@dataclass
class Distribution:
    """The tiling of one group into its forall."""

    members: list[Loops]
    stack: int = STACK_BYTES
    locals: dict[SSAValue, SSAValue] = field(default_factory=dict)

    def run(self) -> None:
        """Replaces the ops of the group with the forall."""
        first, last = self.members[0].op, self.members[-1].op
        self.outside = outside = IndexBuilder(InsertPoint.before(last))
        self._hoist(first, last)
        tiled = self._tiled_classes(outside)
        counts = [outside.ceildiv(extent, tile) for _, tile, extent in tiled] or [1]
        static = [c if isinstance(c, int) else -1 for c in counts]
        dynamic = [c for c in counts if isinstance(c, SSAValue)]
        block = Block(arg_types=[outside.value(0).type for _ in counts])
        inside = IndexBuilder(InsertPoint.at_end(block))
        tiles: list[dict[int, Tile]] = [{} for _ in self.members]
        for (group_class, tile, extent), iv in zip(tiled, block.args, strict=False):
            part = _part_of(extent, tile, iv, inside)
            for member, loop in group_class.items():
                tiles[member][loop] = part
        self._shrink(tiles, inside)
        for member, ranges in zip(self.members, tiles, strict=True):
            self._member(member, ranges, inside)
        take_in_constants(block)
        forall = make_forall(static, dynamic, block)
        forall.location = last.location
        Rewriter.insert_op(forall, InsertPoint.before(last))
        for member in self.members:
            Rewriter.erase_op(member.op)
        for old in self.locals:
            erase_unused_buffer(old)

    def _hoist(self, first: Operation, last: Operation) -> None:
        """Moves the ops between the members, which only compute operands, before the group."""
        ops = {m.op for m in self.members}
        current: Operation | None = first
        between: list[Operation] = []
        while current is not None and current is not last:
            if current not in ops:
                between.append(current)
            current = current.next_op
        for op in between:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(first))

    def _tiled_classes(self, builder: IndexBuilder) -> list[tuple[dict[int, int], int, Size]]:
        found: dict[tuple[int, ...], tuple[dict[int, int], int, Size]] = {}
        for group_class in classes_of(self.members) or []:
            tiles = LoweringConfigAttr.on(self.members[0].op).ints("workgroup") or ()
            tile = self._even(tiles[group_class[0]], group_class)
            if tile == 0:
                continue
            extent: Size = max(self.members[m].sizes[loop] for m, loop in group_class.items())
            if extent < 0:
                extent = self._dynamic_extent(group_class, builder)
            found[tuple(group_class.items())] = (group_class, tile, extent)
        return list(found.values())

    def _even(self, tile: int, group_class: dict[int, int]) -> int:
        """
        Returns the tile size, rounded up if an index divides the loop; 0 if it cannot be tiled.

        The view of a tile starts at its offset, which must be a multiple of every divisor: rows of
        a packed tensor (`d0 floordiv 32`, `d0 mod 32`) are tiled by whole blocks.
        """
        indices = (
            (expr, loop)
            for number, loop in group_class.items()
            for access in self.members[number].accesses
            for expr in access.map.results
        )
        return tile and (even_tile(tile, indices) or 0)

    def _dynamic_extent(self, group_class: dict[int, int], builder: IndexBuilder) -> Size:
        for number, loop in group_class.items():
            for access in self.members[number].accesses:
                for axis, expr in enumerate(access.map.results):
                    if isinstance(expr, AffineDimExpr) and expr.position == loop:
                        return buffer_dim(access.buffer, axis, builder)
        raise AssertionError("every loop is bounded by an operand")

    def _shrink(self, tiles: list[dict[int, Tile]], inside: IndexBuilder) -> None:
        """Replaces each buffer that only this group uses with a private one of tile size."""
        ops = {m.op for m in self.members}
        for number, member in enumerate(self.members):
            for access in member.accesses:
                buffer = access.buffer
                if buffer in self.locals or not is_allocation(buffer.owner):
                    continue
                if not _is_used_in(buffer, ops):
                    continue
                self.locals[buffer] = self._private(
                    buffer, access.map.results, tiles[number], inside
                )

    def _private(
        self,
        buffer: SSAValue,
        exprs: tuple[AffineExpr, ...],
        ranges: dict[int, Tile],
        inside: IndexBuilder,
    ) -> SSAValue:
        kind = buffer.type
        assert isinstance(kind, MemRefType)
        assert isinstance(buffer.owner, memref.AllocOp)
        dynamic = iter(buffer.owner.dynamic_sizes)
        shape: list[int] = []
        values: list[SSAValue] = []
        for size, expr in zip(kind.get_shape(), exprs, strict=True):
            value = next(dynamic) if size < 0 else None
            if isinstance(expr, AffineDimExpr) and expr.position in ranges:
                shape.append(ranges[expr.position].tile)
                continue
            shape.append(size)
            if value is not None:
                values.append(value)
        private = MemRefType(kind.element_type, shape)
        count = 1
        for size in shape:
            count *= size
        if not values and 0 <= count * element_bytes(kind) <= self.stack:
            self.stack -= count * element_bytes(kind)
            op: Operation = memref.AllocaOp.get(kind.element_type, shape=shape)
        else:
            op = memref.AllocOp(values, [], private)
        return inside.insert(op).results[0]

    def _member(self, member: Loops, ranges: dict[int, Tile], inside: IndexBuilder) -> None:
        operands: list[SSAValue] = []
        remaining = list(member.accesses)
        for operand in member.op.operands:
            if remaining and operand is remaining[0].buffer:
                access = remaining.pop(0)
                whole = self.locals.get(root(operand))
                if whole is None or operand in self.locals:
                    operands.append(self._slice(access, ranges, inside))
                else:
                    operands.append(self._part(access, whole, ranges, inside))
            else:
                operands.append(operand)
        copy = same_op(member.op, operands, ())
        config = LoweringConfigAttr.on(copy).as_data()
        del copy.attributes["lowering_config"]
        if inner := {key: config[key] for key in INNER_LEVELS if key in config}:
            copy.attributes["lowering_config"] = LoweringConfigAttr.of(**inner)
        inside.insert(copy)
        shift_indices(copy, {loop: tile.offset for loop, tile in ranges.items()})

    def _part(
        self, access: Access, whole: SSAValue, ranges: dict[int, Tile], inside: IndexBuilder
    ) -> SSAValue:
        """Returns the slice of a private buffer that a slice of the buffer before tiling shows."""
        part = slice_of(access.buffer.owner)
        assert part is not None
        tiles = [
            ranges.get(e.position) if isinstance(e, AffineDimExpr) else None
            for e in access.map.results
        ]
        sizes = [n if t is None else t.size for n, t in zip(part.sizes, tiles, strict=True)]
        return inside.insert(subview(whole, part.offsets, sizes, part.strides)).results[0]

    def _slice(self, access: Access, ranges: dict[int, Tile], inside: IndexBuilder) -> SSAValue:
        """Returns the view of a buffer that one tile accesses."""
        local = self.locals.get(access.buffer)
        buffer = access.buffer if local is None else local
        kind = buffer.type
        assert isinstance(kind, MemRefType)
        if not any(e.used_dims() & set(ranges) for e in access.map.results):
            return buffer
        offsets: list[Size] = []
        sizes: list[Size] = []
        for axis, expr in enumerate(access.map.results):
            whole = buffer_dim(buffer, axis, inside if local is not None else self.outside)
            if isinstance(expr, AffineDimExpr) and expr.position in ranges:
                tile = ranges[expr.position]
                offset, size = 0 if local is not None else tile.offset, tile.size
            elif expr.used_dims() & set(ranges):
                offset = _offset_of(expr, access.map.num_dims, ranges, inside)
                size = inside.sub(whole, offset)
            else:
                offset, size = 0, whole
            offsets.append(offset)
            sizes.append(size)
        if all(isinstance(o, int) and o == 0 for o in offsets) and tuple(sizes) == kind.get_shape():
            return buffer
        return inside.insert(subview(buffer, offsets, sizes, [1] * len(sizes))).results[0]


def make_forall(static: list[int], dynamic: list[SSAValue], block: Block) -> Operation:
    """scf.forall (%i, ...) in (bounds) { block }"""
    block.add_op(get_op("scf.forall.in_parallel").create(regions=[Region(Block())]))
    rank = len(static)
    return get_op("scf.forall").create(
        operands=dynamic,
        properties={
            "staticLowerBound": DenseArrayBase.from_list(i64, [0] * rank),
            "staticUpperBound": DenseArrayBase.from_list(
                i64, [DYNAMIC_INDEX if s < 0 else s for s in static]
            ),
            "staticStep": DenseArrayBase.from_list(i64, [1] * rank),
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [0, len(dynamic), 0, 0]),
        },
        regions=[Region(block)],
    )


@dataclass(frozen=True)
class TileAndDistributePass(ModulePass):
    """Tiles groups of ops into parallel loops over workgroups."""

    name = "irees-tile-and-distribute"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                groups: dict[int, list[Loops]] = {}
                for inner in function.body.block.ops:
                    config = inner.attributes.get("lowering_config")
                    loops = loops_of(inner)
                    if isinstance(config, LoweringConfigAttr) and loops is not None:
                        groups.setdefault(config.int("group") or 0, []).append(loops)
                for members in groups.values():
                    Distribution(members).run()
