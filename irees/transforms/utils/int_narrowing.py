"""Patterns that narrow integer arithmetic to 32 bits."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import IndexType, IntegerType, VectorType, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from irees.analysis.integer_ranges import IntegerRanges, IntRange, width_of
from irees.dialects.upstream.arith import IndexCastUIOp
from irees.dialects.util import AssumeIntOp

_ELEMENTWISE = (
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.DivUIOp,
    arith.DivSIOp,
    arith.CeilDivUIOp,
    arith.CeilDivSIOp,
    arith.FloorDivSIOp,
    arith.RemUIOp,
    arith.RemSIOp,
    arith.MinUIOp,
    arith.MaxUIOp,
    arith.MinSIOp,
    arith.MaxSIOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
)


def fits_unsigned(found: IntRange) -> bool:
    """Whether the unsigned range fits in 32 bits."""
    return found.umax < 1 << 32


def fits_signed(found: IntRange) -> bool:
    """Whether the signed range fits in 32 bits."""
    return -(1 << 31) <= found.smin and found.smax < 1 << 31


def _cast(value: SSAValue, target: Attribute, *, signed: bool) -> Operation:
    if isinstance(value.type, IndexType) or isinstance(target, IndexType):
        return arith.IndexCastOp(value, target) if signed else IndexCastUIOp(value, target)
    source, wanted = width_of(value.type), width_of(target)
    assert source is not None
    assert wanted is not None
    assert isinstance(target, IntegerType)
    if wanted < source:
        return arith.TruncIOp(value, target)
    return arith.ExtSIOp(value, target) if signed else arith.ExtUIOp(value, target)


def _narrow(value: SSAValue, *, signed: bool, ranges: IntegerRanges) -> Operation:
    found = ranges.of(value).value
    if isinstance(value.owner, arith.ConstantOp) and found is not None:
        return arith.ConstantOp.from_int_and_width(found, i32)
    # An unsigned cast records that the value is non-negative; an i32 alone does not show this.
    return _cast(value, i32, signed=signed and ranges.of(value).smin < 0)


@dataclass
class NarrowElementwise(RewritePattern):
    """f(x, y) : i64, if all values fit in 32 bits  =>  ext(f(trunc(x), trunc(y)) : i32)"""

    ranges: IntegerRanges

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if not isinstance(op, _ELEMENTWISE):
            return
        wide = op.results[0].type
        width = width_of(wide)
        if width is None or width <= 32:
            return
        found = [self.ranges.of(value) for value in (*op.operands, *op.results)]
        unsigned = all(fits_unsigned(each) for each in found)
        signed = all(fits_signed(each) for each in found)
        if not unsigned and not signed:
            return
        # Signed and unsigned ops must see the same number in 32 bits.
        if (op.name.endswith("si") and not signed) or (op.name.endswith("ui") and not unsigned):
            return
        use_sign = not unsigned
        narrow = [_narrow(value, signed=use_sign, ranges=self.ranges) for value in op.operands]
        new = type(op).create(operands=[each.results[0] for each in narrow], result_types=[i32])
        back = _cast(new.results[0], wide, signed=use_sign)
        rewriter.replace(op, [*narrow, new, back])


@dataclass
class NarrowCmpi(RewritePattern):
    """cmpi p, x, y : i64, if both fit in 32 bits  =>  cmpi p, trunc(x), trunc(y) : i32"""

    ranges: IntegerRanges

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if not isinstance(op, arith.CmpiOp) or (width_of(op.lhs.type) or 0) <= 32:
            return
        found = [self.ranges.of(value) for value in op.operands]
        predicate = op.predicate.value.data
        signed = all(fits_signed(each) for each in found)
        unsigned = all(fits_unsigned(each) for each in found)
        fits = signed if 2 <= predicate <= 5 else unsigned if predicate >= 6 else signed or unsigned
        if not fits:
            return
        narrow = [_narrow(value, signed=not unsigned, ranges=self.ranges) for value in op.operands]
        new = arith.CmpiOp(narrow[0].results[0], narrow[1].results[0], predicate)
        rewriter.replace(op, [*narrow, new])


@dataclass
class NarrowToFloat(RewritePattern):
    """itofp(x : i64), if x fits in 32 bits with a sign  =>  sitofp(trunc(x) : i32)"""

    ranges: IntegerRanges

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if not isinstance(op, arith.SIToFPOp | arith.UIToFPOp):
            return
        found = self.ranges.of(op.input)
        if (width_of(op.input.type) or 0) <= 32 or not fits_signed(found):
            return
        if isinstance(op, arith.UIToFPOp) and found.smin < 0:
            return
        narrow = _narrow(op.input, signed=True, ranges=self.ranges)
        rewriter.replace(op, [narrow, arith.SIToFPOp(narrow.results[0], op.result.type)])


@dataclass
class NarrowLoop(RewritePattern):
    """for i = a to b step c : index, below 2^31  =>  for j : i32 { i = index_castui j }"""

    ranges: IntegerRanges

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if not isinstance(op, scf.ForOp):
            return
        counter = op.body.block.args[0]
        wide = counter.type
        if not isinstance(wide, IndexType) and wide != IntegerType(64):
            return
        bounds = [self.ranges.of(value) for value in (op.lb, op.ub, op.step)]
        # The last increment may exceed the upper bound and must not wrap either.
        if any(each.smin < 0 for each in bounds) or bounds[1].smax + bounds[2].smax >= 1 << 31:
            return
        if bounds[0].smax >= 1 << 31:
            return
        narrow = [
            _narrow(value, signed=False, ranges=self.ranges) for value in (op.lb, op.ub, op.step)
        ]
        rewriter.insert(narrow, InsertPoint.before(op))
        around = self.ranges.of(counter)
        block = op.body.block
        new = rewriter.insert_block_argument(block, 0, i32)
        back = _cast(new, wide, signed=False)
        rewriter.insert(back, InsertPoint.at_start(block))
        rewriter.replace_all_uses_with(counter, back.results[0])
        rewriter.erase_block_argument(counter)
        self.ranges.note(new, IntRange.signed(32, around.smin, around.smax))
        for position, value in enumerate(narrow):
            op.operands[position] = value.results[0]
        rewriter.notify_op_modified(op)


class NarrowBroadcast(RewritePattern):
    """broadcast(index_cast(x : i32))  =>  index_cast(broadcast(x))"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if not isinstance(op, vector.BroadcastOp):
            return
        source = op.source
        owner = source.owner
        if not isinstance(owner, arith.IndexCastOp | IndexCastUIOp):
            return
        inner = owner.operands[0]
        element = inner.type.element_type if isinstance(inner.type, VectorType) else inner.type
        target = op.vector.type
        if isinstance(element, IndexType) or not isinstance(target, VectorType):
            return
        if not isinstance(target.element_type, IndexType):
            return
        new = vector.BroadcastOp(inner, VectorType(element, target.get_shape()))
        cast = type(owner)(new.results[0], target)
        rewriter.replace(op, [new, cast])


@dataclass
class NarrowAssumption(RewritePattern):
    """assume(index_castui(x : i32)) : index  =>  index_castui(assume(x) : i32)"""

    ranges: IntegerRanges

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if not isinstance(op, AssumeIntOp):
            return
        sources: list[SSAValue] = []
        for value in op.values:
            owner = value.owner
            small = isinstance(owner, IndexCastUIOp) and (width_of(owner.input.type) or 64) <= 32
            sources.append(owner.input if small else value)  # type: ignore[union-attr]
        if sources == list(op.values):
            return
        new = AssumeIntOp(sources, [list(each) for each in op.assumptions])
        made: list[Operation] = [new]
        results: list[SSAValue] = []
        for old, result in zip(op.res, new.res):
            if old.type == result.type:
                results.append(result)
                continue
            cast = IndexCastUIOp(result, old.type)
            made.append(cast)
            results.append(cast.result)
        rewriter.replace(op, made, results)


@dataclass
class FoldCastChain(RewritePattern):
    """index_castui(index_castui(x : i32) : index) : i32  =>  x"""

    ranges: IntegerRanges

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if not isinstance(op, IndexCastUIOp | arith.IndexCastOp | arith.TruncIOp):
            return
        inner = op.operands[0].owner
        chain = (IndexCastUIOp, arith.IndexCastOp, arith.ExtUIOp, arith.ExtSIOp)
        if isinstance(inner, chain) and inner.operands[0].type == op.results[0].type == i32:
            rewriter.replace(op, (), (inner.operands[0],))


def patterns(ranges: IntegerRanges) -> list[RewritePattern]:
    """Returns the patterns that narrow to 32 bits."""
    return [
        FoldCastChain(ranges),
        NarrowElementwise(ranges),
        NarrowCmpi(ranges),
        NarrowLoop(ranges),
        NarrowBroadcast(),
        NarrowAssumption(ranges),
    ]
