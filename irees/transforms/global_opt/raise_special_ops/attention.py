"""
The pattern of raise-special-ops that reads two contractions and what lies between: attention.

It is read backwards, from the contraction with the values. Dims of one element are left out:
what is left of a tensor has as many dims before a reshape of such dims as after it, so the i-th
dim of the scores is the i-th dim of every value on the way.
"""

from __future__ import annotations

from collections.abc import Callable
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
"""A dim of the scores, a sum of the first contraction, or a dim of the values only."""


class Refused(Exception):
    """Why something that ends like an attention is none."""


def wide(value: SSAValue) -> list[int]:
    """The dims that are not known to have one element."""
    assert isinstance(value.type, TensorType)
    return [i for i, n in enumerate(value.type.get_shape()) if n != 1]


def wide_loops(op: Structured, position: int) -> list[int] | None:
    """The loops that index the wide dims of an operand, or None where they are not plain."""
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
    """A sum of products of two tensors, and the loops of their wide dims."""

    op: Structured
    inputs: tuple[list[int], list[int]]
    output: list[int]

    @staticmethod
    def of(op: Operation | Block) -> Product | None:
        """The contraction that an op is, if it is one of floats of one type."""
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
        """The loops that the result lacks, in order."""
        left, right = self.inputs
        return sorted({*left, *right} - {*self.output})


@dataclass(frozen=True)
class Scores:
    """What softmax is taken of: products * scale + mask."""

    product: Product
    scale: SSAValue | FloatAttr | None = None
    mask: tuple[SSAValue, list[int]] | None = None
    """The mask, and which dims of the scores it has."""


def source(value: SSAValue) -> SSAValue:
    """What a value is besides dims of one element, if there is no other use of it on the way."""
    end = plain(value)
    while len(list(value.uses)) == 1:
        if value is end:
            return value
        value = value.owner.operands[0]  # pyright: ignore
    raise Refused("the scores have other uses")


def read_scores(value: SSAValue, later: Scores) -> Scores:
    """What a value is scores of, where `later` is what happens to them after it."""
    op = source(value).owner
    product = Product.of(op)
    if product is not None:
        return Scores(starts_at_zero(product), later.scale, later.mask)
    if not isinstance(op, linalg.GenericOp) or len(op.results) != 1 or not is_parallel(op):
        raise Refused("the scores are no products, nor scaled or masked ones")
    assert op.body.block.last_op is not None
    return read_scalar(op, op.body.block.last_op.operands[0], later)


def starts_at_zero(product: Product) -> Product:
    """A product that is added to nothing."""
    start = filled_with(product.op.outputs[0])
    number = 1.0 if start is None else start.value.data
    # The sum of products that are all -0 is -0 when it starts there.
    if number != 0 or copysign(1, number) < 0:
        raise Refused("a contraction starts from something else than 0")
    return product


def read_scalar(op: linalg.GenericOp, value: SSAValue, later: Scores) -> Scores:
    """As `read_scores`, of a value in the body of an elementwise op."""
    block, made = op.body.block, value.owner
    if made is block:
        assert isinstance(value, BlockArgument)
        if value.index >= len(op.inputs):
            raise Refused("the scores are what a result starts from")
        order = wide_loops(op, value.index)
        if order is None or order != wide_loops(op, len(op.inputs)):
            raise Refused("the scores change the order of their dims")
        return read_scores(op.inputs[value.index], later)
    if isinstance(made, arith.AddfOp) and later.mask is None and later.scale is None:
        return either(op, made, lambda other: Scores(later.product, None, mask_of(op, other)))
    if isinstance(made, arith.MulfOp) and later.scale is None:
        return either(op, made, lambda other: Scores(later.product, factor(op, other), later.mask))
    if isinstance(made, arith.DivfOp) and later.scale is None:
        scale = reciprocal(made.rhs)
        return read_scalar(op, made.lhs, Scores(later.product, scale, later.mask))
    raise Refused("the scores are no products, nor scaled or masked ones")


def either(
    op: linalg.GenericOp, made: arith.AddfOp | arith.MulfOp, later: Callable[[SSAValue], Scores]
) -> Scores:
    """Reads on through whichever of two operands scores come by."""
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
            # What is wrong with scores says more than that something else is none.
            why.insert(0, refused)
    raise why[0]


def mask_of(op: linalg.GenericOp, value: SSAValue) -> tuple[SSAValue, list[int]]:
    """The tensor that an argument of a body is an element of, and the dims that it has."""
    output = wide_loops(op, len(op.inputs))
    if isinstance(value, BlockArgument) and value.block is op.body.block and output is not None:
        inputs = op.inputs
        if value.index < len(inputs) and isinstance(inputs[value.index].type, TensorType):
            found = wide_loops(op, value.index)
            if found and {*found} <= {*output}:
                return inputs[value.index], [output.index(d) for d in found]
    raise Refused("what is added to the scores is no mask")


def factor(op: linalg.GenericOp, value: SSAValue) -> SSAValue | FloatAttr:
    """The scalar that a value in a body always is."""
    if isinstance(value, BlockArgument) and value.block is op.body.block:
        if value.index < len(op.inputs) and not isinstance(op.inputs[value.index].type, TensorType):
            return op.inputs[value.index]
    elif isinstance(value.owner, arith.ConstantOp) and isinstance(value.owner.value, FloatAttr):
        return value.owner.value
    elif not isinstance(value.owner, Operation) or value.owner.parent is not op.body.block:
        return value
    raise Refused("the scores are scaled by a tensor")


def reciprocal(value: SSAValue) -> FloatAttr:
    """The factor that gives what a division gives."""
    made = value.owner
    if isinstance(made, arith.ConstantOp) and isinstance(made.value, FloatAttr):
        divisor = made.value.value.data
        # Of a power of two, far from those whose inverse is none of the type.
        if abs(frexp(divisor)[0]) == 0.5 and 2.0**-64 < abs(divisor) < 2.0**64:
            return FloatAttr(1 / divisor, made.value.type)
    raise Refused("the scores are divided by no power of two, which rounds otherwise than a factor")


@dataclass(frozen=True)
class Match:
    """An attention, as it was written."""

    scores: Scores
    operands: tuple[SSAValue, SSAValue, SSAValue]
    """Query, key, value."""
    loops: tuple[list[Loop], list[Loop], list[Loop], list[Loop]]
    """Of query, key, value and result."""
    over: int
    """Which dim of the scores softmax is over: K2."""

    def numbers(self) -> dict[Loop, int]:
        """The loops in IREE's order: batch, M, N, K1, K2."""
        query, key, _, out = self.loops
        rows = sorted(d for d in query if d[0] == "score")
        order = [d for d in rows if d in key] + [d for d in rows if d not in key]
        order += [d for d in out if d[0] == "value"] + sorted(d for d in query if d[0] == "sum")
        return {d: i for i, d in enumerate([*order, ("score", self.over)])}


def read_attention(outer: Product, side: int) -> Match:
    """What a contraction with a softmax is an attention of."""
    softmax = source(outer.op.operands[side]).owner
    assert isinstance(softmax, SoftmaxOp)
    if softmax.input.type != softmax.results[0].type:
        raise Refused("softmax changes the type")
    dim = softmax.dimension.value.data
    if dim not in wide(softmax.input):
        raise Refused("there is one key")
    over = wide(softmax.input).index(dim)
    starts_at_zero(outer)
    scores = read_scores(softmax.input, Scores(outer))
    if scores.product.op.parent is not outer.op.parent:
        raise Refused("the scores are made in another block")
    return arrange(outer, side, scores, over)


def arrange(outer: Product, side: int, scores: Scores, over: int) -> Match:
    """Which loop is which, where it is that of an attention."""
    inner = scores.product
    weights, values = outer.inputs[side], outer.inputs[1 - side]

    def first(loop: int) -> Loop:
        return ("score", inner.output.index(loop)) if loop in inner.output else ("sum", loop)

    def second(loop: int) -> Loop:
        return ("score", weights.index(loop)) if loop in weights else ("value", loop)

    keys = ("score", over)
    of_inner = [[first(d) for d in loops] for loops in inner.inputs]
    value, out = [second(d) for d in values], [second(d) for d in outer.output]
    at = next((i for i in (0, 1) if keys in of_inner[i] and keys not in of_inner[1 - i]), None)
    if at is None:
        raise Refused("both factors of the scores have keys")
    key, query = of_inner[at], of_inner[1 - at]
    if not {*key} - {keys} <= {*query} or {d for d in query if d[0] == "sum"} - {*key}:
        raise Refused("the scores are no product of queries and keys")
    if not inner.summed:
        raise Refused("queries and keys are numbers")
    if [second(d) for d in outer.summed] != [keys] or keys not in value:
        raise Refused("the contraction with the values is not over the keys")
    if {d for d in value if d[0] == "score"} - {*key}:
        raise Refused("the values depend on the query")
    operands = (inner.op.operands[1 - at], inner.op.operands[at], outer.op.operands[1 - side])
    return Match(scores, operands, (query, key, value, out), over)


def untransposed(value: SSAValue, loops: list[Loop]) -> tuple[SSAValue, list[Loop]]:
    """The tensor that a value is a transposition of, and the loops of its wide dims."""
    op = value.owner
    if not isinstance(op, Structured) or len(op.operands) != 2 or not is_parallel(op):
        return value, loops
    (*_, end), args = op.body.block.ops, op.body.block.args
    before, after = wide_loops(op, 0), wide_loops(op, 1)
    if end.operands[0] is not args[0] or before is None or after is None:
        return value, loops
    if sorted(before) != sorted(after):
        return value, loops
    return op.operands[0], [loops[after.index(d)] for d in before]


def build(match: Match, old: Structured) -> ext.AttentionOp:
    """Puts the attention in the place of its last contraction."""
    b = TensorBuilder(old)
    numbers, kind = match.numbers(), element_type(old.results[0])
    query, key, value, out = match.loops
    key_tensor, key = untransposed(match.operands[1], key)
    tensors = [match.operands[0], key_tensor, match.operands[2]]
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
    remark("passed", NAME, new, "two contractions and the softmax between are an attention")
    return True
