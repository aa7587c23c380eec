"""
Splits an arg_compare along the innermost dim into a reduction to the best element and a search.

    %v, %i = iree_linalg_ext.arg_compare dimension(1)
        ins(%x : tensor<4x8xf32>) outs(%best, %where) {ogt}
  =>
    %m = linalg.generic {d1 is reduced} ins(%x) outs(NaN) { maxnumf }
    %j = linalg.generic {d1 is reduced} ins(%x, %m) outs(2^31 - 1) {
    ^bb0(%new: f32, %m: f32, %first: i32):
      minsi(%first, select(%new == %m, linalg.index 1, 2^31 - 1)) }
    %v, %i = linalg.generic ins(%m, %j, %best, %where) {
      ogt(%m, %best) ? (%x[d0, %j], %j) : (%best, %where) }

A reduction that carries an element and its index takes one element at a time: the next comparison
depends on the last one. Along other dims the lanes of a vector are independent rows, so only the
innermost dim is split. Both new reductions vectorize, and run in one kernel, so the second one
reads the row from the cache.

The comparator must be a strict order of the elements: a comparison, or the one that PyTorch uses,
where a NaN beats every number. Then the first element that equals the largest one is the winner. It
is read again at its index, because a maximum does not distinguish zeros of different signs.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    ModuleOp,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.upstream.math import IsNaNOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.common import COMMON
from irees.transforms.utils.combiners import neutral_of
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import constant_value, dims
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import ScalarBuilder, TensorBuilder, rank_of, select_dims

NAME = "irees-split-arg-compares"

INTEGER_EXTREMES: dict[str, type[Operation]] = {
    "sgt": arith.MaxSIOp, "slt": arith.MinSIOp, "ugt": arith.MaxUIOp, "ult": arith.MinUIOp,
}  # fmt: skip
FLOAT_EXTREMES: dict[str, type[Operation]] = {"ogt": arith.MaxnumfOp, "olt": arith.MinnumfOp}
"""Predicate of a comparator => the op that returns the winner of two elements."""

PROPAGATING = {"ogt": arith.MaximumfOp, "olt": arith.MinimumfOp}
"""The same for comparators of floats by which a NaN wins."""


@dataclass(frozen=True)
class Order:
    """A strict order of elements: the predicate by which the better one wins, and NaN's place."""

    predicate: str
    nan_wins: bool = False

    @property
    def extreme(self) -> type[Operation]:
        """The op that returns the better of two elements, or one of them if they are equal."""
        if self.nan_wins:
            return PROPAGATING[self.predicate]
        return (INTEGER_EXTREMES | FLOAT_EXTREMES)[self.predicate]


def order_of(block: Block) -> Order | None:
    """Returns the order of a comparator, or None if it is another function."""
    last = block.last_op
    assert last is not None
    wins = last.operands[0].owner
    if isinstance(wins, arith.OrIOp):
        sides = [wins.lhs.owner, wins.rhs.owner]
        for compared, nan in (sides, sides[::-1]):
            found = _comparison(compared, block)
            if found in PROPAGATING and _only_left_is_nan(nan, block):
                return Order(found, nan_wins=True)
        return None
    found = _comparison(wins, block)
    return None if found is None else Order(found)


def _comparison(op: Operation | Block, block: Block) -> str | None:
    """Returns the predicate of a comparison of the left with the right argument, or None."""
    if not isinstance(op, arith.CmpfOp | arith.CmpiOp) or list(op.operands) != list(block.args):
        return None
    floats = isinstance(op, arith.CmpfOp)
    names = arith.CMPF_COMPARISON_OPERATIONS if floats else arith.CMPI_COMPARISON_OPERATIONS
    predicate = names[op.predicate.value.data]
    # `ugt` of floats is another predicate: a NaN is above and below every number.
    return predicate if predicate in (FLOAT_EXTREMES if floats else INTEGER_EXTREMES) else None


def _only_left_is_nan(op: Operation | Block, block: Block) -> bool:
    """Matches isnan(left) & !isnan(right)."""
    if not isinstance(op, arith.AndIOp):
        return False
    left, right = op.lhs.owner, op.rhs.owner
    if not isinstance(left, IsNaNOp):
        left, right = right, left
    if not isinstance(left, IsNaNOp) or not isinstance(right, arith.XOrIOp):
        return False
    inner = right.lhs.owner
    # An i1 constant is 1 or -1.
    negated = constant_value(right.rhs) in (1, -1) and isinstance(inner, IsNaNOp)
    return negated and [left.operands[0], inner.operands[0]] == list(block.args)


def refusal(op: ext.ArgCompareOp) -> str | None:
    """Returns why an arg_compare along the innermost dim is not split, or None."""
    kind = element_type(op.input_value)
    known = isa(kind, IntegerType | BFloat16Type | Float16Type | Float32Type | Float64Type)
    if op.input_index is not None:
        return "the indices are an input"
    if 0 <= op.input_value.type.get_shape()[-1] < COMMON.least_searched_row:
        return "its rows are short"
    if not known:
        return f"no worst element of {kind}"
    return "the comparator is no known order" if order_of(op.body.block) is None else None


def split(op: ext.ArgCompareOp, order: Order) -> list[SSAValue]:
    """Inserts the two reductions and the choice; returns the value and the index."""
    b = TensorBuilder(op)
    x, kind, rank = op.input_value, element_type(op.input_value), rank_of(op.input_value)
    whole, rest = AffineMap.identity(rank), select_dims(rank, range(rank - 1))
    sizes, length = dims(op.output_value, b), dims(x, b)[-1]
    start = b.fill(b.insert(neutral_of(order.extreme.name, kind)).results[0], sizes)
    (best,) = b.compute([x], [start], [whole, rest], lambda s, v: [s.op(order.extreme, *v)])

    narrow = isinstance(length, int) and length < 1 << 31
    counter = i32 if narrow else i64
    behind = (1 << (31 if narrow else 63)) - 1

    def search(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
        found = _equal(s, v[0], v[1], order)
        at = s.select(found, s.cast(s.index(rank - 1), counter), s.number(behind, counter))
        return [s.op(arith.MinSIOp, v[2], at)]

    beyond = b.filled(behind, counter, sizes)
    (first,) = b.compute([x, best], [beyond], [whole, rest, rest], search)
    return _chosen(op, b, best, first)


def _equal(s: ScalarBuilder, x: SSAValue, best: SSAValue, order: Order) -> SSAValue:
    """Whether an element equals the best one; two NaNs are equal if NaN wins."""
    if not isa(x.type, AnyFloat):
        return s.insert(arith.CmpiOp(x, best, "eq")).results[0]
    equal = s.insert(arith.CmpfOp(x, best, "oeq")).results[0]
    if not order.nan_wins:
        return equal
    return s.op(arith.OrIOp, equal, s.insert(arith.CmpfOp(x, x, "uno")).results[0])


def _chosen(
    op: ext.ArgCompareOp, b: TensorBuilder, best: SSAValue, first: SSAValue
) -> list[SSAValue]:
    """Returns the element and index that were found, or those of the outs where they are better."""
    value, where = op.outputs
    rank = rank_of(value)
    again = isa(element_type(value), AnyFloat) and bool(op.res[0].first_use)

    def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
        found, at, old, place = v
        wins = inline_region(op.body.block, [found, old], s)[0]
        index = s.cast(at, IndexType())
        if again:
            found = s.extract(op.input_value, [*(s.index(d) for d in range(rank)), index])
        base = op.index_base
        number = s.cast(index if base is None else s.value(s.add(index, base)), place.type)
        return [s.select(wins, found, old), s.select(wins, number, place)]

    identity = AffineMap.identity(rank)
    return b.compute([best, first], [value, where], [identity] * 4, body)


@dataclass(frozen=True)
class SplitArgComparesPass(ModulePass):
    """Splits arg_compare along the innermost dim into a reduction and a search."""

    name = "irees-split-arg-compares"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, ext.ArgCompareOp)]:
            kind = inner.input_value.type
            if not isinstance(kind, TensorType):
                continue
            if inner.dimension.value.data != len(kind.get_shape()) - 1:
                continue
            why = refusal(inner)
            if why is not None:
                remark("missed", NAME, inner, f"arg_compare is not split: {why}")
                continue
            if not may_rewrite(NAME, inner, "split of iree_linalg_ext.arg_compare"):
                continue
            order = order_of(inner.body.block)
            assert order is not None
            for old, new in zip(inner.results, split(inner, order), strict=True):
                old.replace_all_uses_with(new)
            inner.detach()
            inner.erase()
