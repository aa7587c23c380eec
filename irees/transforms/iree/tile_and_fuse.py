"""
Tiles an op on tensors with `scf.forall`, and fuses its producers into the tiles.

    %e = linalg.generic {exp(x)} ins(%x : tensor<512x64xf32>) outs(%t)
    %r = linalg.generic {e + y, lowering_config = <{workgroup = [32, 0]}>} ins(%e, %y) outs(%o)
  =>
    %r = scf.forall (%i) = (0) to (512) step (32) shared_outs(%p = %o) -> tensor<512x64xf32> {
      %q = tensor.extract_slice %p[%i, 0] [32, 64] [1, 1]
      %a = tensor.extract_slice %x[%i, 0] [32, 64] [1, 1]
      %f = linalg.generic {exp(x)} ins(%a) outs(%q)
      %b = tensor.extract_slice %y[%i, 0] [32, 64] [1, 1]
      %s = linalg.generic {e + y} ins(%f, %b) outs(%q)
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %s into %p[%i, 0] [32, 64] [1, 1] } }

Only parallel loops are tiled. A producer is fused if its result is indexed by plain loops: those
iterate over the tile, its other loops over their whole range, so a reduction over a row is computed
once per tile of rows. A producer with other readers also stays outside and is computed twice.

Destinations inside the loop are slices: of the iteration argument for the op itself, and for a
producer that writes to a `tensor.empty` if the tile has the same type; else of its own destination.
A new `tensor.empty` in the loop would be a separate allocation per tile: that is how a row of 1 MiB
ended up in shared memory (iree-org/iree#20875). Reusing the slice is safe, since tensors are
values. The irees pipeline tiles buffers instead (`irees-tile-and-distribute`), where this is a
choice of buffers. IREE: `iree-codegen-tile-and-distribute-to-workgroups-using-forall-op`; MLIR:
`scf::tileConsumerAndFuseProducersUsingSCF`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType, ModuleOp, TensorType
from xdsl.ir import Block, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.affine_steps import linear_form
from irees.dialects import get_op
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.storage import is_undefined
from irees.dialects.upstream.scf import ForallOp
from irees.dialects.upstream.tensor import ParallelInsertSliceOp
from irees.remarks import remark
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.shapes import IndexBuilder, Size, dims, static_shape
from irees.transforms.utils.structured import (
    Structured,
    element_type,
    iterators,
    loop_sources,
    maps,
    shift_indices,
)
from irees.transforms.utils.unused_results import erase_dead_code

NAME = "irees-tile-and-fuse"

Range = tuple[Size, Size]
"""Start and trip count of a loop within a tile."""


def missed(op: Structured, tiles: Sequence[int]) -> str | None:
    """Returns why an op cannot be tiled with these sizes, or None."""
    kinds = iterators(op)
    if len(tiles) != len(kinds):
        return f"{len(tiles)} tile sizes for {len(kinds)} loops"
    tiled = {loop for loop, tile in enumerate(tiles) if tile > 0}
    if any(kinds[loop] != "parallel" for loop in tiled):
        return "a reduction loop cannot be distributed to workgroups"
    if not all(isinstance(o.type, TensorType) for o in op.outputs):
        return "it does not write tensors"
    for position, indexing in enumerate(maps(op)):
        for expr in indexing.results:
            form = linear_form(expr)
            if expr.used_dims() & tiled and (form is None or min(form[0].values()) < 0):
                return f"operand {position} is indexed by {expr}"
    return None


def extents(op: Structured, at: IndexBuilder) -> list[Size]:
    """Returns the trip count of each loop, computed before the op."""
    found: list[Size] = []
    for source in loop_sources(op):
        operand, axis = source or (0, 0)
        found.append(dims(op.operands[operand], at)[axis])
    return found


@dataclass
class TileOfOps:
    """The loop body under construction, with the producer tiles computed in it so far."""

    outside: IndexBuilder
    inside: IndexBuilder
    block: Block | None
    destinations: list[tuple[list[Size], SSAValue]] = field(default_factory=list)
    """Sizes and slice of each iteration argument."""
    done: dict[tuple[object, ...], list[SSAValue]] = field(default_factory=dict)

    def compute(
        self, op: Structured, ranges: Sequence[Range], into: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Emits an op over ranges of its loops, and returns its results."""
        indexing = maps(op)
        inputs = [
            self.part(value, each, ranges) for value, each in zip(op.inputs, indexing, strict=False)
        ]
        new = same_op(op, [*inputs, *into], [o.type for o in into])
        new.attributes.pop("lowering_config", None)
        self.inside.insert(new)
        shift_indices(new, {loop: start for loop, (start, _) in enumerate(ranges)})
        return list(new.results)

    def part(self, value: SSAValue, indexing: AffineMap, ranges: Sequence[Range]) -> SSAValue:
        """Returns the slice of an operand that the ranges access, fused if possible."""
        if not isinstance(value.type, TensorType):
            return value
        starts, sizes = self.place(value, indexing, ranges)
        fused = self.fused(value, starts, sizes)
        return self.slice(value, starts, sizes) if fused is None else fused

    def place(
        self, value: SSAValue, indexing: AffineMap, ranges: Sequence[Range]
    ) -> tuple[list[Size], list[Size]]:
        """Returns offsets and sizes of the slice of an operand."""
        whole = dims(value, self.outside)
        places = [
            self._axis(expr, size, ranges)
            for expr, size in zip(indexing.results, whole, strict=True)
        ]
        return [start for start, _ in places], [size for _, size in places]

    def _axis(self, expr: AffineExpr, whole: Size, ranges: Sequence[Range]) -> Range:
        if isinstance(expr, AffineDimExpr):
            return ranges[expr.position]
        form = linear_form(expr)
        if form is None or all(_is_zero(ranges[d][0]) for d in expr.used_dims()):
            return 0, whole
        start, size, b = form[1], 1, self.inside
        begin: Size = start
        reach: Size = size
        for loop, factor in form[0].items():
            begin = b.add(begin, b.mul(ranges[loop][0], factor))
            reach = b.add(reach, b.mul(b.sub(ranges[loop][1], 1), factor))
        return begin, reach

    def slice(self, value: SSAValue, starts: list[Size], sizes: list[Size]) -> SSAValue:
        """Emits tensor.extract_slice; returns the value itself if the slice is all of it."""
        assert isinstance(value.type, TensorType)
        shape = static_shape(sizes)
        if all(map(_is_zero, starts)) and sizes == dims(value, self.outside):
            return value
        kind = TensorType(element_type(value), shape)
        ones = [1] * len(sizes)
        return self.inside.insert(tensor.ExtractSliceOp(value, starts, sizes, ones, kind)).results[
            0
        ]

    def fused(self, value: SSAValue, starts: list[Size], sizes: list[Size]) -> SSAValue | None:
        """Fuses a producer and returns the slice of its result, or None if it cannot be fused."""
        op = value.owner
        if not isinstance(value, OpResult) or not isinstance(op, Structured):
            return None
        if op.parent is not self.block or "lowering_config" in op.attributes:
            return None
        result_map = maps(op)[len(op.inputs) + value.index]
        if not result_map.is_projected_permutation():
            return None
        if any(not isinstance(e, AffineDimExpr) for e in result_map.results):
            return None
        key = (op, *starts, *sizes)
        if key not in self.done:
            ranges: list[Range] = [(0, size) for size in extents(op, self.outside)]
            for expr, start, size in zip(result_map.results, starts, sizes, strict=True):
                assert isinstance(expr, AffineDimExpr)
                ranges[expr.position] = (start, size)
            if reason := missed(op, [0 if _is_zero(r[0]) else 1 for r in ranges]):
                remark("missed", NAME, op, f"not fused: {reason}")
                return None
            into = [self.destination(op, k, ranges) for k in range(len(op.outputs))]
            self.done[key] = self.compute(op, ranges, into)
            remark("passed", NAME, op, "fused into the tiles of its consumer")
        return self.done[key][value.index]

    def destination(self, op: Structured, number: int, ranges: Sequence[Range]) -> SSAValue:
        """Returns the destination of a producer's tile, never a new tensor."""
        output, indexing = op.outputs[number], maps(op)[len(op.inputs) + number]
        if not is_undefined(output.owner):
            return self.part(output, indexing, ranges)
        starts, sizes = self.place(output, indexing, ranges)
        for known, slice_ in self.destinations:
            if known == sizes and element_type(slice_) == element_type(output):
                return slice_
        return self.slice(output, starts, sizes)


def _is_zero(size: Size) -> bool:
    return isinstance(size, int) and size == 0


def tile_and_fuse(op: Structured, tiles: Sequence[int]) -> ForallOp:
    """op(producer(x))  =>  forall tiles { insert op(producer(slice of x)) }"""
    outside = IndexBuilder(InsertPoint.before(op))
    ends = extents(op, outside)
    tiled = [loop for loop, tile in enumerate(tiles) if tile > 0]
    block = Block(arg_types=[*[IndexType()] * len(tiled), *(o.type for o in op.outputs)])
    inside = IndexBuilder(InsertPoint.at_end(block))
    ranges: list[Range] = [(0, end) for end in ends]
    for iv, loop in zip(block.args, tiled, strict=False):
        tile, end = tiles[loop], ends[loop]
        whole = isinstance(end, int) and end % tile == 0
        ranges[loop] = (iv, tile if whole else inside.minimum(tile, inside.sub(end, iv)))
    here = TileOfOps(outside, inside, op.parent)
    shared = block.args[len(tiled) :]
    places = [
        here.place(output, each, ranges)
        for output, each in zip(op.outputs, maps(op)[len(op.inputs) :], strict=True)
    ]
    here.destinations = [
        (place[1], here.slice(argument, *place))
        for argument, place in zip(shared, places, strict=True)
    ]
    results = here.compute(op, ranges, [slice_ for _, slice_ in here.destinations])
    inserts = Block(
        [
            ParallelInsertSliceOp(result, argument, starts, sizes, [1] * len(sizes))
            for result, argument, (starts, sizes) in zip(results, shared, places, strict=True)
        ]
    )
    block.add_op(get_op("scf.forall.in_parallel").create(regions=[Region(inserts)]))
    forall = ForallOp.over(
        [0] * len(tiled),
        [ends[loop] for loop in tiled],
        [tiles[loop] for loop in tiled],
        list(op.outputs),
        Region(block),
    )
    forall.location = op.location
    parent = op.parent
    assert parent is not None
    Rewriter.insert_op(forall, InsertPoint.before(op))
    Rewriter.replace_op(op, [], forall.results)
    erase_dead_code(parent, Rewriter.erase_op)
    return forall


@dataclass(frozen=True)
class TileAndFusePass(ModulePass):
    """Tiles ops with a `workgroup` config, and fuses their producers into the tiles."""

    name = "irees-tile-and-fuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # In reverse order: producers that were fused need no tiling of their own.
        for inner in [o for o in op.walk(reverse=True) if isinstance(o, Structured) and o.results]:
            tiles = LoweringConfigAttr.on(inner).ints("workgroup") or ()
            if inner.parent is None or not any(tiles):
                continue
            if reason := missed(inner, tiles):
                remark("missed", NAME, inner, f"not tiled: {reason}")
                continue
            remark("passed", NAME, tile_and_fuse(inner, tiles), f"tiles of {list(tiles)}")
