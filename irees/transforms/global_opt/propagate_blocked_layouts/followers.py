"""
Rules per op: the blocked forms of its operands and results, and how to rebuild it on them.

A `Node` is an op that can run on blocked tensors. Loops are blocked like dims: the loop of a
blocked dim becomes an outer and an inner loop, `d = outer * block + inner`. A blocked operand is
indexed by both loops, any other operand by their sum. All indexing maps stay linear.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import I64, DenseArrayBase, TensorType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.blocked_forms import Form, Part, channel_form
from irees.analysis.contractions import is_contraction
from irees.analysis.convolutions import Convolution, convolution, loops_of, window_loops
from irees.dialects.sizes import kept_dims
from irees.targets.cpu import CPU
from irees.transforms.utils.shapes import IndexBuilder, mixed, reassociation, reassociation_attr
from irees.transforms.utils.structured import generic, iterators, maps, static_ranges

PARALLEL = IteratorType.PARALLEL

Rebuild = Callable[[list[SSAValue]], Operation]
"""Rebuilds an op on new operands; an operand with a form is passed in that form."""


@dataclass(frozen=True)
class Node:
    """An op that can run on blocked tensors: the form of each operand and result, or None."""

    op: Operation
    operands: tuple[Form | None, ...]
    results: tuple[Form | None, ...]
    rebuild: Rebuild
    flops: int = 0
    """What a convolution gains from blocks, in flops; 0 for other ops."""

    def sides(self) -> list[tuple[SSAValue, Form]]:
        """Returns the operands and results that have a form, with the form."""
        values = (*self.op.operands, *self.op.results)
        forms = (*self.operands, *self.results)
        return [(v, f) for v, f in zip(values, forms, strict=True) if f is not None]


def cut_loops(op: linalg.GenericOp, blocks: dict[int, int]) -> list[Part]:
    """
    Returns the loops of the blocked op: parallel loops in the order of the result, inner loops
    last, then reduction loops in their original order, which preserves the order of sums.

    Reduction loops of a convolution are sorted: channels, then windows, then inner loops.
    """
    kinds, windows = iterators(op), window_loops(op)
    result = loops_of(maps(op)[len(op.inputs)])
    places = {loop: place for place, loop in enumerate(result)}
    parallel = [d for d, kind in enumerate(kinds) if kind == "parallel"]
    parallel.sort(key=lambda d: places.get(d, len(places)))
    parts = _outer_then_inner(parallel, blocks)
    reduced = [d for d, kind in enumerate(kinds) if kind != "parallel"]
    if is_contraction(op):
        reduced.sort(key=lambda d: d in windows)
        return parts + _outer_then_inner(reduced, blocks)
    for d in reduced:
        parts += _outer_then_inner([d], blocks)
    return parts


def _outer_then_inner(loops: Sequence[int], blocks: Container[int]) -> list[Part]:
    """Returns the outer parts of all loops, then the inner parts of the blocked ones."""
    return [(d, False) for d in loops] + [(d, True) for d in loops if d in blocks]


def rebuild_generic(op: linalg.GenericOp, blocks: dict[int, int], forms: Sequence[Form | None]):
    """generic over loops d  =>  generic over loops outer and inner, d = outer * block + inner"""
    loops = cut_loops(op, blocks)
    at = {part: AffineExpr.dimension(i) for i, part in enumerate(loops)}
    whole = [
        at[d, False] * blocks[d] + at[d, True] if d in blocks else at[d, False]
        for d in range(len(iterators(op)))
    ]

    def indexing(old: AffineMap, form: Form | None) -> AffineMap:
        exprs = [e.replace_dims_and_symbols(whole, []) for e in old.results]
        if form is not None:
            cut, own = dict(form.blocks), loops_of(old)
            exprs = [at[own[d], i] if d in cut else exprs[d] for d, i in form.order]
        return AffineMap(len(loops), 0, tuple(exprs))

    def body() -> Region:
        new = op.body.clone()
        for index in [o for o in new.walk() if isinstance(o, linalg.IndexOp)]:
            b, loop = IndexBuilder(InsertPoint.before(index)), index.dim.value.data
            value = b.insert(linalg.IndexOp(loops.index((loop, False)))).results[0]
            if loop in blocks:
                inner = b.insert(linalg.IndexOp(loops.index((loop, True)))).results[0]
                value = b.value(b.add(b.mul(value, blocks[loop]), inner))
            Rewriter.replace_op(index, [], [value])
        return new

    def rebuild(operands: list[SSAValue]) -> Operation:
        new_maps = [indexing(m, f) for m, f in zip(maps(op), forms, strict=True)]
        kinds = [iterators(op)[d] for d, _ in loops]
        count = len(op.inputs)
        new = generic(operands[:count], operands[count:], new_maps, kinds, body())
        new.attributes.update(op.attributes)
        return new

    return rebuild


def generic_node(
    op: linalg.GenericOp, blocks: dict[int, int], forms: Sequence[Form | None], flops: int = 0
) -> Node:
    """Returns the node of a generic with these loop blocks and operand forms."""
    rebuild = rebuild_generic(op, blocks, forms)
    return Node(op, tuple(forms), tuple(forms[len(op.inputs) :]), rebuild, flops)


def convolution_node(op: linalg.GenericOp, found: Convolution, vector_bytes: int) -> Node | str:
    """conv(image, W)  =>  conv over blocks of channels, or the reason why it stays"""
    indexing = [loops_of(m) for m in maps(op)]
    out = channel_form(op.outputs[0], indexing[-1].index(found.columns), vector_bytes)
    if isinstance(out, str):
        return out
    blocks, forms = {found.columns: out.block}, [None, None, out]
    along = found.columns if found.depth is None else found.depth
    seen = indexing[found.image]
    image: Form | str = "it has no channels"
    if along in seen:
        image = channel_form(op.operands[found.image], seen.index(along), vector_bytes)
    # An image with 3 or 1 channels stays unblocked.
    if isinstance(image, Form):
        if blocks.setdefault(along, image.block) != image.block:
            return "its operands have different block sizes"
        forms[found.image] = image
    elif found.depth is None and along in seen:
        return image
    forms[found.filter] = _filter_form(op, found, blocks)
    flops = 2 * prod(r if r >= 0 else CPU.assumed_dim for r in static_ranges(op))
    if not _gains_all(op, found):
        flops = max(1, int(flops * CPU.blocked_share))
    return generic_node(op, blocks, forms, flops)


def _gains_all(op: linalg.GenericOp, found: Convolution) -> bool:
    """
    Whether a convolution that is not in blocks is slow: each step of K reads another channel, of
    which a window is far from a line. Few output channels have vectors of pixels instead.
    """
    channels = static_ranges(op)[found.columns]
    windows = [loop for loop in window_loops(op) if op.iterator_types.data[loop].data != PARALLEL]
    return found.depth is not None and bool(windows) and not 0 <= channels <= CPU.direct_rows


def _filter_form(op: linalg.GenericOp, found: Convolution, blocks: dict[int, int]) -> Form:
    """Returns the form of a filter: in the order of the loops, output channels innermost."""
    own, last = loops_of(maps(op)[found.filter]), (found.columns, True)
    order = [part for part in cut_loops(op, blocks) if part[0] in own and part != last]
    return Form(
        tuple((d, blocks[loop]) for d, loop in enumerate(own) if loop in blocks),
        tuple((own.index(loop), inner) for loop, inner in [*order, last]),
    )


def follow(op: Operation, value: SSAValue, form: Form, vector_bytes: int) -> Node | str:
    """Returns the node of an op given the form of `value`, or the reason why it cannot follow."""
    match op:
        case linalg.GenericOp():
            return follow_generic(op, value, form, vector_bytes)
        case tensor.InsertSliceOp() | tensor.ExtractSliceOp():
            return follow_slice(op, value, form, vector_bytes)
        case tensor.ExpandShapeOp() | tensor.CollapseShapeOp():
            return follow_reshape(op, value, form)
        case tensor.CastOp():
            return follow_cast(op, form)
        case _:
            return "it does not support blocks"


def follow_generic(
    op: linalg.GenericOp, value: SSAValue, form: Form, vector_bytes: int
) -> Node | str:
    """generic with a loop over channels  =>  generic with an outer and an inner loop"""
    if is_contraction(op):
        found = convolution(op)
        if not isinstance(found, Convolution):
            return found or "it is a matrix product"
        return convolution_node(op, found, vector_bytes)
    values = [*op.operands, *op.res]
    position = values.index(value)
    if position >= len(op.operands):
        position -= len(op.res)
    loop = loops_of(maps(op)[position])[form.channel]
    if loop < 0 or loop in window_loops(op):
        return "it does not iterate over the channels with a plain loop"
    forms: list[Form | None] = []
    for operand, indexing in zip(op.operands, maps(op), strict=True):
        places = [d for d, own in enumerate(loops_of(indexing)) if own == loop]
        if len(places) > 1:
            return "it reads a diagonal"
        other = channel_form(operand, places[0], vector_bytes) if places else None
        if isinstance(other, str):
            return other
        if other is not None and other.block != form.block:
            return "its operands have different block sizes"
        forms.append(other)
    return generic_node(op, {loop: form.block}, forms)


def follow_slice(
    op: tensor.InsertSliceOp | tensor.ExtractSliceOp,
    value: SSAValue,
    form: Form,
    vector_bytes: int,
) -> Node | str:
    """slice of channels [8 * a, 8 * n]  =>  slice of blocks [a, n]"""
    large, small = (
        (op.dest, op.source) if isinstance(op, tensor.InsertSliceOp) else (op.source, op.result)
    )
    assert isinstance(small.type, TensorType)
    sizes = mixed(op.static_sizes.get_values(), op.sizes)
    kept, dim = kept_dims(sizes, small.type.get_shape()), form.channel
    if value is small:
        dim = kept[dim]
    if dim not in kept:
        return "it drops the channel dim"
    outside = channel_form(large, dim, vector_bytes)
    inside = channel_form(small, kept.index(dim), vector_bytes)
    for one in (outside, inside):
        if isinstance(one, str):
            return one
    assert isinstance(outside, Form)
    assert isinstance(inside, Form)
    offset, size, stride = (
        list(a.get_values())[dim] for a in (op.static_offsets, op.static_sizes, op.static_strides)
    )
    block = outside.block
    if inside.block != block or stride != 1 or offset < 0 or offset % block or size % block:
        return "the slice cuts through a block"
    named: dict[str, Attribute] = {
        "static_offsets": _with(op.static_offsets, dim, offset // block, 0),
        "static_sizes": _with(op.static_sizes, dim, size // block, block),
        "static_strides": _with(op.static_strides, dim, 1, 1),
    }
    result = outside if isinstance(op, tensor.InsertSliceOp) else inside
    operands: list[Form | None] = [None] * len(op.operands)
    operands[0] = inside if isinstance(op, tensor.InsertSliceOp) else outside
    if isinstance(op, tensor.InsertSliceOp):
        operands[1] = outside
    return Node(op, tuple(operands), (result,), _with_properties(op, result, named))


def follow_reshape(
    op: tensor.ExpandShapeOp | tensor.CollapseShapeOp, value: SSAValue, form: Form
) -> Node | str:
    """reshape of other dims  =>  the same reshape with the inner channel dim appended"""
    large, small = (
        (op.src, op.result) if isinstance(op, tensor.CollapseShapeOp) else (op.result, op.src)
    )
    assert isinstance(large.type, TensorType)
    assert isinstance(small.type, TensorType)
    groups, shape = reassociation(op), large.type.get_shape()
    whole = form.channel if value is small else _group_of(groups, form.channel)
    long = [d for d in groups[whole] if shape[d] != 1]
    if len(long) != 1:
        return "it reshapes the channel dim"
    outside = Form.of_channel(len(shape), long[0], form.block)
    inside = Form.of_channel(len(groups), whole, form.block)
    named: dict[str, Attribute] = {"reassociation": reassociation_attr([*groups, [len(shape)]])}
    if isinstance(op, tensor.CollapseShapeOp):
        return Node(op, (outside,), (inside,), _with_properties(op, inside, named))
    named["static_output_shape"] = _with(
        op.static_output_shape, long[0], shape[long[0]] // form.block, form.block
    )
    operands = (inside, *[None] * (len(op.operands) - 1))
    return Node(op, operands, (outside,), _with_properties(op, outside, named))


def follow_cast(op: tensor.CastOp, form: Form) -> Node | str:
    """cast(x)  =>  cast(x in blocks)"""
    shapes = [v.type.get_shape() for v in (op.source, op.dest) if isinstance(v.type, TensorType)]
    if len(shapes) != 2 or len({s[form.channel] for s in shapes}) != 1:
        return "it makes the number of channels dynamic"
    return Node(op, (form,), (form,), _with_properties(op, form, {}))


def _group_of(groups: Sequence[Sequence[int]], dim: int) -> int:
    return next(i for i, group in enumerate(groups) if dim in group)


def _with(values: DenseArrayBase[I64], dim: int, value: int, last: int) -> DenseArrayBase[I64]:
    """Returns the numbers with `value` at `dim` and `last` appended."""
    numbers = list(values.get_values())
    return DenseArrayBase.from_list(i64, [*numbers[:dim], value, *numbers[dim + 1 :], last])


def _with_properties(op: Operation, form: Form, named: dict[str, Attribute]) -> Rebuild:
    """Rebuilds the op with properties `named` and a result of the form's type."""

    def rebuild(operands: list[SSAValue]) -> Operation:
        return type(op).create(
            operands=operands,
            result_types=[form.type_of(op.results[0].type)],
            properties={**op.properties, **named},
            attributes=dict(op.attributes),
        )

    return rebuild
