"""
Vectorizes elementwise ops whose last loop is short, along the loop before it. Part of
`irees-vectorize-shuffled-ops`.

    for i in N { for b in 2 { out[i, b] = f(x[i], b) } }
  =>
    for i in N step 16 {
      %0 = f(x[i : i + 16], 0)
      %1 = f(x[i : i + 16], 1)
      out[2 * i : 2 * i + 32] = %0[0], %1[0], %0[1], %1[1], ..
    }

Repeated elements (nearest-neighbour resizing), tensors stacked along a new last dim and pairs of
real and imaginary parts have this form. Along the last loop a vector would have two or three lanes.

The iterations of the last loop become one vector each, which shuffles interleave. LLVM does the
same with the interleaved accesses of a loop; MLIR: `vector.interleave`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import DenseArrayBase, MemRefType, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.rewriter import InsertPoint, Rewriter

from irees.targets.cpu import CPU
from irees.transforms.codegen.common.utils.operand_accesses import joined_rows
from irees.transforms.codegen.cpu.utils.element_accesses import ElementAccesses
from irees.transforms.utils.lanes import NotVectorizableError
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.structured import static_ranges
from irees.transforms.utils.views import strides_of


def interleaving(nest: ElementAccesses) -> Interleaving:
    """
    Returns the lowering of an op to vectors of its last loop but one. Raises NotVectorizableError
    for an op without this form.
    """
    along, last, count = _last_loops(nest)
    nest.require_lanes()
    if any(argument.uses for argument in nest.block.args[nest.inputs :]):
        raise NotVectorizableError("it reads its output")
    if "other" in nest.strides(along)[: nest.inputs]:
        raise NotVectorizableError("an input is strided along the loop before the last")
    nest.take(along)
    size = static_ranges(nest.op)[along]
    if count >= nest.lanes or 0 <= size < nest.lanes:
        raise NotVectorizableError("the loop before the last has no whole vector")
    return Interleaving(nest, along, last, count)


def _last_loops(nest: ElementAccesses) -> tuple[int, int, int]:
    """Returns the loops of the last two dims, contiguous in all outputs, and the last size."""
    found: set[tuple[int, int, int]] = set()
    for output, indexing in zip(nest.op.outputs, nest.maps[nest.inputs :], strict=True):
        if len(indexing.results) < 2:
            raise NotVectorizableError("an output has less than two dims")
        along, last = indexing.results[-2:]
        kind = output.type
        if not isinstance(along, AffineDimExpr) or not isinstance(last, AffineDimExpr):
            raise NotVectorizableError("a loop does not index the last dim of an output")
        assert isinstance(kind, MemRefType)
        count = kind.get_shape()[-1]
        if not 1 < count <= CPU.interleaved_vectors or strides_of(kind)[-2:] != [count, 1]:
            raise NotVectorizableError("the last dim of an output is not short and contiguous")
        found.add((along.position, last.position, count))
    if len(found) != 1:
        raise NotVectorizableError("outputs have other last dims")
    return found.pop()


class Interleaving:
    """Builds the loops of one op. `count`: iterations of loop `last`."""

    def __init__(self, nest: ElementAccesses, along: int, last: int, count: int):
        self.nest, self.along, self.last, self.count = nest, along, last, count

    def build(self) -> None:
        """Replaces the op with loops. Raises NotVectorizableError for a body without vectors."""
        nest = self.nest
        here = IndexBuilder(InsertPoint.before(nest.op))
        nest.sizes = nest.trip_counts(here)
        self.flat = [joined_rows(output, here) for output in nest.op.outputs]
        others = [i for i in range(len(nest.kinds)) if i not in (self.along, self.last)]
        nest.around(others, self._columns, here)
        Rewriter.erase_op(nest.op)

    def _columns(self, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Emits vectors, narrower ones for the rest of a known size, then single elements."""
        nest, size, start = self.nest, self.nest.sizes[self.along], 0
        lanes = nest.lanes
        while lanes > self.count and (isinstance(size, int) or lanes == nest.lanes):
            end = at.mul(at.floordiv(size, lanes), lanes)
            if end != start or not isinstance(start, int):
                close, i, b = for_loop(at, start, end, lanes)
                self._vectors({**ivs, self.along: i}, lanes, b)
                close()
            start, lanes = end, lanes // 2
        if start == size and isinstance(start, int):
            return
        close, i, b = for_loop(at, start, size, 1)
        for number in range(self.count):
            nest.point({**ivs, self.along: i, self.last: number}, b)
        close()

    def _vectors(self, ivs: dict[int, Size], lanes: int, at: IndexBuilder) -> None:
        """Emits the body for all iterations of the last loop, and stores interleaved vectors."""
        nest = self.nest
        found = [nest.body({**ivs, self.last: n}, at, lanes) for n in range(self.count)]
        for position, (flat, parts) in enumerate(
            zip(self.flat, zip(*found, strict=True), strict=True)
        ):
            *outer, along, _ = nest.indices(nest.inputs + position, {**ivs, self.last: 0}, at)
            first = at.mul(along, self.count)
            for number, value in enumerate(interleaved(parts, lanes, at)):
                place = at.value(at.add(first, number * lanes))
                at.insert(vector.StoreOp(value, flat, [*outer, place]))


def interleaved(parts: Sequence[SSAValue], lanes: int, at: IndexBuilder) -> list[SSAValue]:
    """a, b  =>  a[0], b[0], a[1], b[1], .. : as many vectors of so many lanes as there were"""
    if len(parts) % 2:
        return [_chosen(parts, number, lanes, at) for number in range(len(parts))]
    if len(parts) > 2:
        halves = [interleaved(parts[start::2], lanes, at) for start in (0, 1)]
        pairs = zip(*halves, strict=True)
        return [value for pair in pairs for value in interleaved(pair, lanes, at)]
    half = lanes // 2
    return [
        _shuffle(*parts, [n for i in range(start, start + half) for n in (i, i + lanes)], at)
        for start in (0, half)
    ]


def _chosen(parts: Sequence[SSAValue], number: int, lanes: int, at: IndexBuilder) -> SSAValue:
    """Returns vector `number` of interleaved parts: each part in turn fills the lanes it has."""
    places = [divmod(number * lanes + lane, len(parts)) for lane in range(lanes)]
    value = parts[0]
    for part, source in enumerate(parts[1:], 1):
        lanes_of = [
            index + lanes
            if owner == part
            else (index if part == 1 else lane)
            if owner < part
            else 0
            for lane, (index, owner) in enumerate(places)
        ]
        value = _shuffle(value, source, lanes_of, at)
    return value


def _shuffle(a: SSAValue, b: SSAValue, lanes: list[int], at: IndexBuilder) -> SSAValue:
    mask = DenseArrayBase.from_list(i64, lanes)
    return at.insert(vector.ShuffleOp(a, b, mask, result_type=a.type)).results[0]
