"""Patterns that convert signed to unsigned ops, and fold casts."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from irees.analysis.integer_ranges import IntegerRanges, width_of
from irees.dialects.upstream.arith import IndexCastUIOp

U32_MAX = (1 << 32) - 1

_UNSIGNED: dict[str, type[Operation]] = {
    "arith.ceildivsi": arith.CeilDivUIOp,
    "arith.divsi": arith.DivUIOp,
    "arith.floordivsi": arith.DivUIOp,
    "arith.remsi": arith.RemUIOp,
    "arith.minsi": arith.MinUIOp,
    "arith.maxsi": arith.MaxUIOp,
    "arith.index_cast": IndexCastUIOp,
    "arith.extsi": arith.ExtUIOp,
}


@dataclass
class Unsigned(RewritePattern):
    """f_signed(x, y), x, y, f >= 0  =>  f_unsigned(x, y)"""

    ranges: IntegerRanges
    index_is_i64: bool

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        new = _UNSIGNED.get(op.name)
        if new is None or not all(self._plain(v) for v in (*op.operands, *op.results)):
            return
        rewriter.replace(
            op, new.create(operands=op.operands, result_types=[r.type for r in op.results])
        )

    def _plain(self, value: SSAValue) -> bool:
        if width_of(value.type) is None:
            return False
        found = self.ranges.of(value)
        if isinstance(value.type, IndexType) and not self.index_is_i64 and found.umax > U32_MAX:
            return False
        return found.smin >= 0


_INDEX_PRODUCERS = (
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.DivUIOp,
    arith.CeilDivUIOp,
    arith.RemUIOp,
    arith.MinUIOp,
    arith.MaxUIOp,
)


@dataclass
class CastOfProducer(RewritePattern):
    """index_castui(f(x, y) : i64)  =>  f(index_castui(x), index_castui(y)) : index"""

    ranges: IntegerRanges
    index_is_i64: bool

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if not isinstance(op, IndexCastUIOp) or not isinstance(op.result.type, IndexType):
            return
        source, producer = op.input, op.input.owner
        if source.type != IntegerType(64) or not isinstance(producer, _INDEX_PRODUCERS):
            return
        if not source.has_one_use():
            return
        values = (*producer.operands, *producer.results)
        if not self.index_is_i64 and any(self.ranges.of(v).umax > U32_MAX for v in values):
            return
        casts = [IndexCastUIOp(value, IndexType()) for value in producer.operands]
        new = type(producer).create(
            operands=[cast.results[0] for cast in casts],
            result_types=[IndexType()],
            properties=producer.properties,
        )
        # Insert before the producer: the cast may be in another block.
        rewriter.insert([*casts, new], InsertPoint.before(producer))
        rewriter.replace(op, (), new.results)
        rewriter.erase(producer)


class CastOfCast(RewritePattern):
    """trunci(index_cast(x))  =>  index_castui(x);  index_castui(index_castui(x))  =>  x"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        casts = (arith.IndexCastOp, IndexCastUIOp)
        if not isinstance(op, (*casts, arith.TruncIOp)):
            return
        inner = op.operands[0].owner
        if not isinstance(inner, casts) or width_of(op.results[0].type) is None:
            return
        source, target = inner.operands[0], op.results[0].type
        if isinstance(op, arith.TruncIOp):
            if isinstance(source.type, IndexType):
                rewriter.replace(op, IndexCastUIOp(source, target))
            return
        old, middle = width_of(source.type), width_of(inner.results[0].type)
        assert old is not None
        assert middle is not None
        # An index may have 32 bits on some target: fold only if it holds the integer there.
        lossless = old <= 32 or (isinstance(source.type, IndexType) and middle >= 64)
        if source.type == target and type(op) is type(inner) and lossless:
            rewriter.replace(op, (), (source,))
