"""
Computes a variance in one pass over its data, by sums of squares around an element.

A variance reads its data twice: once for the mean, once for the squared deviations. The squared
deviations from any other number k exceed those from the mean by a term that follows from the sum:

    q = sum((x - s / n)^2)   where s = sum(x), both in f64, of n elements each
  =>
    p = sum((x - k)^2)   where k is the first element
    q = p - (s - n * k)^2 / n

In floating point, k must be close to the mean: with k = 0, cancellation destroys all digits if the
mean is large relative to the deviation. The first element is close enough. Its own squared
deviation is a term of q, so p is at most (1 + n) * q, and typically 2 * q. An f64 sum of data with
at most 24 significant bits has enough spare bits: with up to 2^18 elements the result is more
accurate than f32. So the pass requires f64 sums of narrower data, as in PyTorch's norms. Sums in
the type of the data keep two passes.

An infinity makes q NaN; equal elements have a variance of exactly 0. The sums s and p are
independent, so `irees-fuse-sibling-reductions` fuses them into one loop. PyTorch also sums x in its
own type for the mean; the pass replaces that sum by s, rounded. Source: shifted data in Chan, Golub
and LeVeque, "Algorithms for computing the sample variance" (1983).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FixedBitwidthType, FloatAttr, ModuleOp, f64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from irees.dialects.irees_target import is_strict, target_of
from irees.rewrites import may_rewrite
from irees.transforms.utils.combiners import combiners
from irees.transforms.utils.shapes import dims
from irees.transforms.utils.structured import (
    element_type,
    is_parallel,
    is_zero_fill,
    iterators,
    maps,
    static_ranges,
)
from irees.transforms.utils.tensors import ScalarBuilder, TensorBuilder, rank_of

NAME = "irees-merge-variance-passes"
MOST_POINTS = 1 << 18
"""Maximum elements per sum, so that the result is more accurate than f32 (see above)."""


@dataclass(frozen=True)
class Deviation:
    """sum((x - s / n)^2): the operand indices of x and s, and n."""

    data: int
    total: int
    points: float


def summed(op: linalg.GenericOp, kind: Attribute = f64) -> SSAValue | None:
    """Returns the term t of a plain sum `t + acc` of a type that starts from 0, or None."""
    if is_parallel(op) or len(op.outputs) != 1 or element_type(op.outputs[0]) != kind:
        return None
    fill = op.outputs[0].owner
    if not isinstance(fill, linalg.GenericOp) or not is_zero_fill(fill):
        return None
    fold = next(iter(combiners(op) or ()), None)
    if not isinstance(fold, arith.AddfOp):
        return None
    return next((v for v in fold.operands if v is not op.body.block.args[-1]), None)


def widened_input(op: linalg.GenericOp, value: SSAValue | None) -> int | None:
    """Returns the operand index of x if a value is `extf x` of a narrower float, or None."""
    if value is None or not isinstance(value.owner, arith.ExtFOp):
        return None
    source = value.owner.input
    if not isinstance(source, BlockArgument) or source.index >= len(op.inputs):
        return None
    kind = source.type
    narrow = isa(kind, AnyFloat) and isinstance(kind, FixedBitwidthType) and kind.bitwidth <= 32
    return source.index if narrow and source.block is op.body.block else None


def deviation_of(op: linalg.GenericOp) -> Deviation | None:
    """Matches an op that sums squared deviations; None for any other op."""
    square = summed(op)
    if square is None or not isinstance(square.owner, arith.MulfOp):
        return None
    difference = square.owner.lhs
    if difference is not square.owner.rhs or not isinstance(difference.owner, arith.SubfOp):
        return None
    data, mean = widened_input(op, difference.owner.lhs), difference.owner.rhs.owner
    if data is None or not isinstance(mean, arith.DivfOp):
        return None
    total, points = mean.lhs, mean.rhs.owner
    if not isinstance(total, BlockArgument) or not isinstance(points, arith.ConstantOp):
        return None
    if total.block is not op.body.block or not isinstance(points.value, FloatAttr):
        return None
    return Deviation(data, total.index, points.value.value.data)


def is_around_mean(op: linalg.GenericOp, found: Deviation) -> bool:
    """Whether s is the sum of the same x over the same loops, and n is their trip count."""
    total = op.operands[found.total].owner
    if not isinstance(total, linalg.GenericOp) or iterators(total) != iterators(op):
        return False
    number = widened_input(total, summed(total))
    if number is None or total.operands[number] is not op.operands[found.data]:
        return False
    here, there = maps(op), maps(total)
    if here[found.data] != there[number]:
        return False
    if not here[found.total] == here[-1] == there[-1]:
        return False
    kinds = zip(static_ranges(op), iterators(op), strict=True)
    reduced = [size for size, kind in kinds if kind == "reduction"]
    return min(reduced) > 0 and prod(reduced) == found.points <= MOST_POINTS


def first_points(op: linalg.GenericOp, found: Deviation) -> tuple[AffineMap, AffineMap] | None:
    """
    (g, i) -> (g, i)  =>  (g, i) -> (g, 0) and (g) -> (g, 0), where i is reduced. None if an index
    of a map is not a plain loop.
    """
    data, out = (loops_of(m) for m in (maps(op)[found.data], maps(op)[-1]))
    if data is None or out is None:
        return None
    zero = AffineConstantExpr(0)
    there = tuple(AffineDimExpr(x) if x in out else zero for x in data)
    here = tuple(AffineDimExpr(out.index(x)) if x in out else zero for x in data)
    return AffineMap(len(iterators(op)), 0, there), AffineMap(len(out), 0, here)


def loops_of(indexing: AffineMap) -> list[int] | None:
    """Returns the loop of each dim of an operand; None if some index is not a plain loop."""
    found = [e.position for e in indexing.results if isinstance(e, AffineDimExpr)]
    return found if len(found) == len(indexing.results) else None


def narrow_sums(total: linalg.GenericOp, data: SSAValue) -> list[linalg.GenericOp]:
    """Returns the ops after `total` that sum the same x in its own type."""
    found: list[linalg.GenericOp] = []
    for use in data.uses:
        op = use.operation
        if not isinstance(op, linalg.GenericOp) or op.parent is not total.parent:
            continue
        term, kind = summed(op, element_type(data)), iterators(op)
        plain = term is not None and term is op.body.block.args[use.index]
        if plain and kind == iterators(total) and total.is_before_in_block(op):
            place = next(i for i, x in enumerate(total.operands) if x is data)
            if (maps(op)[use.index], maps(op)[-1]) == (maps(total)[place], maps(total)[-1]):
                found.append(op)
    return found


def shift(op: linalg.GenericOp) -> bool:
    """sum((x - s / n)^2)  =>  sum((x - k)^2) - (s - n k)^2 / n"""
    found = deviation_of(op)
    if found is None or not is_around_mean(op, found):
        return False
    first = first_points(op, found)
    if first is None or not may_rewrite(NAME, op, "a sum of squares around a mean"):
        return False
    at, indexing, init = TensorBuilder(op), maps(op), op.outputs[0]
    data, total = op.operands[found.data], op.operands[found.total]

    def squares(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
        off = s.op(arith.SubfOp, s.cast(v[0], f64), s.cast(v[1], f64))
        return [s.op(arith.AddfOp, s.op(arith.MulfOp, off, off), v[2])]

    def around_mean(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
        points = s.number(found.points, f64)
        off = s.op(arith.SubfOp, v[1], s.op(arith.MulfOp, s.cast(v[2], f64), points))
        return [s.op(arith.SubfOp, v[0], s.op(arith.DivfOp, s.op(arith.MulfOp, off, off), points))]

    here, identity = indexing[found.data], AffineMap.identity(rank_of(init))
    (around_point,) = at.compute([data, data], [init], [here, first[0], indexing[-1]], squares)
    out, inputs = at.empty(f64, dims(init, at)), [around_point, total, data]
    plain = [identity, identity, first[1], identity]
    Rewriter.replace_op(op, [], at.compute(inputs, [out], plain, around_mean))
    assert isinstance(total.owner, linalg.GenericOp)
    for narrow in narrow_sums(total.owner, data):
        if may_rewrite(NAME, narrow, "a sum beside one with more digits"):
            at, kind = TensorBuilder(narrow), element_type(data)
            out = at.empty(kind, dims(total, at))
            value = at.cast_tensor(at.stored(total, out), narrow.results[0].type)
            Rewriter.replace_op(narrow, [], [value])
    return True


@dataclass(frozen=True)
class MergeVariancePassesPass(ModulePass):
    """Computes f64 variances of narrower data in one pass."""

    name = "irees-merge-variance-passes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None or is_strict(op):
            return
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            shift(inner)
