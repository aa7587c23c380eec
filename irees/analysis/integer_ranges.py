"""
Computes the signed and the unsigned range of integer values.

`IntegerRanges().of(value)` walks the use-def chain of a value and caches its results; call `forget`
after a rewrite. Arithmetic wraps: a signed (unsigned) range is unknown if the result may overflow
as a signed (unsigned) number, so the results also hold for programs that overflow. Index has 64
bits. A loop-carried value starts from the range of its initial value; each end that the body does
not preserve is widened to unknown. The rules follow MLIR's `IntegerRangeAnalysis`; they are in
`_range_rules`, their proofs in `tests/proofs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import affine, arith, memref, scf, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, OpResult, SSAValue
from xdsl.ir.affine import AffineExpr

from irees.analysis._affine_ranges import delinearized, linearized, map_intervals
from irees.analysis._range_rules import RULES, Interval, Sem
from irees.dialects.upstream.affine import DelinearizeIndexOp, LinearizeIndexOp
from irees.dialects.upstream.affine import MaxOp as AffineMaxOp
from irees.dialects.upstream.scf import ForallOp
from irees.dialects.util import AssumeIntOp

INDEX_BITS = 64
MAX_DIM = (1 << 63) - 1
_SEM = Sem()


def width_of(type_: Attribute) -> int | None:
    """Returns the width of an integer type, 64 for index, None for other types."""
    if isinstance(type_, IndexType):
        return INDEX_BITS
    return type_.width.data if isinstance(type_, IntegerType) else None


@dataclass(frozen=True)
class IntRange:
    """Smallest and largest value, as signed and as unsigned numbers."""

    width: int
    smin: int
    smax: int
    umin: int
    umax: int

    @staticmethod
    def full(width: int) -> IntRange:
        """Returns the range of all values of a width."""
        half = 1 << (width - 1)
        return IntRange(width, -half, half - 1, 0, 2 * half - 1)

    @staticmethod
    def signed(width: int, low: int, high: int) -> IntRange:
        """Returns the signed range [low, high], or the full range if that does not fit."""
        full = IntRange.full(width)
        if low < full.smin or high > full.smax or low > high:
            return full
        if low >= 0:
            return IntRange(width, low, high, low, high)
        if high < 0:
            return IntRange(width, low, high, low + (1 << width), high + (1 << width))
        return IntRange(width, low, high, full.umin, full.umax)

    @staticmethod
    def unsigned(width: int, low: int, high: int) -> IntRange:
        """Returns the unsigned range [low, high], or the full range if that does not fit."""
        full = IntRange.full(width)
        if low < 0 or high > full.umax or low > high:
            return full
        if high <= full.smax:
            return IntRange(width, low, high, low, high)
        if low > full.smax:
            return IntRange(width, low - (1 << width), high - (1 << width), low, high)
        return IntRange(width, full.smin, full.smax, low, high)

    @staticmethod
    def constant(width: int, value: int) -> IntRange:
        """Returns the range of one value, truncated to the width."""
        bits = value & ((1 << width) - 1)
        return IntRange.unsigned(width, bits, bits)

    @property
    def value(self) -> int | None:
        """The signed value if the range has only one, else None."""
        if self.smin == self.smax:
            return self.smin
        if self.umin == self.umax:
            return IntRange.constant(self.width, self.umin).smin
        return None

    @property
    def is_full(self) -> bool:
        """Whether the range contains all values."""
        return self == IntRange.full(self.width)

    def union(self, other: IntRange) -> IntRange:
        """Returns the smallest range that contains both."""
        return IntRange(
            self.width,
            min(self.smin, other.smin),
            max(self.smax, other.smax),
            min(self.umin, other.umin),
            max(self.umax, other.umax),
        )

    def meet(self, other: IntRange) -> IntRange:
        """Returns the intersection; self if that is empty."""
        low, high = max(self.smin, other.smin), min(self.smax, other.smax)
        ulow, uhigh = max(self.umin, other.umin), min(self.umax, other.umax)
        if low > high or ulow > uhigh:
            return self
        a, b = IntRange.signed(self.width, low, high), IntRange.unsigned(self.width, ulow, uhigh)
        low, high = max(a.smin, b.smin), min(a.smax, b.smax)
        ulow, uhigh = max(a.umin, b.umin), min(a.umax, b.umax)
        if low > high or ulow > uhigh:
            return self
        return IntRange(self.width, low, high, ulow, uhigh)

    def contains(self, value: int) -> bool:
        """Whether the range contains a value, truncated to the width."""
        bits = value & ((1 << self.width) - 1)
        number = IntRange.constant(self.width, bits).smin
        return self.smin <= number <= self.smax and self.umin <= bits <= self.umax


_PREDICATES: dict[int, tuple[bool, str]] = {
    2: (True, "lt"), 3: (True, "le"), 4: (True, "gt"), 5: (True, "ge"),
    6: (False, "lt"), 7: (False, "le"), 8: (False, "gt"), 9: (False, "ge"),
}  # fmt: skip


def _are_equal(a: IntRange, b: IntRange) -> bool | None:
    """Whether all values of two ranges are equal, or all different; None if neither is known."""
    if a.smax < b.smin or b.smax < a.smin or a.umax < b.umin or b.umax < a.umin:
        return False
    return True if a.value is not None and a.value == b.value else None


def compare_ranges(predicate: int, a: IntRange, b: IntRange) -> bool | None:
    """Returns the result of `arith.cmpi` if it is the same for all values, else None."""
    if predicate in (0, 1):
        equal = _are_equal(a, b)
        return None if equal is None else equal == (predicate == 0)
    signed, relation = _PREDICATES[predicate]
    if relation in ("gt", "ge"):
        a, b = b, a
    strict = relation in ("lt", "gt")
    alow, ahigh = (a.smin, a.smax) if signed else (a.umin, a.umax)
    blow, bhigh = (b.smin, b.smax) if signed else (b.umin, b.umax)
    if ahigh < blow or (not strict and ahigh == blow):
        return True
    if alow > bhigh or (strict and alow == bhigh):
        return False
    return None


def binary_range(name: str, a: IntRange, b: IntRange) -> IntRange:
    """Returns the range of a binary op in `RULES`, taking overflow into account."""
    if a.value is not None and b.value is not None and name in _EXACT:
        return IntRange.constant(a.width, _EXACT[name](a.umin, b.umin))
    result = IntRange.full(a.width)
    reading = RULES[name]
    if reading.signed is not None:
        low, high, known = reading.signed(_SEM, (a.smin, a.smax), (b.smin, b.smax), a.width)
        if known:
            result = result.meet(IntRange.signed(a.width, low, high))
    if reading.unsigned is not None:
        low, high, known = reading.unsigned(_SEM, (a.umin, a.umax), (b.umin, b.umax), a.width)
        if known:
            result = result.meet(IntRange.unsigned(a.width, low, high))
    return result


_EXACT: dict[str, Callable[[int, int], int]] = {
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
}


def resized(value: IntRange, width: int, *, signed: bool) -> IntRange:
    """Returns the range of a value sign-extended, zero-extended or truncated to a width."""
    if width >= value.width:
        if signed:
            return IntRange.signed(width, value.smin, value.smax)
        return IntRange.unsigned(width, value.umin, value.umax)
    return IntRange.signed(width, value.smin, value.smax).meet(
        IntRange.unsigned(width, value.umin, value.umax)
    )


class IntegerRanges:
    """Ranges of values, computed on demand and cached."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, IntRange] = {}
        self._open: set[SSAValue] = set()
        self._depth = 0

    def forget(self) -> None:
        """Clears the cache after a change of the program."""
        self._known.clear()

    def of(self, value: SSAValue) -> IntRange:
        """Returns the range of an integer or index value."""
        width = width_of(value.type)
        if width is None:
            raise TypeError(f"{value.type} has no range")
        found = self._known.get(value)
        if found is not None:
            return found
        if value in self._open or self._depth > 200:
            return IntRange.full(width)
        self._open.add(value)
        self._depth += 1
        try:
            found = self._find(value, width)
        finally:
            self._depth -= 1
            self._open.discard(value)
        if not self._open or not found.is_full:
            self._known[value] = found
        return found

    def note(self, value: SSAValue, found: IntRange) -> None:
        """Records the range of a value that a rewrite created."""
        self._known[value] = found

    def interval(self, value: SSAValue | int) -> Interval:
        """Returns the signed interval of a value or constant."""
        if isinstance(value, int):
            return value, value
        found = self.of(value)
        return found.smin, found.smax

    def _find(self, value: SSAValue, width: int) -> IntRange:
        if isinstance(value, OpResult):
            op = value.op
            if op.name in RULES:
                return binary_range(op.name, self.of(op.operands[0]), self.of(op.operands[1]))
            transfer = TRANSFERS.get(op.name)
            return IntRange.full(width) if transfer is None else transfer(self, value, width)
        block = value.owner
        assert isinstance(block, Block)
        return self._argument(value, block, width)

    def _argument(self, value: SSAValue, block: Block, width: int) -> IntRange:
        parent = block.parent_op()
        position = block.args.index(value)  # type: ignore[arg-type]
        if isinstance(parent, scf.ForOp):
            if position == 0:
                return self._induction(parent.lb, parent.ub, parent.step, width)
            return self._carried(parent, position - 1)
        if isinstance(parent, ForallOp | scf.ParallelOp):
            if isinstance(parent, ForallOp):
                lower, upper, step = parent.bounds()
            else:
                lower, upper, step = parent.lowerBound, parent.upperBound, parent.step
            if position < len(lower):
                return self._induction(lower[position], upper[position], step[position], width)
        if isinstance(parent, affine.ForOp) and position == 0:
            return self._affine_induction(parent)
        return IntRange.full(width)

    def _induction(
        self, lower: SSAValue | int, upper: SSAValue | int, step: SSAValue | int, width: int
    ) -> IntRange:
        low, high, stride = self.interval(lower), self.interval(upper), self.interval(step)
        last = high[1] - 1
        if low[0] == low[1] and stride[0] == stride[1] and stride[0] > 0 and last >= low[0]:
            last = low[0] + (last - low[0]) // stride[0] * stride[0]
        # If the loop never runs, any range is correct.
        return IntRange.signed(width, low[0], max(last, low[0]))

    def _affine_induction(self, op: affine.ForOp) -> IntRange:
        lows = self.results(op.lowerBoundMap, op.lowerBoundOperands)
        highs = self.results(op.upperBoundMap, op.upperBoundOperands)
        if lows is None or highs is None:
            return IntRange.full(INDEX_BITS)
        low, last = max(i[0] for i in lows), min(i[1] for i in highs) - 1
        step = cast(Any, op.step).value.data
        if len(lows) == 1 and lows[0][0] == lows[0][1] and step > 0 and last >= low:
            last = low + (last - low) // step * step
        return IntRange.signed(INDEX_BITS, low, max(low, last))

    def _carried(self, op: scf.ForOp, position: int) -> IntRange:
        """Returns the range of a carried value: a fixed point with widening."""
        block = op.body.block
        last = block.last_op
        assert last is not None
        indices = [i for i, value in enumerate(op.iter_args) if width_of(value.type) is not None]
        assumed = {i: self.of(op.iter_args[i]) for i in indices}
        while True:
            trial = IntegerRanges()
            trial._known = dict(self._known)
            trial._depth = self._depth + 20
            for i, each in assumed.items():
                trial._known[block.args[i + 1]] = each
            broken = {
                i: each
                for i, each in assumed.items()
                if each.union(trial.of(last.operands[i])) != each
            }
            if not broken:
                break
            for i, each in broken.items():
                assumed[i] = _widened(each, trial.of(last.operands[i]))
        for i, each in assumed.items():
            self._known[block.args[i + 1]] = each
        return assumed[position]

    def results(self, map_: AffineMapAttr, operands: Sequence[SSAValue]) -> list[Interval] | None:
        """Returns the intervals of the results of an affine map; None if one may overflow."""
        dims = map_.data.num_dims
        intervals = [self.interval(value) for value in operands]
        return map_intervals(map_.data.results, intervals[:dims], intervals[dims:])


def _widened(old: IntRange, new: IntRange) -> IntRange:
    """Widens each end that `new` exceeds to the full range."""
    full = IntRange.full(old.width)
    return IntRange(
        old.width,
        full.smin if new.smin < old.smin else old.smin,
        full.smax if new.smax > old.smax else old.smax,
        full.umin if new.umin < old.umin else old.umin,
        full.umax if new.umax > old.umax else old.umax,
    )


def _constant(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    attribute = cast(arith.ConstantOp, value.op).value
    if isinstance(attribute, IntegerAttr):
        return IntRange.constant(width, attribute.value.data)
    return IntRange.full(width)


def _select(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    condition, yes, no = value.op.operands
    if width_of(condition.type) == 1:
        known = ranges.of(condition).value
        if known is not None:
            return ranges.of(yes if known else no)
    return ranges.of(yes).union(ranges.of(no))


def _cmpi(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    op = cast(arith.CmpiOp, value.op)
    if width_of(op.lhs.type) is None:
        return IntRange.full(width)
    found = compare_ranges(op.predicate.value.data, ranges.of(op.lhs), ranges.of(op.rhs))
    return IntRange.full(width) if found is None else IntRange.constant(width, int(found))


def _cast(signed: bool):
    def transfer(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
        source = value.op.operands[0]
        if width_of(source.type) is None:
            return IntRange.full(width)
        return resized(ranges.of(source), width, signed=signed)

    return transfer


def assumed_range(op: AssumeIntOp, position: int, width: int) -> IntRange:
    """Returns the range that `util.assume.int` states for an operand: the union of its rows."""
    rows = list(op.assumptions.data[position])
    lows, highs = [row.get("umin") for row in rows], [row.get("umax") for row in rows]
    most = (1 << width) - 1
    low = min((min(each or 0, most) for each in lows), default=0)
    high = max((most if each is None else min(each, most) for each in highs), default=most)
    return IntRange.unsigned(width, low, high)


def _assume(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    op = cast(AssumeIntOp, value.op)
    said = assumed_range(op, value.index, width)
    return said.meet(ranges.of(op.operands[value.index]))


def _apply(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    op = cast(affine.ApplyOp, value.op)
    found = ranges.results(op.map, op.operands)
    return IntRange.full(width) if found is None else IntRange.signed(width, *found[0])


def _extreme(choose: Callable[..., int]):
    def transfer(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
        op = cast(affine.MinOp | AffineMaxOp, value.op)
        found = ranges.results(op.map, op.operands)
        if found is None:
            return IntRange.full(width)
        return IntRange.signed(width, choose(i[0] for i in found), choose(i[1] for i in found))

    return transfer


def _delinearize(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    op = cast(DelinearizeIndexOp, value.op)
    basis = [ranges.interval(each) for each in op.basis]
    inner = basis[1:] if op.has_outer_bound else basis
    outer = basis[0] if op.has_outer_bound else None
    found = delinearized(ranges.interval(op.linear_index[0]), inner, outer)[value.index]
    return IntRange.full(width) if found is None else IntRange.signed(width, *found)


def _linearize(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    op = cast(LinearizeIndexOp, value.op)
    coordinates = [ranges.interval(each) for each in op.multi_index]
    basis = [ranges.interval(each) for each in op.basis]
    found = linearized(coordinates, basis, op.disjoint is not None)
    return IntRange.full(width) if found is None else IntRange.signed(width, *found)


def _if(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    op = cast(scf.IfOp, value.op)
    known = ranges.of(op.cond).value
    found: list[IntRange] = []
    for region, taken in ((op.true_region, True), (op.false_region, False)):
        if (known is None or bool(known) == taken) and region.block.last_op is not None:
            found.append(ranges.of(region.block.last_op.operands[value.index]))
    return found[0] if len(found) == 1 else found[0].union(found[1])


def _for(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    op = value.op
    if isinstance(op, scf.ForOp):
        return ranges.of(op.body.block.args[value.index + 1])
    return IntRange.full(width)


def _dim(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    op = cast(tensor.DimOp | memref.DimOp, value.op)
    type_ = op.source.type
    at = ranges.of(op.index).value
    if isinstance(type_, TensorType | MemRefType) and at is not None:
        shape = type_.get_shape()
        if 0 <= at < len(shape) and shape[at] >= 0:
            return IntRange.signed(width, shape[at], shape[at])
    return IntRange.signed(width, 0, MAX_DIM)


def _linalg_index(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    op = cast(linalg.IndexOp, value.op)
    most = MAX_DIM - 1
    generic = op.parent_op()
    if isinstance(generic, linalg.GenericOp):
        wanted = AffineExpr.dimension(op.dim.value.data)
        for operand, map_ in zip(generic.operands, generic.indexing_maps):
            if isinstance(operand.type, TensorType | MemRefType):
                for size, expr in zip(operand.type.get_shape(), map_.data.results):
                    if expr == wanted and size >= 1:
                        most = min(most, size - 1)
    return IntRange.signed(width, 0, most)


def _rank(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    type_ = value.op.operands[0].type
    if isinstance(type_, TensorType | MemRefType):
        rank = type_.get_num_dims()
        return IntRange.signed(width, rank, rank)
    return IntRange.signed(width, 0, 4096)


def _between(low: int, high: int):
    return lambda ranges, value, width: IntRange.signed(width, low, high)


def _gpu_id(ranges: IntegerRanges, value: OpResult, width: int) -> IntRange:
    bound = value.op.properties.get("upper_bound")
    most = bound.value.data - 1 if isinstance(bound, IntegerAttr) else (1 << 32) - 1
    return IntRange.signed(width, 0, most)


Transfer = Callable[[IntegerRanges, OpResult, int], IntRange]
TRANSFERS: dict[str, Transfer] = {
    "arith.constant": _constant,
    "arith.select": _select,
    "arith.cmpi": _cmpi,
    "arith.extsi": _cast(True),
    "arith.extui": _cast(False),
    "arith.trunci": _cast(True),
    "arith.index_cast": _cast(True),
    "arith.index_castui": _cast(False),
    "util.assume.int": _assume,
    "affine.apply": _apply,
    "affine.min": _extreme(min),
    "affine.max": _extreme(max),
    "affine.delinearize_index": _delinearize,
    "affine.linearize_index": _linearize,
    "scf.if": _if,
    "scf.for": _for,
    "tensor.dim": _dim,
    "memref.dim": _dim,
    "tensor.rank": _rank,
    "memref.rank": _rank,
    "linalg.index": _linalg_index,
    "gpu.thread_id": _gpu_id,
    "gpu.block_id": _gpu_id,
    "hal.buffer_view.dim": _between(0, (1 << 53) - 1),
    "hal.buffer_view.rank": _between(0, 4096),
}
"""Transfer functions of ops without a binary rule, by op name."""
