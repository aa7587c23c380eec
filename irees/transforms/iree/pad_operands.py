"""
Pads operands so that trip counts are multiples of those in the lowering config.

A kernel whose tiles are all full needs no epilogues and has static shapes: a dim with an upper
bound of 100 is padded to the smallest multiple that is at least 100.

    #config = #iree_gpu.lowering_config<{padding = [3, 7, 11]}>
    %r = linalg.matmul {lowering_config = #config} ins(%a, %b : tensor<32x1024xf32>, ...) outs(%o)
  =>
    %x = tensor.pad %a low[0, 0] high[1, 10] { +0 } : tensor<32x1024xf32> to tensor<33x1034xf32>
    %y = tensor.pad %b low[0, 0] high[10, 5] { -0 }
    %z = tensor.pad %o low[0, 0] high[1, 5]
    %p = linalg.matmul {lowering_config = #config} ins(%x, %y) outs(%z)
    %r = tensor.extract_slice %p[0, 0] [32, 128] [1, 1]

Results of parallel loops in the padding are sliced off. Padding of a reduction must not change the
result. Operands of a product are padded with zeros of opposite sign, whose product -0 changes no
sum. An operand that is combined directly is padded with the neutral element of the combiner. Any
other body keeps its accumulator in the padding (`arith.select` before the yield). Padding all
operands with zeros, as upstream does, is correct only for products (iree-org/iree#21581).

Padding is an optimization, so an op that cannot be padded is left unchanged, with a remark: a dim
without an upper bound, an operand indexed by a sum of padded loops, or a body that may trap on
padding. A multiple of 0 or less counts as 1 (0 means "not tiled" in a config; IREE divided by it,
iree-org/iree#20581). IREE: `iree-codegen-gpu-pad-operands`, which fails the compilation if a dim
has no upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from irees.analysis.contractions import multiply_add
from irees.analysis.value_bounds import ValueBounds
from irees.dialects.storage import is_undefined
from irees.remarks import remark
from irees.transforms.utils.combiners import COMBINERS, neutral_element
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.shapes import IndexBuilder, Size, dims, static_shape
from irees.transforms.utils.structured import (
    Structured,
    element_type,
    iterators,
    loop_sources,
    maps,
    static_ranges,
)
from irees.transforms.utils.tensors import ScalarBuilder, TensorBuilder, constant

NAME = "irees-pad-operands"

LARGEST = 1 << 31
"""Upper bounds above this value only reflect the index type, not the dim."""

MAY_TRAP = frozenset(
    """
    arith.divsi arith.divui arith.floordivsi arith.ceildivsi arith.ceildivui arith.remsi
    arith.remui tensor.extract
    """.split()
)
"""Side-effect-free ops that are undefined for some operands."""


def padding_of(op: Structured) -> tuple[int, ...] | None:
    """Returns the multiple for each loop's trip count, or None without such a config."""
    config = op.attributes.get("lowering_config")
    entries = getattr(config, "entries", None)
    if not isinstance(entries, DictionaryAttr):
        return None
    padding = entries.data.get("padding")
    if not isinstance(padding, ArrayAttr):
        return None
    given = [n.value.data for n in padding if isinstance(n, IntegerAttr)]
    given += [1] * (len(iterators(op)) - len(given))
    return tuple(max(n, 1) for n in given)


@dataclass(frozen=True)
class Padding:
    """The padded trip count of each padded loop (`ends`), and which of these are reductions."""

    ends: dict[int, int]
    reduced: tuple[int, ...]

    def shape(self, value: SSAValue, indexing: AffineMap) -> list[int]:
        """Returns the padded shape of an operand."""
        assert isinstance(value.type, TensorType)
        found = list(value.type.get_shape())
        for axis, expr in enumerate(indexing.results):
            if isinstance(expr, AffineDimExpr) and expr.position in self.ends:
                found[axis] = self.ends[expr.position]
        return found


def plan(op: Structured, padding: Sequence[int]) -> Padding | str:
    """Returns the loops to pad, or why there are none."""
    ends: dict[int, int] = {}
    for loop, (size, multiple) in enumerate(zip(static_ranges(op), padding, strict=True)):
        if multiple == 1:
            continue
        bound = size if size != DYNAMIC_INDEX else upper_bound(op, loop)
        if isinstance(bound, str):
            return bound
        if size == DYNAMIC_INDEX or size % multiple:
            ends[loop] = -(-bound // multiple) * multiple
    if not ends:
        return "all loops are multiples already"
    if (reason := why_not(op, set(ends))) is not None:
        return reason
    kinds = iterators(op)
    reduced = tuple(loop for loop in ends if kinds[loop] != "parallel")
    if reduced and not isinstance(op, linalg.GenericOp) and _pad_values(op, reduced) is None:
        return "it is a named op; run irees-generalize-linalg-named-ops first"
    return Padding(ends, reduced)


def upper_bound(op: Structured, loop: int) -> int | str:
    """Returns an upper bound of a dynamic trip count, or why there is none."""
    source = loop_sources(op)[loop]
    if source is None:
        return f"loop {loop} has no operand that defines its trip count"
    bound = ValueBounds().constant_bounds(op.operands[source[0]], source[1])[1]
    if bound is None or bound > LARGEST:
        return f"loop {loop} has no known upper bound"
    return bound


def why_not(op: Structured, padded: set[int]) -> str | None:
    """Returns why an op cannot run more iterations of the padded loops, or None."""
    for position, indexing in enumerate(maps(op)):
        for expr in indexing.results:
            if not isinstance(expr, AffineDimExpr) and expr.used_dims() & padded:
                return f"operand {position} is indexed by {expr}"
    trapping = [o.name for o in op.body.walk() if o.name in MAY_TRAP]
    if trapping:
        return f"{trapping[0]} may not be computed in the padding"
    if not all(is_side_effect_free(o) or isinstance(o, linalg.YieldOp) for o in op.body.block.ops):
        return "its body has side effects"
    return None


def _pad_values(op: Structured, reduced: Sequence[int]) -> dict[int, Attribute] | None:
    """Returns padding values of inputs that do not change the reduction, or None."""
    plain = [{e.position for e in m.results if isinstance(e, AffineDimExpr)} for m in maps(op)]
    covered = {position for position, loops in enumerate(plain) if loops >= set(reduced)}
    product = multiply_add(op)  # pyright: ignore[reportArgumentType]
    if product is None or not covered >= {product.lhs, product.rhs}:
        return _neutral_elements(op, covered)
    if product.lhs == product.rhs:
        return None
    return {
        product.lhs: constant(0.0, element_type(op.operands[product.lhs])).value,
        product.rhs: constant(-0.0, element_type(op.operands[product.rhs])).value,
    }


def _neutral_elements(op: Structured, covered: set[int]) -> dict[int, Attribute] | None:
    """Returns the neutral element of each `covered` input, None if others are combined, too."""
    found: dict[int, Attribute] = {}
    block = op.body.block
    assert block.last_op is not None
    for number, value in enumerate(block.last_op.operands):
        combiner, accumulator = value.owner, block.args[len(op.inputs) + number]
        if not isinstance(combiner, Operation) or combiner.name not in COMBINERS:
            return None
        rest = [o for o in combiner.operands if o is not accumulator]
        if len(rest) != 1 or not accumulator.has_one_use() or not rest[0].has_one_use():
            return None
        argument = next((a for a in block.args[: len(op.inputs)] if a is rest[0]), None)
        if argument is None or argument.index not in covered:
            return None
        found[argument.index] = neutral_element(combiner).value
    return found


def pad(value: SSAValue, shape: Sequence[int], number: Attribute, b: TensorBuilder) -> SSAValue:
    """Pads a value to a shape; fills and empty tensors are created in that shape instead."""
    kind = value.type
    assert isinstance(kind, TensorType)
    if list(kind.get_shape()) == list(shape):
        return value
    sizes = dims(value, b)
    wanted: list[Size] = [s if n < 0 else n for s, n in zip(sizes, shape, strict=True)]
    owner = value.owner
    if is_undefined(owner):
        return b.empty(kind.get_element_type(), wanted)
    if isinstance(owner, linalg.FillOp):
        return b.fill(owner.inputs[0], wanted)
    high = [b.sub(w, s) for w, s in zip(wanted, sizes, strict=True)]
    block = Block(arg_types=[IndexType()] * len(shape))
    body = ScalarBuilder(block)
    body.insert(tensor.YieldOp(body.insert(arith.ConstantOp(number)).results[0]))
    static = static_shape(high)
    return b.insert(
        tensor.PadOp(
            value,
            [],
            [n for n in high if isinstance(n, SSAValue)],
            Region(block),
            [0] * len(shape),
            static,
            TensorType(kind.get_element_type(), shape),
        )
    ).results[0]


def keep_accumulators(op: linalg.GenericOp, sizes: dict[int, Size]) -> None:
    """yield f(acc)  =>  yield inside ? f(acc) : acc; inside: all loops are below `sizes`"""
    block = op.body.block
    terminator = block.last_op
    assert terminator is not None
    b = ScalarBuilder(block)
    b.point = InsertPoint.before(terminator)
    inside = b.inside([b.index(loop) for loop in sizes], list(sizes.values()))
    assert inside is not None
    accumulators = block.args[len(op.inputs) :]
    kept = [
        b.select(inside, new, old)
        for new, old in zip(terminator.operands, accumulators, strict=True)
    ]
    Rewriter.replace_op(terminator, linalg.YieldOp(*kept))


def pad_operands(op: Structured, padding: Padding) -> Structured:
    """op(x)  =>  extract_slice(op(pad(x)))"""
    b = TensorBuilder(op)
    values = _pad_values(op, padding.reduced) if padding.reduced else {}
    sources = loop_sources(op)
    sizes: dict[int, Size] = {}
    for loop in padding.reduced:
        operand, axis = sources[loop] or (0, 0)
        sizes[loop] = dims(op.operands[operand], b)[axis]
    operands: list[SSAValue] = []
    for position, (value, each) in enumerate(zip(op.operands, maps(op), strict=True)):
        if not isinstance(value.type, TensorType):
            operands.append(value)
            continue
        zero = constant(0, element_type(value)).value
        number = (values or {}).get(position, zero)
        operands.append(pad(value, padding.shape(value, each), number, b))
    outputs = operands[len(op.inputs) :]
    new = b.insert(same_op(op, operands, [o.type for o in outputs]))
    if values is None:
        assert isinstance(new, linalg.GenericOp)
        keep_accumulators(new, sizes)
    results = [_cut(r, o, b) for r, o in zip(new.results, op.outputs, strict=True)]
    Rewriter.replace_op(op, [], results)
    return new


def _cut(value: SSAValue, like: SSAValue, b: IndexBuilder) -> SSAValue:
    """Returns the leading slice of a tensor, in the shape of another."""
    if value.type == like.type:
        return value
    assert isinstance(like.type, TensorType)
    sizes = [s if n < 0 else n for s, n in zip(dims(like, b), like.type.get_shape(), strict=True)]
    rank = len(sizes)
    return b.insert(tensor.ExtractSliceOp(value, [0] * rank, sizes, [1] * rank, like.type)).results[
        0
    ]


@dataclass(frozen=True)
class PadOperandsPass(ModulePass):
    """Pads ops with a `padding` config to multiples of it."""

    name = "irees-pad-operands"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, Structured) and o.results]:
            padding = padding_of(inner)
            if padding is None:
                continue
            found = plan(inner, padding)
            if isinstance(found, str):
                remark("missed", NAME, inner, f"not padded: {found}")
                continue
            remark("passed", NAME, pad_operands(inner, found), f"padded to {found.ends}")
