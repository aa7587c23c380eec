"""
Matches attention: two contractions around a softmax. Part of `irees-raise-special-ops`.

The match runs backwards from the contraction with the values and ignores unit dims. A reshape of
unit dims keeps the number of non-unit ("wide") dims, so wide dim i of the scores is wide dim i of
every value between the contractions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import copysign, frexp

from xdsl.dialects import arith
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, FloatAttr, TensorType, f32, f64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.upstream.linalg.packing import SoftmaxOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.global_opt.raise_special_ops.reductions import NAME, filled_with, plain
from irees.transforms.utils.shapes import dims
from irees.transforms.utils.structured import Structured, element_type, is_parallel, maps
from irees.transforms.utils.tensors import TensorBuilder, constant, select_dims
from irees.transforms.utils.unit_dims import collapse, expand

Loop = tuple[str, int]
"""("score", dim of the scores), ("sum", loop that contraction 1 sums) or ("value", other loop)."""


class Refused(Exception):
    """The reason why a candidate is not an attention."""


def wide(value: SSAValue) -> list[int]:
    """Returns the dims of a tensor that are not of size 1; dynamic dims count as wide."""
    assert isinstance(value.type, TensorType)
    return [i for i, n in enumerate(value.type.get_shape()) if n != 1]


def wide_loops(op: Structured, position: int) -> list[int] | None:
    """Returns the loops of an operand's wide dims; None if an index is not a distinct loop."""
    results = maps(op)[position].results
    found: list[int] = []
    for axis in wide(op.operands[position]):
        expr = results[axis]
        if not isinstance(expr, AffineDimExpr) or expr.position in found:
            return None
        found.append(expr.position)
    return found


@dataclass(frozen=True)
class Product:
    """A contraction of two tensors, with the loops of the wide dims of its operands."""

    op: Structured
    inputs: tuple[list[int], list[int]]
    output: list[int]

    @staticmethod
    def of(op: Operation | Block) -> Product | None:
        """Matches a contraction of floats without casts; None for any other op."""
        if not isinstance(op, Structured) or len(op.operands) != 3 or len(op.results) != 1:
            return None
        body = list(op.body.block.ops)
        if [o.name for o in body] != ["arith.mulf", "arith.addf", "linalg.yield"]:
            return None
        multiply, add, end = body
        lhs, rhs, out = op.body.block.args
        if {*multiply.operands} != {lhs, rhs} or end.operands[0] is not add.results[0]:
            return None
        if {*add.operands} != {multiply.results[0], out}:
            return None
        left, right, output = (wide_loops(op, i) for i in range(3))
        if left is None or right is None or output is None:
            return None
        return Product(op, (left, right), output) if {*output} <= {*left, *right} else None

    @property
    def summed(self) -> list[int]:
        """Summed loops: those that the result lacks, in order."""
        left, right = self.inputs
        return sorted({*left, *right} - {*self.output})


@dataclass(frozen=True)
class Scores:
    """The operand of the softmax: products * scale + mask."""

    product: Product
    scale: SSAValue | FloatAttr | None = None
    mask: tuple[SSAValue, list[int]] | None = None
    """The mask tensor, and the dims of the scores that it has."""


def source(value: SSAValue) -> SSAValue:
    """Strips reshapes of unit dims. Raises Refused if a stripped value has other uses."""
    end = plain(value)
    while len(list(value.uses)) == 1:
        if value is end:
            return value
        value = value.owner.operands[0]  # pyright: ignore
    raise Refused("the scores have other uses")


def read_scores(value: SSAValue, later: Scores) -> Scores:
    """Matches scores backwards from a value; `later` holds the scale and mask applied after it."""
    op = source(value).owner
    product = Product.of(op)
    if product is not None:
        return Scores(starts_at_zero(product), later.scale, later.mask)
    if not isinstance(op, linalg.GenericOp) or len(op.results) != 1 or not is_parallel(op):
        raise Refused("the scores are not a scaled or masked product")
    assert op.body.block.last_op is not None
    return read_scalar(op, op.body.block.last_op.operands[0], later)


def starts_at_zero(product: Product) -> Product:
    """Returns the product. Raises Refused if its sum does not start from +0."""
    start = filled_with(product.op.outputs[0])
    number = 1.0 if start is None else start.value.data
    # From -0, a sum of products that are all -0 would be -0.
    if number != 0 or copysign(1, number) < 0:
        raise Refused("a contraction does not start from 0")
    return product


def read_scalar(op: linalg.GenericOp, value: SSAValue, later: Scores) -> Scores:
    """Like `read_scores`, for a value in the body of an elementwise op."""
    block, made = op.body.block, value.owner
    if made is block:
        assert isinstance(value, BlockArgument)
        if value.index >= len(op.inputs):
            raise Refused("the scores are the init of an op")
        order = wide_loops(op, value.index)
        if order is None or order != wide_loops(op, len(op.inputs)):
            raise Refused("the dims of the scores are permuted")
        return read_scores(op.inputs[value.index], later)
    if isinstance(made, arith.AddfOp) and later.mask is None and later.scale is None:
        return either(op, made, lambda other: Scores(later.product, None, mask_of(op, other)))
    if isinstance(made, arith.MulfOp) and later.scale is None:
        return either(op, made, lambda other: Scores(later.product, factor(op, other), later.mask))
    if isinstance(made, arith.DivfOp) and later.scale is None:
        scale = reciprocal(made.rhs)
        return read_scalar(op, made.lhs, Scores(later.product, scale, later.mask))
    raise Refused("the scores are not a scaled or masked product")


def either(
    op: linalg.GenericOp, made: arith.AddfOp | arith.MulfOp, later: Callable[[SSAValue], Scores]
) -> Scores:
    """Tries each operand as the scores and the other as scale or mask. Raises Refused."""
    why: list[Refused] = []
    for path, other in ((made.lhs, made.rhs), (made.rhs, made.lhs)):
        if path is other:
            raise Refused("the scores are added to themselves")
        try:
            rest = later(other)
        except Refused as refused:
            why.append(refused)
            continue
        try:
            return read_scalar(op, path, rest)
        except Refused as refused:
            # A fault in the scores is more specific than an operand that is no scale or mask.
            why.insert(0, refused)
    raise why[0]


def mask_of(op: linalg.GenericOp, value: SSAValue) -> tuple[SSAValue, list[int]]:
    """Returns the mask tensor of a body argument and its score dims, or raises Refused."""
    output = wide_loops(op, len(op.inputs))
    if isinstance(value, BlockArgument) and value.block is op.body.block and output is not None:
        inputs = op.inputs
        if value.index < len(inputs) and isinstance(inputs[value.index].type, TensorType):
            found = wide_loops(op, value.index)
            if found and {*found} <= {*output}:
                return inputs[value.index], [output.index(d) for d in found]
    raise Refused("the tensor added to the scores is not a mask")


def factor(op: linalg.GenericOp, value: SSAValue) -> SSAValue | FloatAttr:
    """Returns a body value that is the same scalar in all iterations, or raises Refused."""
    if isinstance(value, BlockArgument) and value.block is op.body.block:
        if value.index < len(op.inputs) and not isinstance(op.inputs[value.index].type, TensorType):
            return op.inputs[value.index]
    elif isinstance(value.owner, arith.ConstantOp) and isinstance(value.owner.value, FloatAttr):
        return value.owner.value
    elif not isinstance(value.owner, Operation) or value.owner.parent is not op.body.block:
        return value
    raise Refused("the scores are scaled by a tensor")


def reciprocal(value: SSAValue) -> FloatAttr:
    """Returns the factor 1 / value if multiplication is exact. Raises Refused otherwise."""
    made = value.owner
    if isinstance(made, arith.ConstantOp) and isinstance(made.value, FloatAttr):
        divisor = made.value.value.data
        # A power of two whose inverse is representable, well within the range of the type.
        if abs(frexp(divisor)[0]) == 0.5 and 2.0**-64 < abs(divisor) < 2.0**64:
            return FloatAttr(1 / divisor, made.value.type)
    raise Refused("the divisor of the scores is not a power of two: a product rounds differently")


@dataclass(frozen=True)
class Match:
    """A matched attention, in the layout of the input program."""

    scores: Scores
    operands: tuple[SSAValue, SSAValue, SSAValue]
    """Query, key, value."""
    loops: tuple[list[Loop], list[Loop], list[Loop], list[Loop]]
    """Loops of the wide dims of query, key, value and result."""
    over: int
    """The dim of the scores that the softmax reduces: K2."""

    def numbers(self) -> dict[Loop, int]:
        """Returns loop numbers in IREE's order: batch, M, N, K1, K2."""
        query, key, _, out = self.loops
        rows = sorted(d for d in query if d[0] == "score")
        order = [d for d in rows if d in key] + [d for d in rows if d not in key]
        order += [d for d in out if d[0] == "value"] + sorted(d for d in query if d[0] == "sum")
        return {d: i for i, d in enumerate([*order, ("score", self.over)])}


def read_attention(outer: Product, side: int) -> Match:
    """Matches an attention whose softmax is operand `side` of `outer`. Raises Refused."""
    softmax = source(outer.op.operands[side]).owner
    assert isinstance(softmax, SoftmaxOp)
    if softmax.input.type != softmax.results[0].type:
        raise Refused("the softmax changes the element type")
    dim = softmax.dimension.value.data
    if dim not in wide(softmax.input):
        raise Refused("there is only one key")
    over = wide(softmax.input).index(dim)
    starts_at_zero(outer)
    scores = read_scores(softmax.input, Scores(outer))
    if scores.product.op.parent is not outer.op.parent:
        raise Refused("the scores are computed in another block")
    return arrange(outer, side, scores, over)


def _key_side(operands: Sequence[Sequence[Loop]], keys: Loop) -> int:
    """Returns which operand of the score product the keys are. Raises Refused."""
    side = next((i for i in (0, 1) if keys in operands[i] and keys not in operands[1 - i]), None)
    if side is None:
        raise Refused("both operands of the score product have a key dim")
    key, query = {*operands[side]}, {*operands[1 - side]}
    if not key - {keys} <= query or {d for d in query if d[0] == "sum"} - key:
        raise Refused("the scores are not a product of queries and keys")
    return side


def arrange(outer: Product, side: int, scores: Scores, over: int) -> Match:
    """Assigns the loops of both contractions. Raises Refused if they are not an attention's."""
    inner = scores.product
    weights, values = outer.inputs[side], outer.inputs[1 - side]

    def first(loop: int) -> Loop:
        return ("score", inner.output.index(loop)) if loop in inner.output else ("sum", loop)

    def second(loop: int) -> Loop:
        return ("score", weights.index(loop)) if loop in weights else ("value", loop)

    keys = ("score", over)
    of_inner = [[first(d) for d in loops] for loops in inner.inputs]
    value, out = [second(d) for d in values], [second(d) for d in outer.output]
    at = _key_side(of_inner, keys)
    key, query = of_inner[at], of_inner[1 - at]
    if not inner.summed:
        raise Refused("queries and keys are scalars")
    if [second(d) for d in outer.summed] != [keys] or keys not in value:
        raise Refused("the contraction with the values does not sum over the keys")
    if {d for d in value if d[0] == "score"} - {*key}:
        raise Refused("the values depend on the query")
    operands = (inner.op.operands[1 - at], inner.op.operands[at], outer.op.operands[1 - side])
    return Match(scores, operands, (query, key, value, out), over)


def build(match: Match, old: Structured) -> ext.AttentionOp:
    """Replaces the last contraction by the attention op."""
    b = TensorBuilder(old)
    numbers, kind = match.numbers(), element_type(old.results[0])
    query, key, value, out = match.loops
    tensors = list(match.operands)
    scale = match.scores.scale
    if not isinstance(scale, SSAValue):
        number = 1.0 if scale is None else scale.value.data
        scale = b.insert(constant(number, kind)).results[0]
    loops = [query, key, value, []]
    ins = [*(collapse(t, wide(t), b) for t in tensors), scale]
    if match.scores.mask is not None:
        mask, own = match.scores.mask
        ins.append(collapse(mask, wide(mask), b))
        loops.append([("score", d) for d in own])
    kept = wide(old.outputs[0])
    sizes = dims(old.outputs[0], b)
    init = b.empty(kind, [sizes[i] for i in kept])
    block = Block(arg_types=[kind])
    block.add_op(ext.YieldOp(block.args[0]))
    chosen = [select_dims(len(numbers), [numbers[d] for d in own]) for own in (*loops, out)]
    new = ext.AttentionOp.of(
        ins, [init], {"indexing_maps": ArrayAttr(AffineMapAttr(m) for m in chosen)}, Region(block)
    )
    b.insert(new)
    result = expand(new.results[0], old.results[0].type, kept, b)
    old.results[0].replace_all_uses_with(result)
    old.detach()
    old.erase()
    return new


def raise_attention(op: Operation) -> bool:
    """softmax(q . k * scale + mask) . v  =>  attention(q, k, v, scale, mask), of f32 or f64"""
    outer = Product.of(op)
    if outer is None or element_type(op.results[0]) not in (f32, f64):
        return False
    found = [i for i in (0, 1) if isinstance(plain(op.operands[i]).owner, SoftmaxOp)]
    if not found:
        return False
    try:
        match = read_attention(outer, found[0])
    except Refused as why:
        remark("missed", NAME, op, f"no attention: {why}")
        return False
    if not may_rewrite(NAME, op, "attention of two contractions and a softmax"):
        return False
    new = build(match, outer.op)
    remark("passed", NAME, new, "raised two contractions and a softmax to attention")
    return True
