"""
Scans along the innermost dim whose combiner is log(exp(a) + exp(b)), in chunks of a row. Part of
`irees-cpu-lower-scans`.

The combiner waits for an exponential and a logarithm at each element. With the maximum of a chunk
and of the running value before it as the common shift, only an addition depends on the element
before:

    top = max(running, max x[i])
    s[i] = s[i - 1] + exp(x[i] - top)        where s before the chunk is exp(running - top)
    y[i] = top + log(s[i])

The exponentials and logarithms are structured ops. A chunk takes the combiner element by element if
a shift by its maximum loses digits: where the running value is far below, infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith, math, memref
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from irees.dialects.upstream.math import IsInfOp
from irees.targets.cpu import CPU
from irees.transforms.codegen.common.utils.rows import compare, load, store
from irees.transforms.codegen.cpu.cpu_lower_scans.neighbours import Scan
from irees.transforms.codegen.cpu.cpu_lower_scans.rows import Rows
from irees.transforms.utils.loops import for_loop, if_both, if_else
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.structured import generic
from irees.transforms.utils.tensors import select_dims
from irees.transforms.utils.views import subview

WIDEST_SHIFT = 24.0
"""Maximum difference of a chunk's maximum and its first result. A result has the rounding error of
the shift: 24 units in the last place of 1, where PyTorch's tests accept a hundred."""


def takes_log_sums(scan: Scan) -> bool:
    """Whether a scan is one of logarithms of sums along contiguous rows."""
    return scan.is_innermost and scan.is_inclusive and is_log_add(scan.op.body.block)


def is_log_add(block: Block) -> bool:
    """
    Whether a combiner is log(exp(a) + exp(b)), shifted by the larger operand:
    max(a, b) + log1p(exp(-|a - b|)), or a if both are the same infinity.
    """
    if len(block.args) != 2 or block.last_op is None:
        return False
    if not isinstance(block.args[0].type, Float32Type | Float64Type):
        return False
    result = block.last_op.operands[0]
    if isinstance(chosen := result.owner, arith.SelectOp):
        if chosen.lhs not in block.args or not _are_equal_infinities(chosen.cond, block):
            return False
        result = chosen.rhs
    if not isinstance(total := result.owner, arith.AddfOp):
        return False
    return any(
        _is_of_both(top, arith.MaximumfOp, block) and _is_near(near, block)
        for top, near in (total.operands, total.operands[::-1])
    )


def _is_of_both(value: SSAValue, kind: type[Operation], block: Block) -> bool:
    return isinstance(value.owner, kind) and set(value.owner.operands) == set(block.args)


def _is_near(value: SSAValue, block: Block) -> bool:
    """Whether a value is log1p(exp(-|a - b|))."""
    for kind in (math.Log1pOp, math.ExpOp, arith.NegfOp, math.AbsFOp):
        if not isinstance(value.owner, kind):
            return False
        value = value.owner.operands[0]
    return _is_of_both(value, arith.SubfOp, block)


def _are_equal_infinities(value: SSAValue, block: Block) -> bool:
    """Whether a value is a == b and isinf(a)."""
    if not isinstance(both := value.owner, arith.AndIOp):
        return False
    equal, infinite = both.operands
    if isinstance(equal.owner, IsInfOp):
        equal, infinite = infinite, equal
    if not isinstance(infinite.owner, IsInfOp) or infinite.owner.operands[0] not in block.args:
        return False
    return (
        _is_of_both(equal, arith.CmpfOp, block)
        and isinstance(equal.owner, arith.CmpfOp)
        and arith.CMPF_COMPARISON_OPERATIONS[equal.owner.predicate.value.data] == "oeq"
    )


@dataclass(frozen=True)
class Chunk:
    """A part of some adjacent rows: `width` elements from `start` on."""

    rows: Sequence[list[Size]]
    start: Size
    width: Size

    def view(self, buffer: SSAValue, b: IndexBuilder) -> SSAValue:
        """Returns the view of the chunk in a buffer of the rows' shape."""
        sizes = [1] * len(self.rows[0]) + [self.width]
        kept = [len(self.rows[0])]
        if len(self.rows) > 1:
            sizes[-2], kept = len(self.rows), [len(self.rows[0]) - 1, *kept]
        offsets = [*self.rows[0], self.start]
        made = subview(buffer, offsets, sizes, [1] * len(sizes), kept)
        return b.insert(made).results[0]


@dataclass
class LogSums(Rows):
    """The lowering of one scan with sums of exponentials."""

    def _together(self, count: Size) -> int:
        return CPU.scanned_rows

    def _rows(self, rows: Sequence[list[Size]], size: Size, at: IndexBuilder) -> None:
        """Scans some adjacent rows chunk by chunk; the accumulator has the running values."""
        element = self.scan.op.body.block.args[0].type
        lowest = at.insert(arith.ConstantOp(FloatAttr(float("-inf"), element))).results[0]
        for row in rows:
            store(lowest, self.scan.op.accumulator, row, at)
        count, width = len(rows), CPU.log_sum_chunk
        shape = [count, width] if count > 1 else [width]
        sums = at.insert(memref.AllocaOp.get(element, shape=shape)).results[0]
        tops = at.insert(memref.AllocaOp.get(element, shape=shape[:-1])).results[0]
        whole = at.mul(at.floordiv(size, width), width)
        rest = at.sub(size, whole)
        if whole != 0:
            close, start, b = for_loop(at, 0, whole, width)
            self._chunk(Chunk(rows, start, width), sums, tops, b)
            close()
        if rest == 0:
            return
        end, b = if_else(at, compare(rest, 0, "sgt", at))
        self._chunk(Chunk(rows, whole, rest), sums, tops, b)
        end()

    def _chunk(self, chunk: Chunk, sums: SSAValue, tops: SSAValue, at: IndexBuilder) -> None:
        op = self.scan.op
        zeros = [0] * len(sums.type.get_shape())
        sizes = [len(chunk.rows), chunk.width][-len(zeros) :]
        part = at.insert(subview(sums, zeros, sizes, [1] * len(zeros))).results[0]
        source = chunk.view(op.input, at)
        places = [[n] if len(chunk.rows) > 1 else [] for n in range(len(chunk.rows))]
        for row, place in zip(chunk.rows, places, strict=True):
            store(load(op.accumulator, row, at), tops, place, at)
        at.insert(_reduction(source, tops))
        near: list[SSAValue] = []
        for row, place in zip(chunk.rows, places, strict=True):
            first = load(op.input, [*row, chunk.start], at)
            before = load(op.accumulator, row, at)
            lower = at.insert(arith.MaximumfOp(before, first)).results[0]
            shift = at.insert(arith.SubfOp(load(tops, place, at), lower)).results[0]
            widest = at.insert(arith.ConstantOp(FloatAttr(WIDEST_SHIFT, shift.type))).results[0]
            # The difference of equal infinities is NaN.
            near.append(at.insert(arith.CmpfOp(shift, widest, "olt")).results[0])
        all_near = reduce(lambda x, y: at.insert(arith.AndIOp(x, y)).results[0], near)
        close, fast, plain = if_both(at, all_near)
        fast.insert(_pointwise(source, tops, part, _shifted_exponential))
        self._sums(chunk, part, tops, places, fast)
        target = chunk.view(op.output, fast)
        fast.insert(_pointwise(part, tops, target, _shifted_logarithm))
        last = fast.sub(fast.add(chunk.start, chunk.width), 1)
        for row in chunk.rows:
            store(load(op.output, [*row, last], fast), op.accumulator, row, fast)
        self._one_by_one(chunk, plain)
        close()

    def _sums(
        self, chunk: Chunk, part: SSAValue, tops: SSAValue, places: Sequence[list[int]],
        at: IndexBuilder,
    ) -> None:  # fmt: skip
        """Replaces the exponentials of a chunk by their running sums."""
        start: list[SSAValue] = []
        for row, place in zip(chunk.rows, places, strict=True):
            before = load(self.scan.op.accumulator, row, at)
            start.append(_shifted_exponential(before, load(tops, place, at), at))
        close, i, b = for_loop(at, 0, chunk.width, 1, start)
        found: list[SSAValue] = []
        for running, place in zip(close.arguments, places, strict=True):
            value = load(part, [*place, i], b)
            found.append(b.insert(arith.AddfOp(running, value)).results[0])
            store(found[-1], part, [*place, i], b)
        close(found)

    def _one_by_one(self, chunk: Chunk, at: IndexBuilder) -> None:
        op = self.scan.op
        start = [load(op.accumulator, row, at) for row in chunk.rows]
        stop = at.add(chunk.start, chunk.width)
        close, i, b = for_loop(at, chunk.start, stop, 1, start)
        found: list[SSAValue] = []
        for running, row in zip(close.arguments, chunk.rows, strict=True):
            value = load(op.input, [*row, i], b)
            found.append(inline_region(op.body.block, [running, value], b)[0])
            store(found[-1], op.output, [*row, i], b)
        for row, value in zip(chunk.rows, close(found), strict=True):
            store(value, op.accumulator, row, at)


def _maps(rank: int) -> tuple[AffineMap, AffineMap]:
    """Returns the maps of a chunk, and of one number per row."""
    return AffineMap.identity(rank), select_dims(rank, range(rank - 1))


def _reduction(source: SSAValue, tops: SSAValue) -> linalg.GenericOp:
    """tops[r] = max(tops[r], source[r, :])"""
    rank = len(source.type.get_shape())
    element = source.type.element_type
    block = Block(arg_types=[element, element])
    b = IndexBuilder(InsertPoint.at_end(block))
    b.insert(linalg.YieldOp(b.insert(arith.MaximumfOp(*block.args)).results[0]))
    kinds = ["parallel"] * (rank - 1) + ["reduction"]
    return generic([source], [tops], _maps(rank), kinds, Region(block))


def _pointwise(
    source: SSAValue, tops: SSAValue, target: SSAValue,
    make: Callable[[SSAValue, SSAValue, IndexBuilder], SSAValue],
) -> linalg.GenericOp:  # fmt: skip
    """target[r, i] = make(source[r, i], tops[r])"""
    rank = len(source.type.get_shape())
    whole, rows = _maps(rank)
    block = Block(arg_types=[source.type.element_type] * 3)
    b = IndexBuilder(InsertPoint.at_end(block))
    b.insert(linalg.YieldOp(make(block.args[0], block.args[1], b)))
    return generic(
        [source, tops], [target], [whole, rows, whole], ["parallel"] * rank, Region(block)
    )


def _shifted_exponential(value: SSAValue, top: SSAValue, b: IndexBuilder) -> SSAValue:
    difference = b.insert(arith.SubfOp(value, top)).results[0]
    return b.insert(math.ExpOp(difference)).results[0]


def _shifted_logarithm(value: SSAValue, top: SSAValue, b: IndexBuilder) -> SSAValue:
    return b.insert(arith.AddfOp(top, b.insert(math.LogOp(value)).results[0])).results[0]


def scan_log_sums(scan: Scan, vector_bytes: int, at: IndexBuilder) -> None:
    """scan of logarithms of sums along the innermost dim  =>  exponentials, sums, logarithms"""
    LogSums(scan, vector_bytes).build(at)
