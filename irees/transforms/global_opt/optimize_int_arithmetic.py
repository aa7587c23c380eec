"""
Simplifies integer arithmetic with known ranges and divisors.

    %n = util.assume.int %m<umin = 10, umax = 100, udiv = 16> : index
    %i = arith.index_cast %n : index to i64
    %q = arith.divsi %i, %c16_i64 : i64
    %j = arith.index_cast %q : i64 to index
    %r = arith.remui %n, %c8 : index
    %b = arith.cmpi ult, %n, %c101 : index
  =>
    %n = util.assume.int %m<umin = 10, umax = 100, udiv = 16> : index
    %j = arith.divui %n, %c16 : index
    %r = arith.constant 0 : index
    %b = arith.constant true

Frameworks compute sizes and positions in i64; shapes are of type index. With the analyses
`integer_ranges` and `divisibility` the pass replaces single-valued results by constants, and folds
remainders, minima, maxima, alignments and (x * c) / c that have no effect. It converts signed ops
to unsigned ops if no value is negative: division becomes one instruction, and passes that match
only unsigned ops apply. It removes i64 detours from index computations. The pass does not
assume that overflow is absent: a bound that wraps is unknown, and only power-of-two divisors
survive an overflow.

`narrow-to-i32` computes in 32 bits where all values fit. An index may have 32 bits on some target,
so index ops become unsigned, and i64 ops become index ops, only below 2^32, unless `index-is-i64`.

The pass skips vectors, tensors and `affine` ops; the range analysis handles `affine` ops directly.
IREE: `iree-util-optimize-int-arithmetic`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.traits import HasCanonicalizationPatternsTrait, is_side_effect_free

from irees.analysis.divisibility import IntegerDivisibility
from irees.analysis.integer_ranges import IntegerRanges, IntRange, width_of
from irees.dialects.upstream.scf import ForallOp
from irees.rewrites import may_rewrite
from irees.transforms.utils import int_casts as casts
from irees.transforms.utils import int_narrowing as narrowing
from irees.transforms.utils.greedy import rewrite_greedily

_STRUCTURED = (scf.ForOp, scf.IfOp, scf.ParallelOp, scf.WhileOp, ForallOp, affine.ForOp)


def constant(value: int, type_: Attribute, block: Block, rewriter: PatternRewriter) -> SSAValue:
    """Returns a constant at the start of the enclosing function or body, outside of scf regions."""
    assert isinstance(type_, IntegerType | IndexType)
    while isinstance(parent := block.parent_op(), _STRUCTURED) and parent.parent is not None:
        block = parent.parent
    wanted = IntegerAttr(value, type_)
    for op in block.ops:
        if not isinstance(op, arith.ConstantOp):
            break
        if op.value == wanted:
            return op.result
    return rewriter.insert(arith.ConstantOp(wanted), InsertPoint.at_start(block)).result


@dataclass
class ConstantValues(RewritePattern):
    """x : [c, c]  =>  c"""

    ranges: IntegerRanges

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if isinstance(op, arith.ConstantOp):
            return
        replaced = False
        for result in op.results:
            number = self._number(result)
            if number is not None and op.parent is not None:
                new = constant(number, result.type, op.parent, rewriter)
                rewriter.replace_all_uses_with(result, new)
                replaced = True
        if isinstance(op, scf.ForOp | ForallOp | scf.ParallelOp | affine.ForOp):
            for argument in list(op.regions[0].block.args):
                number = self._number(argument)
                if number is not None:
                    new = constant(number, argument.type, op.regions[0].block, rewriter)
                    rewriter.replace_all_uses_with(argument, new)
        if replaced and is_side_effect_free(op) and not any(r.uses for r in op.results):
            rewriter.erase(op)

    def _number(self, value: SSAValue) -> int | None:
        if not value.uses or width_of(value.type) is None:
            return None
        return self.ranges.of(value).value


@dataclass
class UnchangedValues(RewritePattern):
    """x rem c, min(x, y), max(x, y), align(x, c), (x * c) / c  =>  x"""

    ranges: IntegerRanges
    divisors: IntegerDivisibility

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if len(op.operands) != 2 or len(op.results) != 1:
            return
        if width_of(op.results[0].type) is None or width_of(op.operands[0].type) is None:
            return
        found = self._unchanged(op)
        if found is not None:
            rewriter.replace(op, (), (found,))

    def _extreme(self, op: Operation, x: SSAValue, y: SSAValue) -> SSAValue | None:
        """Returns the operand that is the minimum or maximum for all values, or None."""
        signed, smaller = _EXTREMES[op.name]
        (alow, ahigh), (blow, bhigh) = (
            (r.smin, r.smax) if signed else (r.umin, r.umax) for r in map(self.ranges.of, (x, y))
        )
        if ahigh <= blow:
            return x if smaller else y
        return (y if smaller else x) if bhigh <= alow else None

    def _unchanged(self, op: Operation) -> SSAValue | None:
        x, y = op.operands
        a, b = self.ranges.of(x), self.ranges.of(y)
        if x == y and op.name in _EXTREMES:
            return x
        if op.name == "arith.remui" and a.umax < b.umin:
            return x
        if op.name == "arith.remsi" and not b.smin <= 0 <= b.smax:
            least = min(abs(b.smin), abs(b.smax))
            return x if -least < a.smin and a.smax < least else None
        if op.name in _EXTREMES:
            return self._extreme(op, x, y)
        if op.name == "util.align" and b.umin == b.umax and b.umin.bit_count() == 1:
            return x if self.divisors.of(x).udiv % b.umin == 0 else None
        return self._undone(op, x, b)

    def _undone(self, op: Operation, product: SSAValue, by: IntRange) -> SSAValue | None:
        """Returns x for (x * c) / c if the product does not overflow, else None."""
        if op.name not in ("arith.divui", "arith.divsi", "arith.floordivsi", "arith.ceildivui"):
            return None
        owner = product.owner
        if not isinstance(owner, arith.MuliOp) or by.value is None or by.smin <= 0:
            return None
        x, factor = self.ranges.of(owner.lhs), self.ranges.of(owner.rhs)
        if factor.value != by.value:
            return None
        if op.name.endswith("ui"):
            fits = x.umax * by.smin < 1 << x.width
        else:
            half = 1 << (x.width - 1)
            fits = -half <= x.smin * by.smin and x.smax * by.smin < half
        return owner.lhs if fits else None


_EXTREMES = {
    "arith.minsi": (True, True),
    "arith.maxsi": (True, False),
    "arith.minui": (False, True),
    "arith.maxui": (False, False),
}


@dataclass
class RemainderOfMultiple(RewritePattern):
    """(c k) rem c  =>  0"""

    ranges: IntegerRanges
    divisors: IntegerDivisibility

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if not isinstance(op, arith.RemUIOp | arith.RemSIOp):
            return
        if width_of(op.result.type) is None:
            return
        by, found = self.ranges.of(op.rhs), self.divisors.of(op.lhs)
        signed = isinstance(op, arith.RemSIOp)
        number = by.value if signed else by.umin if by.umin == by.umax else None
        if not number or (found.sdiv if signed else found.udiv) % number:
            return
        assert op.parent is not None
        rewriter.replace(op, (), (constant(0, op.result.type, op.parent, rewriter),))


class EqualOperands(RewritePattern):
    """x - x  =>  0"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if not isinstance(op, arith.SubiOp) or op.lhs != op.rhs:
            return
        if width_of(op.result.type) is not None and op.parent is not None:
            rewriter.replace(op, (), (constant(0, op.result.type, op.parent, rewriter),))


class Canonicalization(RewritePattern):
    """Applies the canonicalization patterns of an arith op."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter):
        if not op.name.startswith("arith."):
            return
        trait = op.get_trait(HasCanonicalizationPatternsTrait)
        if trait is None:
            return
        for pattern in type(trait).get_canonicalization_patterns():
            pattern.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                return


@dataclass(frozen=True)
class OptimizeIntArithmeticPass(ModulePass):
    """Simplifies integer arithmetic with known ranges and divisors."""

    name = "irees-optimize-int-arithmetic"

    narrow_to_i32: bool = False
    index_is_i64: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = IntegerRanges()
        divisors = IntegerDivisibility(ranges)
        patterns: list[RewritePattern] = [
            ConstantValues(ranges),
            UnchangedValues(ranges, divisors),
            RemainderOfMultiple(ranges, divisors),
            EqualOperands(),
            casts.Unsigned(ranges, self.index_is_i64),
            casts.CastOfProducer(ranges, self.index_is_i64),
            casts.CastOfCast(),
            Canonicalization(),
        ]
        if self.narrow_to_i32:
            patterns += narrowing.patterns(ranges)
        rewrite_greedily(self.name, op, patterns)
        erase_dead_arithmetic(op, self.name)


def erase_dead_arithmetic(op: Operation, pass_name: str) -> None:
    """Erases arith ops without uses."""
    for inner in list(op.walk(reverse=True)):
        if inner.name.startswith("arith.") and not any(r.uses for r in inner.results):
            if inner.parent is None or not inner.results:
                continue
            if may_rewrite(pass_name, inner, f"erasure of dead {inner.name}"):
                inner.detach()
                inner.erase()
