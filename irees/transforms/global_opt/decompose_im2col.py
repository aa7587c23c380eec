"""
Decomposes im2col into a generic over the output matrix that reads the image.

    %r = iree_linalg_ext.im2col strides = [1, 1] dilations = [1, 1] kernel_size = [3, 3]
        offsets = [0, 0, 0] output_sizes = [[2], [32, 32], [3, 3, 640]]
        batch_pos = [0] m_pos = [1, 2] k_pos = [3] ...
        ins(%x : tensor<2x34x34x640xf32>) outs(%o : tensor<2x1024x5760xf32>)
  =>
    %r = linalg.generic outs(%o) {
      %b, %m, %k = linalg.index 0, 1, 2
      %h = (%m / 32) * 1 + (%k / 1920) * 1
      %w = (%m mod 32) * 1 + (%k / 640) mod 3 * 1
      linalg.yield tensor.extract %x[%b, %h, %w, %k mod 640] }

Elements in the padding of the input or output get the pad value. Without a pad value, the op
guarantees in-bounds reads, and code generation clamps the index of the extract anyway. irees itself
does not emit im2col for convolutions: `irees-lower-contractions` packs directly from the image.
IREE: `Im2colOp::decomposeOperation`. Ops on memrefs stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.utils.shapes import Size, dims, mixed
from irees.transforms.utils.tensors import ScalarBuilder, TensorBuilder, rank_of


def digits(number: Size, sizes: Sequence[Size], s: ScalarBuilder) -> list[Size]:
    """Delinearizes an index into one index per size; the first one is not reduced modulo a size."""
    found: list[Size] = []
    for position in range(len(sizes)):
        digit = s.floordiv(number, s.product(sizes[position + 1 :]))
        found.append(s.rem(digit, sizes[position]) if position else digit)
    return found


def groups_of(op: ext.Im2colOp) -> list[list[Size]]:
    """Returns the output sizes of each output dim, in the order batch, M, K."""
    rest = list(op.output_sizes)
    groups: list[list[Size]] = []
    for group in op.static_output_sizes:
        static = list(group.get_values())
        groups.append(mixed(static, rest))
        rest = rest[static.count(DYNAMIC_INDEX) :]
    return groups


def coordinates(op: ext.Im2colOp, at: Sequence[Size], s: ScalarBuilder) -> list[Size]:
    """Returns the indices in the padded image of the output element at `at`."""
    perm = list(op.output_perm.get_values())
    offsets = mixed(op.static_offsets.get_values(), op.offsets)
    found: list[Size] = []
    for canonical, (offset, group) in enumerate(zip(offsets, groups_of(op), strict=True)):
        found += digits(s.add(at[perm.index(canonical)], offset), group, s)
    batch, rows, channels = (list(p.get_values()) for p in (op.batch_pos, op.m_pos, op.k_pos))
    columns = found[len(batch) + len(rows) :]
    order = list(op.input_k_perm.get_values())
    inner = [d for d in range(rank_of(op.input)) if d not in batch]
    column = {d: columns[order.index(i)] for i, d in enumerate(inner)}
    places = dict(zip(batch, found))
    windows = [column[d] for d in inner if d in rows]
    steps = zip(rows, found[len(batch) :], op.strides.get_values(), windows, strict=False)
    for (d, row, stride, window), dilation in zip(steps, op.dilations.get_values(), strict=True):
        places[d] = s.add(s.mul(row, stride), s.mul(window, dilation))
    places |= zip(channels, [column[d] for d in inner if d not in rows], strict=True)
    return [places[d] for d in range(rank_of(op.input))]


class DecomposeIm2col(RewritePattern):
    """im2col(x)  =>  generic {x[m * stride + window * dilation - low, channel], or the padding}"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.Im2colOp, rewriter: PatternRewriter) -> None:
        if not isinstance(op.output.type, TensorType):
            return
        named = rank_of(op.input) + len(op.m_pos)  # the input dims, and a window dim per m_pos
        if sum(len(group) for group in groups_of(op)) != named:
            return
        b, rank = TensorBuilder(op), rank_of(op.output)
        low = mixed(op.static_input_pad_low.get_values(), op.input_pad_low)
        before = mixed(op.static_output_pad_low.get_values(), op.output_pad_low)
        after = mixed(op.static_output_pad_high.get_values(), op.output_pad_high)
        sizes, ends = dims(op.input, b), dims(op.output, b)
        ends = [b.sub(n, m) for n, m in zip(ends, after or [0] * rank, strict=True)]

        def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
            at = [s.index(d) for d in range(rank)]
            places = coordinates(op, at, s)
            places = [s.sub(p, n) for p, n in zip(places, low or [0] * len(sizes), strict=True)]
            read = s.extract(op.input, places)
            if op.pad_value is None:
                return [read]
            conditions = [s.inside(places, sizes)] if places else []
            conditions += [
                s.inside([s.sub(i, n)], [s.sub(m, n)])
                for i, n, m in zip(at, before or [0] * rank, ends, strict=True)
                if before or after
            ]
            inside = s.all([c for c in conditions if c is not None])
            return [read if inside is None else s.select(inside, read, op.pad_value)]

        (result,) = b.compute([], [op.output], [AffineMap.identity(rank)], body)
        rewriter.replace(op, [], [result])


@dataclass(frozen=True)
class DecomposeIm2colPass(ModulePass):
    """Decomposes im2col into a generic that reads the image."""

    name = "irees-decompose-im2col"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(DecomposeIm2col(), apply_recursively=False).rewrite_module(op)
