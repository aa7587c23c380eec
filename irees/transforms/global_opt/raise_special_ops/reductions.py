"""Matches arg_compare and softmax in generics. Part of `irees-raise-special-ops`."""

from __future__ import annotations

from math import isnan

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, f32, f64, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.storage import is_grouping
from irees.dialects.upstream.linalg.packing import SoftmaxOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.utils.structured import element_type, is_parallel, iterators, maps
from irees.transforms.utils.tensors import TensorBuilder, rank_of, select_dims

NAME = "irees-raise-special-ops"

EXTREMES = {
    "arith.maxsi": ("sgt", "sge"), "arith.minsi": ("slt", "sle"),
    "arith.maxui": ("ugt", "uge"), "arith.minui": ("ult", "ule"),
}  # fmt: skip
"""Max or min op => the predicates that select the same winner; ties may go either way."""


def only_reduced(op: linalg.GenericOp) -> int | None:
    """Returns the only reduction loop of a generic with an identity map at input 0, or None."""
    kinds, indexing = iterators(op), maps(op)
    if kinds.count("reduction") != 1 or len(set(kinds)) > 2 or not op.inputs:
        return None
    loop = kinds.index("reduction")
    if indexing[0] != AffineMap.identity(len(kinds)):
        return None
    return loop


def yielded(op: linalg.GenericOp) -> list[Operation | Block]:
    """Returns the owners of the values that a body yields."""
    assert op.body.block.last_op is not None
    return [value.owner for value in op.body.block.last_op.operands]


def _comparison(op: linalg.GenericOp) -> arith.CmpfOp | arith.CmpiOp | None:
    """Returns the comparison by which a reduction selects the index of an element, or None."""
    loop, rank = only_reduced(op), len(iterators(op))
    if loop is None or len(op.inputs) != 1 or len(op.outputs) != 2 or len(op.res) != 2:
        return None
    rest = select_dims(rank, [d for d in range(rank) if d != loop])
    if maps(op)[1:] != [rest, rest]:
        return None
    x, best, where = op.body.block.args
    index = yielded(op)[1]
    if not isinstance(index, arith.SelectOp) or index.rhs is not where:
        return None
    wins, place = index.cond.owner, index.lhs.owner
    if isinstance(place, arith.IndexCastOp):
        place = place.input.owner
    if not isinstance(place, linalg.IndexOp) or place.dim.value.data != loop:
        return None
    if not isinstance(wins, arith.CmpfOp | arith.CmpiOp) or [wins.lhs, wins.rhs] != [x, best]:
        return None
    return wins


def raise_arg_compare(op: linalg.GenericOp) -> bool:
    """generic {x beats best ? (x, i) : (best, where)}  =>  arg_compare(x)"""
    loop, wins = only_reduced(op), _comparison(op)
    if loop is None or wins is None:
        return False
    x, best, _ = op.body.block.args
    value = yielded(op)[0]
    if not isinstance(value, Operation) or not _takes_the_winner(value, wins, x, best):
        remark("missed", NAME, op, "no arg_compare: for a NaN, value and index disagree")
        return False
    if not may_rewrite(NAME, op, "arg_compare of linalg.generic"):
        return False
    body = Block(arg_types=[x.type, x.type])
    compare = wins.clone({x: body.args[0], best: body.args[1]})
    body.add_ops([compare, ext.YieldOp(compare.results[0])])
    new = ext.ArgCompareOp.of(
        [op.inputs[0]], op.outputs, {"dimension": IntegerAttr(loop, i64)}, Region(body)
    )
    TensorBuilder(op).insert(new)
    _replace(op, new.results)
    remark("passed", NAME, new, "raised a reduction with its index to arg_compare")
    return True


def _takes_the_winner(
    value: Operation, wins: arith.CmpfOp | arith.CmpiOp, x: SSAValue, best: SSAValue
) -> bool:
    if isinstance(value, arith.SelectOp):
        return value.cond.owner is wins and [value.lhs, value.rhs] == [x, best]
    # EXTREMES lacks maximumf: it returns NaN, which wins no comparison.
    if value.name not in EXTREMES or set(value.operands) != {x, best}:
        return False
    predicate = arith.CMPI_COMPARISON_OPERATIONS[wins.predicate.value.data]
    return predicate in EXTREMES[value.name]


def _replace(op: Operation, values: tuple[SSAValue, ...] | list[SSAValue]) -> None:
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()


def plain(value: SSAValue) -> SSAValue:
    """Strips reshapes that only add or drop unit dims."""
    while is_grouping(value.owner):
        if _wide(value.owner.src) != _wide(value):
            return value
        value = value.owner.src
    return value


def _wide(value: SSAValue) -> list[int]:
    assert isinstance(value.type, TensorType)
    return [n for n in value.type.get_shape() if n != 1]


def loops_of_map(indexing: AffineMap) -> list[int] | None:
    """Returns the loops of a map in order, without constant indices; None for other indices."""
    found: list[int] = []
    for expr in indexing.results:
        if isinstance(expr, AffineDimExpr):
            found.append(expr.position)
        elif not isinstance(expr, AffineConstantExpr):
            return None
    return found


def single(op: Operation | Block, kind: type[Operation], inputs: int) -> linalg.GenericOp | None:
    """Returns `op` if it is a one-result generic with a single op of its inputs, in order."""
    if not isinstance(op, linalg.GenericOp) or len(op.inputs) != inputs or len(op.res) != 1:
        return None
    (made,) = yielded(op)
    if not isinstance(made, kind) or len(list(op.body.block.ops)) != 2:
        return None
    return op if list(made.operands) == list(op.body.block.args[: len(made.operands)]) else None


def elementwise(op: Operation | Block, kind: type[Operation], inputs: int):
    """Like `single`, for parallel loops and identity maps of the first input and the output."""
    found = single(op, kind, inputs)
    if found is None or not is_parallel(found):
        return None
    identity = AffineMap.identity(len(iterators(found)))
    return found if maps(found)[0] == identity == maps(found)[-1] else None


def filled_with(value: SSAValue) -> FloatAttr | None:
    """Returns the float that fills a tensor, None if it is unknown."""
    fill = plain(value).owner
    source = fill.inputs[0].owner if isinstance(fill, linalg.FillOp) else None
    if isinstance(fill, linalg.GenericOp) and not fill.inputs:
        source = yielded(fill)[0]
    if not isinstance(source, arith.ConstantOp) or not isinstance(source.value, FloatAttr):
        return None
    return source.value


def reduction(value: SSAValue, kinds: tuple[type[Operation], ...]) -> tuple[SSAValue, int] | None:
    """Matches a reduction from the neutral element; returns its input and the reduced dim."""
    op = plain(value).owner
    if not isinstance(op, linalg.GenericOp) or len(op.inputs) != 1 or len(op.res) != 1:
        return None
    loop = only_reduced(op)
    (made,) = yielded(op)
    if loop is None or not isinstance(made, kinds) or len(list(op.body.block.ops)) != 2:
        return None
    if set(made.operands) != set(op.body.block.args):
        return None
    if loops_of_map(maps(op)[-1]) != [d for d in range(len(iterators(op))) if d != loop]:
        return None
    start = filled_with(op.outputs[0])
    if start is None:
        return None
    return (op.inputs[0], loop) if _is_neutral(start.value.data, made) else None


def _is_neutral(number: float, combiner: Operation) -> bool:
    """Whether a sum or maximum that starts at a number is that of the elements."""
    if isinstance(combiner, arith.AddfOp):
        return number == 0
    return number == float("-inf") or (isinstance(combiner, arith.MaxnumfOp) and isnan(number))


def _softmax(op: linalg.GenericOp) -> tuple[SSAValue, int] | None:
    """Matches exponentials divided by their sum; returns their input and the reduced dim."""
    quotient = elementwise(op, arith.DivfOp, 2)
    if quotient is None or element_type(op.res[0]) not in (f32, f64):
        return None
    powers, total = quotient.inputs
    summed = reduction(total, (arith.AddfOp,))
    if summed is None or summed[0] is not powers:
        return None
    loop, rest = summed[1], [d for d in range(rank_of(powers)) if d != summed[1]]
    exp = elementwise(powers.owner, math.ExpOp, 1)
    difference = elementwise(exp.inputs[0].owner, arith.SubfOp, 2) if exp is not None else None
    if difference is None:
        return None
    x, largest = difference.inputs
    found = reduction(largest, (arith.MaximumfOp, arith.MaxnumfOp))
    if found is None or found[0] is not x or found[1] != loop:
        return None
    if any(loops_of_map(maps(g)[1]) != rest for g in (quotient, difference)):
        return None
    return x, loop


def raise_softmax(op: linalg.GenericOp) -> bool:
    """exp(x - max(x)) / sum(exp(x - max(x)))  =>  softmax(x), of f32 or f64"""
    found = _softmax(op)
    if found is None:
        return False
    x, loop = found
    if x.type != op.res[0].type or not may_rewrite(NAME, op, "softmax of linalg.generics"):
        return False
    new = SoftmaxOp(x, op.outputs[0], loop)
    TensorBuilder(op).insert(new)
    _replace(op, new.results)
    remark("passed", NAME, new, "raised exponentials over their sum to softmax")
    return True
