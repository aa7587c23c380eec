"""
Lowers gathers to contiguous loads, broadcasts of one element, or loads lane by lane, and scatters,
masked loads and masked stores lane by lane.

    %r = vector.gather %m[%i, %j] [%x], %mask, %p
  =>                                                  // lane 0 of a dynamic mask
    %x0 = vector.extract %x[0]
    %r0 = scf.if %mask0 {
      %k = arith.addi %j, %x0
      %e = memref.load %m[%i, %k]
      scf.yield (vector.insert %e, %p[0])
    } else {
      scf.yield %p
    }

The defining op of the index vector selects the form. A counting constant, `vector.step`, or the sum
of one and a broadcast is a contiguous row (`vector.load`); a broadcast is one element; anything
else, and a row with a mask, is loaded lane by lane. If the mask is known to be all true, nothing is
tested; if it is all false, the result is the pass-through. Inactive lanes are never loaded, not
even speculatively, so their indices may be out of bounds. Gathers of higher rank are unrolled into
rows first.

Gathers of tensors are left unchanged, with a remark: out-of-bounds semantics are decided on
buffers.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    MemRefType,
    ModuleOp,
    VectorType,
    i1,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.upstream.vector.shapes import GatherOp, ScatterOp
from irees.remarks import remark
from irees.transforms.utils.lanes import unit_stride
from irees.transforms.utils.shapes import IndexBuilder, Size


@dataclass(frozen=True)
class Pattern:
    """Lanes `start + step * lane`, where step is 0 or 1."""

    start: tuple[Size, ...]
    """Summands of the start index."""
    step: int


def _pattern_of_numbers(numbers: list[int]) -> Pattern | None:
    for step in (0, 1):
        if numbers == [numbers[0] + step * lane for lane in range(len(numbers))]:
            return Pattern((numbers[0],), step)
    return None


def pattern_of(value: SSAValue) -> Pattern | None:
    """Returns the pattern of an index vector, or None if it is unknown."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr):
        return _pattern_of_numbers([int(n) for n in op.value.get_values()])
    if isinstance(op, vector.BroadcastOp) and not isinstance(op.source.type, VectorType):
        return Pattern((op.source,), 0)
    if isinstance(op, Operation) and op.name == "vector.step":
        return Pattern((0,), 1)
    if isinstance(op, arith.IndexCastOp):
        return pattern_of(op.input)
    if isinstance(op, arith.AddiOp):
        # Active lanes are in bounds of their dim, so the sum can wrap only in inactive lanes.
        a, b = pattern_of(op.lhs), pattern_of(op.rhs)
        if a is not None and b is not None and a.step + b.step < 2:
            return Pattern(a.start + b.start, a.step + b.step)
    return None


def mask_of(value: SSAValue) -> list[bool] | None:
    """Returns the active lanes of a mask, or None if they are unknown."""
    op = value.owner
    kind = value.type
    assert isinstance(kind, VectorType)
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr):
        return [bool(n) for n in op.value.get_values()]
    if isinstance(op, vector.BroadcastOp) and isinstance(op.source.owner, arith.ConstantOp):
        found = op.source.owner.value
        if hasattr(found, "value"):
            return [bool(found.value.data)] * kind.get_shape()[0]  # type: ignore[attr-defined]
    return None


class Lowering:
    """The lowering of one gather."""

    def __init__(self, op: GatherOp):
        self.op = op
        self.at = IndexBuilder(InsertPoint.before(op))
        assert isinstance(op.result.type, VectorType)
        self.kind: VectorType = op.result.type

    def _index(self, value: SSAValue, at: IndexBuilder) -> SSAValue:
        if isinstance(value.type, IndexType):
            return value
        return at.insert(arith.IndexCastOp(value, IndexType())).results[0]

    def _place(self, start: tuple[Size, ...], at: IndexBuilder) -> list[SSAValue]:
        """Returns the indices of the gather's base plus `start` in the last dim."""
        *outer, last = self.op.offsets
        total: Size = last
        for part in start:
            total = at.add(total, part if isinstance(part, int) else self._index(part, at))
        return [*outer, at.value(total)]

    def run(self) -> SSAValue:
        """Emits the loads; returns the value that replaces the gather."""
        if len(self.kind.get_shape()) > 1:
            return self.rows()
        mask = mask_of(self.op.mask)
        if mask is not None and not any(mask):
            return self.op.pass_thru
        all_on = mask is not None and all(mask)
        pattern = pattern_of(self.op.index_vec)
        if pattern is None or (pattern.step and not unit_stride(self.op.base.type)):
            return self.lane_by_lane(mask)
        if pattern.step:
            return self.neighbours(pattern, all_on)
        return self.one_element(pattern, all_on)

    def rows(self) -> SSAValue:
        """gather of rows => a gather per row"""
        count, *inner = self.kind.get_shape()
        result = self.op.pass_thru
        for row in range(count):
            parts: list[SSAValue] = []
            for value in (self.op.index_vec, self.op.mask, self.op.pass_thru):
                assert isinstance(value.type, VectorType)
                part = VectorType(value.type.element_type, inner)
                parts.append(self.at.insert(vector.ExtractOp(value, [row], part)).results[0])
            gather = GatherOp(self.op.base, self.op.offsets, *parts)
            self.at.insert(gather)
            below = Lowering(gather)
            found = below.run()
            result = self.at.insert(vector.InsertOp(found, result, [row])).results[0]
            Rewriter.erase_op(gather)
        return result

    def neighbours(self, pattern: Pattern, all_on: bool) -> SSAValue:
        """gather [x, x + 1, ...] => load [x]"""
        place = self._place(pattern.start, self.at)
        if all_on:
            return self.at.insert(vector.LoadOp(self.op.base, place, self.kind)).results[0]
        load = vector.MaskedLoadOp(self.op.base, place, self.op.mask, self.op.pass_thru)
        return self.at.insert(load).results[0]

    def one_element(self, pattern: Pattern, all_on: bool) -> SSAValue:
        """gather [x, x, ...] => broadcast (load [x])"""
        if all_on:
            place = self._place(pattern.start, self.at)
            element = self.at.insert(memref.LoadOp.get(self.op.base, place)).results[0]
            return self.at.insert(vector.BroadcastOp(element, self.kind)).results[0]
        some = self.at.insert(
            # The constructor of ReductionOp would make the result a vector.
            vector.ReductionOp.create(
                operands=[self.op.mask],
                result_types=[i1],
                properties={
                    "kind": vector.CombiningKindAttr(vector.CombiningKindFlag.OR),
                    "fastmath": arith.FastMathFlagsAttr("none"),
                },
            )
        ).results[0]

        def read(at: IndexBuilder) -> SSAValue:
            element = at.insert(memref.LoadOp.get(self.op.base, self._place(pattern.start, at)))
            splat = at.insert(vector.BroadcastOp(element.results[0], self.kind)).results[0]
            chosen = arith.SelectOp(self.op.mask, splat, self.op.pass_thru)
            return at.insert(chosen).results[0]

        return self._when(some, read, self.op.pass_thru)

    def lane_by_lane(self, mask: list[bool] | None) -> SSAValue:
        """gather [x0, x1, ...] => load [x0], load [x1], ..."""
        result = self.op.pass_thru
        assert isinstance(self.op.index_vec.type, VectorType)
        index_type = self.op.index_vec.type.element_type
        for lane in range(self.kind.get_shape()[0]):
            if mask is not None and not mask[lane]:
                continue

            def read(at: IndexBuilder, lane: int = lane, before: SSAValue = result) -> SSAValue:
                step = vector.ExtractOp(self.op.index_vec, [lane], index_type)
                place = self._place((at.insert(step).results[0],), at)
                element = at.insert(memref.LoadOp.get(self.op.base, place)).results[0]
                return at.insert(vector.InsertOp(element, before, [lane])).results[0]

            if mask is not None:
                result = read(self.at)
                continue
            on = self.at.insert(vector.ExtractOp(self.op.mask, [lane], i1)).results[0]
            result = self._when(on, read, result)
        return result

    def _when(self, condition: SSAValue, read, otherwise: SSAValue) -> SSAValue:
        """Emits an `scf.if` that yields the read value or `otherwise`."""
        yes, no = Block(), Block()
        value = read(IndexBuilder(InsertPoint.at_end(yes)))
        yes.add_op(scf.YieldOp(value))
        no.add_op(scf.YieldOp(otherwise))
        op = scf.IfOp(condition, [self.kind], Region(yes), Region(no))
        return self.at.insert(op).results[0]


Masked = vector.MaskedLoadOp | vector.MaskedStoreOp | ScatterOp


def lower_masked(op: Masked) -> None:
    """maskedload, maskedstore, scatter  =>  a load or store of each lane whose mask is true"""
    b, known = IndexBuilder(InsertPoint.before(op)), mask_of(op.mask)
    loaded = op.pass_thru if isinstance(op, vector.MaskedLoadOp) else None
    assert isinstance(op.mask.type, VectorType)
    for lane in range(op.mask.type.get_shape()[0]):
        if known is not None and not known[lane]:
            continue
        if known is not None:
            loaded = _moved(op, lane, loaded, b)
            continue
        on = b.insert(vector.ExtractOp(op.mask, [lane], i1)).results[0]
        yes, kinds = Block(), [] if loaded is None else [loaded.type]
        no = Block([scf.YieldOp(*([] if loaded is None else [loaded]))])
        new = _moved(op, lane, loaded, IndexBuilder(InsertPoint.at_end(yes)))
        yes.add_op(scf.YieldOp(*([] if new is None else [new])))
        branch = scf.IfOp(on, kinds, Region(yes), Region(no) if kinds else Region())
        branch.location = op.location
        results = b.insert(branch).results
        loaded = results[0] if results else None
    Rewriter.replace_op(op, [], [] if loaded is None else [loaded])


def _moved(op: Masked, lane: int, loaded: SSAValue | None, at: IndexBuilder) -> SSAValue | None:
    """Loads a lane into the vector loaded so far, or stores it."""
    if isinstance(op, ScatterOp):
        assert isinstance(op.index_vec.type, VectorType)
        kind = op.index_vec.type.element_type
        step: Size = at.insert(vector.ExtractOp(op.index_vec, [lane], kind)).results[0]
        if not isinstance(kind, IndexType):
            step = at.insert(arith.IndexCastOp(step, IndexType())).results[0]
        *outer, last = op.offsets
    else:
        step, (*outer, last) = lane, op.indices
    places = [*outer, at.value(at.add(last, step))]
    if loaded is not None:
        element = at.insert(memref.LoadOp.get(op.base, places)).results[0]
        return at.insert(vector.InsertOp(element, loaded, [lane])).results[0]
    assert not isinstance(op, vector.MaskedLoadOp)
    value = op.value_to_store
    assert isinstance(value.type, VectorType)
    element = at.insert(vector.ExtractOp(value, [lane], value.type.element_type)).results[0]
    at.insert(memref.StoreOp.get(element, op.base, places))
    return None


def _has_places(op: Masked) -> bool:
    """Whether an op moves along a dim."""
    return bool(op.offsets if isinstance(op, ScatterOp) else op.indices)


@dataclass(frozen=True)
class LowerGatherPass(ModulePass):
    """Lowers gathers, scatters, and masked loads and stores."""

    name = "irees-lower-gather"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, GatherOp)]:
            if not isinstance(inner.base.type, MemRefType) or not inner.offsets:
                remark("missed", self.name, inner, "not a gather from a buffer along one dim")
                continue
            Rewriter.replace_op(inner, [], [Lowering(inner).run()])
        for inner in [o for o in op.walk() if isinstance(o, Masked)]:
            if isinstance(inner.base.type, MemRefType) and _has_places(inner):
                lower_masked(inner)
