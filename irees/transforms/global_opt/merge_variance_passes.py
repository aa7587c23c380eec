"""
Finds sums of squares around a mean without the mean, so that one pass over the data is enough.

A variance reads its data twice: for the mean, and for what lies around it. Around any other number
k the sum is larger by what k is off, which the sum around k tells:

    q = sum((x - s / n)^2)   where s = sum(x), both in f64, of n points each
  =>
    p = sum((x - k)^2)   where k is the first of the points
    q = p - (s - n * k)^2 / n

Of floats that is only right where k is near: with k = 0 all digits are lost where the mean is large
beside the deviation. The first point is near. Its own square is one of those summed up, so p is at
most 1 + n times q, and most often 2 times. Sums in f64 of what has 24 bits at most have the bits to
lose: with up to 2^18 points what is left is better than f32. So that is what is asked for, as
torch writes its norms; sums in the type of the data keep two passes.

An infinity makes NaN of q, and equal points have a variance of exactly 0. The sums s and p do not
wait for each other: `irees-fuse-sibling-reductions` makes one loop of them. Torch sums up x in its
own type as well, for the mean: that is s, rounded. After Chan, Golub and LeVeque, "Algorithms for
computing the sample variance" (1983), whose shifted data this is.
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
"""Of one sum: the bound above."""


@dataclass(frozen=True)
class Deviation:
    """sum((x - s / n)^2): the numbers of the operands x and s, and n."""

    data: int
    total: int
    points: float


def summed(op: linalg.GenericOp, kind: Attribute = f64) -> SSAValue | None:
    """The term t of `t + acc` in a type, of an op that only sums up from 0 on, or None."""
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
    """The number of the operand that a value is, cast to f64 from a narrower type, or None."""
    if value is None or not isinstance(value.owner, arith.ExtFOp):
        return None
    source = value.owner.input
    if not isinstance(source, BlockArgument) or source.index >= len(op.inputs):
        return None
    kind = source.type
    narrow = isa(kind, AnyFloat) and isinstance(kind, FixedBitwidthType) and kind.bitwidth <= 32
    return source.index if narrow and source.block is op.body.block else None


def deviation_of(op: linalg.GenericOp) -> Deviation | None:
    """What an op sums up the squares of, or None."""
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
    """Whether s is the sum of the same x in the same loops, and n is how many there are."""
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
    (g, i) -> (g, i)  =>  (g, i) -> (g, 0) and (g) -> (g, 0), where i is reduced; None where a map
    is not plain.
    """
    data, out = (loops_of(m) for m in (maps(op)[found.data], maps(op)[-1]))
    if data is None or out is None:
        return None
    zero = AffineConstantExpr(0)
    there = tuple(AffineDimExpr(x) if x in out else zero for x in data)
    here = tuple(AffineDimExpr(out.index(x)) if x in out else zero for x in data)
    return AffineMap(len(iterators(op)), 0, there), AffineMap(len(out), 0, here)


def loops_of(indexing: AffineMap) -> list[int] | None:
    """The loops that index the dims of an operand, or None where one is not a loop alone."""
    found = [e.position for e in indexing.results if isinstance(e, AffineDimExpr)]
    return found if len(found) == len(indexing.results) else None


def narrow_sums(total: linalg.GenericOp, data: SSAValue) -> list[linalg.GenericOp]:
    """Those after `total` that sum up the same x in its own type."""
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
    """Variances that are summed up in f64 read narrower data once."""

    name = "irees-merge-variance-passes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None or is_strict(op):
            return
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            shift(inner)
