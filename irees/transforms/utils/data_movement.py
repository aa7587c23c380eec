"""
Replaces data movement of iree_linalg_ext by simpler ops.

Canonicalization patterns of gather, map_load, map_store and im2col. IREE:
`ConvertGatherToExtract`, `ConvertIdentityMapLoadStoreToCopy`, `FoldInputPadIntoIm2col`,
`FoldOutputPadIntoIm2col`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.utils import split_dynamic_index_list
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees import ViewPartsOp
from irees.transforms.utils.shapes import (
    Size,
    constant_value,
    dims,
    mixed,
    reassociation_attr,
    split,
)
from irees.transforms.utils.tensors import TensorBuilder, empty, is_static, rank_of


def leading_group(rank: int, leading: int) -> list[list[int]]:
    """Returns groups of dims: the first `leading` dims, then one group per remaining dim."""
    return [list(range(leading)), *([d] for d in range(leading, rank))]


class GatherOfOneSlice(RewritePattern):
    """gather(x, indices of one slice)  =>  extract_slice x[indices], reshaped"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.GatherOp, rewriter: PatternRewriter, /) -> None:
        kind, source, indices = op.output.type, op.source.type, op.indices.type
        if op.mask is not None or not isinstance(kind, TensorType):
            return
        assert isinstance(source, TensorType)
        assert isinstance(indices, TensorType)
        places, rank = list(op.dimension_map.get_values()), rank_of(op.source)
        depth = len(places)
        batch = rank_of(op.output) - (rank - depth)
        ones = [*indices.get_shape()[:batch], *kind.get_shape()[:batch]]
        if (
            any(size != 1 for size in ones)
            or kind.get_shape()[batch:] != source.get_shape()[depth:]
        ):
            return
        b = TensorBuilder(op)
        zero, coordinates = b.value(0), rank_of(op.indices) - batch
        offsets: list[Size] = [0] * rank
        for number, place in enumerate(places):
            # If only one dim is indexed, the indices may lack the coordinate dim.
            at = [zero] * batch + [b.value(number) if number else zero] * coordinates
            read = tensor.ExtractOp(op.indices, at, indices.get_element_type())
            offsets[place] = b.index(b.insert(read).results[0])
        sizes = [1] * depth + dims(op.source, b)[depth:]
        part = b.extract_slice(op.source, offsets, sizes)
        rewriter.replace(op, [], [reshape_leading(part, kind, sizes, b)])


class FoldViewOfView(RewritePattern):
    """view_parts(view_parts(x))  =>  x"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ViewPartsOp, rewriter: PatternRewriter, /) -> None:
        if isinstance(op.source.owner, ViewPartsOp):
            rewriter.replace(op, [], [op.source.owner.source])


def reshape_leading(
    value: SSAValue, kind: TensorType, sizes: Sequence[Size], b: TensorBuilder
) -> SSAValue:
    """Adds or drops leading unit dims of a tensor, to type `kind`."""
    rank, wanted = rank_of(value), len(kind.get_shape())
    if wanted > rank:
        groups = leading_group(wanted, wanted - rank + 1)
        shape = [*[1] * (wanted - rank), *sizes]
        static, dynamic = split_dynamic_index_list(shape, DYNAMIC_INDEX)
        return b.insert(
            tensor.ExpandShapeOp(value, dynamic, reassociation_attr(groups), static, kind)
        ).results[0]
    if wanted < rank:
        groups = leading_group(rank, rank - wanted + 1) if wanted else []
        return b.insert(
            tensor.CollapseShapeOp(
                operands=[value],
                properties={"reassociation": reassociation_attr(groups)},
                result_types=[kind],
            )
        ).results[0]
    return value


def yields_its_arguments(op: ext.MapLoadOp | ext.MapStoreOp) -> bool:
    """Whether the region of a map_load or map_store yields its indices unchanged."""
    block = op.body.block
    assert block.last_op is not None
    return list(block.last_op.operands[:-1]) == list(block.args)


class IdentityMapLoad(RewritePattern):
    """map_load x into o {i, j}  =>  linalg.copy x into o, if both have the same static type"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.MapLoadOp, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op.output.type, TensorType) or op.source.type != op.output.type:
            return
        if is_static(op.output) and yields_its_arguments(op):
            rewriter.replace(op, linalg.CopyOp([op.source], [op.output], [op.output.type]))


class IdentityMapStore(RewritePattern):
    """
    map_store x into o {i, j, true}  =>  linalg.copy x into o

    If x may be smaller than o, the result is an insert_slice; IREE makes a copy there, too.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.MapStoreOp, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op.output.type, TensorType) or not isinstance(op.input.type, TensorType):
            return
        block = op.body.block
        assert block.last_op is not None
        if not yields_its_arguments(op) or not constant_value(block.last_op.operands[-1]):
            return
        if op.input.type == op.output.type and is_static(op.output):
            rewriter.replace(op, linalg.CopyOp([op.input], [op.output], [op.output.type]))
            return
        b = TensorBuilder(op)
        sizes = dims(op.input, b)
        rewriter.replace(op, [], [b.insert_slice(op.input, op.output, [0] * len(sizes), sizes)])


def padding_constant(op: tensor.PadOp) -> arith.ConstantOp | None:
    """Returns the constant padding value of a tensor.pad, or None."""
    terminator = op.region.block.last_op
    assert terminator is not None
    value = terminator.operands[0].owner
    return value if isinstance(value, arith.ConstantOp) else None


def joint_pad_value(
    op: ext.Im2colOp, pad: tensor.PadOp, rewriter: PatternRewriter
) -> SSAValue | None:
    """Returns the padding value that an im2col and a tensor.pad have in common, or None."""
    new = padding_constant(pad)
    if new is None:
        return None
    if op.pad_value is None:
        inside = new.parent_op() is pad
        return rewriter.insert(new.clone()).results[0] if inside else new.results[0]
    old = op.pad_value.owner
    same = isinstance(old, arith.ConstantOp) and old.value == new.value
    return op.pad_value if same else None


def padded_more(
    op: ext.Im2colOp, side: str, pad: tensor.PadOp, b: TensorBuilder
) -> dict[str, list[Size]]:
    """Returns the input or output padding of an im2col plus that of an adjacent tensor.pad."""
    found: dict[str, list[Size]] = {}
    for end, static, dynamic in (
        ("low", pad.static_low, pad.low),
        ("high", pad.static_high, pad.high),
    ):
        name = f"{side}_pad_{end}"
        added = mixed(static.get_values(), dynamic)
        given = op.properties[f"static_{name}"]
        assert isinstance(given, DenseArrayBase)
        before = mixed(given.get_values(), getattr(op, name))
        found[name] = [b.add(m, n) for m, n in zip(before or [0] * len(added), added, strict=True)]
    return found


LISTS = (
    "kernel_size", "offsets", "output_sizes",
    "input_pad_low", "input_pad_high", "output_pad_low", "output_pad_high",
)  # fmt: skip
"""The operands of im2col that are lists of sizes, in operand order."""


def with_lists(
    op: ext.Im2colOp,
    lists: dict[str, list[Size]],
    pad_value: SSAValue,
    source: SSAValue,
    output: SSAValue,
) -> ext.Im2colOp:
    """Returns a copy of an im2col with another source, output, and some lists replaced."""
    properties = {k: v for k, v in op.properties.items() if k != "operandSegmentSizes"}
    values: dict[str, Sequence[SSAValue]] = {name: getattr(op, name) for name in LISTS}
    for name, sizes in lists.items():
        static, values[name] = split(sizes)
        properties[f"static_{name}"] = DenseArrayBase.from_list(i64, static)
    return ext.Im2colOp.build(
        operands=[source, output, *values.values(), [pad_value]],
        properties=properties,
        attributes=op.attributes,
        result_types=[[output.type]],
    )


class FoldInputPadIntoIm2col(RewritePattern):
    """im2col(pad(x))  =>  im2col(x) with input_pad"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.Im2colOp, rewriter: PatternRewriter, /) -> None:
        pad = op.input.owner
        if not isinstance(pad, tensor.PadOp):
            return
        value = joint_pad_value(op, pad, rewriter)
        if value is None:
            return
        pads = padded_more(op, "input", pad, TensorBuilder(op))
        rewriter.replace(op, with_lists(op, pads, value, pad.source, op.output))


class FoldOutputPadIntoIm2col(RewritePattern):
    """pad(im2col(x) into empty)  =>  im2col(x) into a larger empty, with output_pad"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.Im2colOp, rewriter: PatternRewriter, /) -> None:
        if len(op.results) != 1 or not op.results[0].has_one_use():
            return
        pad = op.results[0].get_user_of_unique_use()
        if not isinstance(pad, tensor.PadOp) or not isinstance(op.output.owner, tensor.EmptyOp):
            return
        value = joint_pad_value(op, pad, rewriter)
        if value is None:
            return
        b = TensorBuilder(pad)
        lists = padded_more(op, "output", pad, b)
        # Output position p holds matrix position offset + p, and low padding shifts p: subtract it
        # from the offset. IREE's `FoldOutputPadIntoIm2col` does not.
        offsets = mixed(op.static_offsets.get_values(), op.offsets)
        for actual, low in enumerate(mixed(pad.static_low.get_values(), pad.low)):
            canonical = op.output_perm.get_values()[actual]
            offsets[canonical] = b.sub(offsets[canonical], low)
        lists["offsets"] = offsets
        assert isinstance(pad.result.type, TensorType)
        init = empty(pad.result.type, dims(pad.result, b), b)
        new = b.insert(with_lists(op, lists, value, op.input, init))
        rewriter.replace(pad, [], new.results)
        rewriter.erase(op)


PATTERNS: dict[str, tuple[RewritePattern, ...]] = {
    ViewPartsOp.name: (FoldViewOfView(),),
    ext.GatherOp.name: (GatherOfOneSlice(),),
    ext.MapLoadOp.name: (IdentityMapLoad(),),
    ext.MapStoreOp.name: (IdentityMapStore(),),
    ext.Im2colOp.name: (FoldInputPadIntoIm2col(), FoldOutputPadIntoIm2col()),
}
