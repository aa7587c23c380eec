"""
Tiles online attention along its keys, one block per iteration.

    %x:3 = iree_linalg_ext.online_attention ins(%q, %k, %v, %scale, %mask) outs(%o, %m, %s)
  =>
    %x:3 = scf.for %i = 0 to K2 step 256 iter_args(%acc = %o, %max = %m, %sum = %s) {
      %kb = tensor.extract_slice %k[%i, 0] [min(256, K2 - %i), K1] [1, 1]
      %y:3 = iree_linalg_ext.online_attention ins(%q, %kb, %vb, %scale, %maskb)
                 outs(%acc, %max, %sum)
      scf.yield %y#0, %y#1, %y#2 }

`irees-decompose-attention` then creates 256 scores per query, and no tensor has the size of all
scores. Key indices in the region are offset by the start of the block. The pass runs after
`irees-convert-attention-to-online-attention`. It skips memrefs, keys that fit in a single block,
and keys along two dims. The pipeline does not run it: it saves memory but no time, since the steps
of a block become separate kernels. IREE: tiling of `online_attention` by its `reduction` tile
sizes (`OnlineAttentionOp::getTiledImplementation`). After Dao et al., "FlashAttention" (2022).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, ModuleOp, TensorType
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from irees.dialects import iree_linalg_ext as ext
from irees.remarks import remark
from irees.targets.cpu import CPU
from irees.transforms.utils.attention import Scores, dims_of, scores_of
from irees.transforms.utils.shapes import Size, dims
from irees.transforms.utils.tensors import TensorBuilder


def missed(op: ext.OnlineAttentionOp, scores: Scores | None, keys: int) -> str | None:
    """Returns why an op is not tiled, or None."""
    if scores is None or not all(isinstance(o.type, TensorType) for o in op.outputs):
        return "its operands are not float tensors"
    if len(scores.over) != 1:
        return "there is more than one key dim"
    position = dims_of(op.indexing_maps.data[1].data).index(scores.over[0])
    assert isinstance(op.key.type, TensorType)
    if 0 <= op.key.type.get_shape()[position] <= keys:
        return f"there are at most {keys} keys"
    return None


def block_of(
    value: SSAValue, loops: list[int], keys: int, begin: SSAValue, size: Size, b: TensorBuilder
) -> SSAValue:
    """Returns the slice of an operand for a block of keys."""
    if keys not in loops:
        return value
    sizes = dims(value, b)
    sizes[loops.index(keys)] = size
    offsets = [begin if loop == keys else 0 for loop in loops]
    return b.extract_slice(value, offsets, sizes)


def shift_keys(region: Region, position: int, begin: SSAValue) -> None:
    """Adds the start of the block to all key indices in a region."""
    for index in [o for o in region.walk() if isinstance(o, ext.IndexOp)]:
        if index.dim.value.data != position:
            continue
        shifted = arith.AddiOp(index.results[0], begin)
        assert index.parent is not None
        index.parent.insert_op_after(shifted, index)
        index.results[0].replace_uses_with_if(
            shifted.results[0], lambda use, own=shifted: use.operation is not own
        )


@dataclass
class TileOnlineAttention(RewritePattern):
    """online_attention(q, k, v, o, m, s)  =>  for each block: online_attention(q, kb, vb, ...)"""

    keys: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.OnlineAttentionOp, rewriter: PatternRewriter) -> None:
        scores = scores_of(op)
        why = missed(op, scores, self.keys)
        if scores is None or why is not None:
            remark("missed", TileAttentionReductionPass.name, op, f"not tiled: {why}")
            return
        (loop,) = scores.over
        b = TensorBuilder(op)
        total = scores.size(loop, b)
        lower, upper, step = b.value(0), b.value(total), b.value(self.keys)
        block = Block(arg_types=[IndexType(), *(o.type for o in op.outputs)])
        begin, *carried = block.args
        each = scf.ForOp(lower, upper, step, list(op.outputs), Region(block))
        b.insert(each)
        b.point = InsertPoint.at_end(block)
        size: Size = self.keys
        if not isinstance(total, int) or total % self.keys:
            size = b.minimum(self.keys, b.sub(total, begin))
        loops = [dims_of(m.data) for m in op.indexing_maps]
        inputs = [
            v if v is op.scale else block_of(v, own, loop, begin, size, b)
            for v, own in zip(op.inputs, loops, strict=False)
        ]
        new = ext.OnlineAttentionOp.of(inputs, carried, op.properties, op.body.clone())
        shift_keys(new.body, scores.places(scores.over)[0], begin)
        b.insert(new)
        b.insert(scf.YieldOp(*new.results))
        remark("passed", TileAttentionReductionPass.name, op, f"blocks of {self.keys} keys")
        rewriter.replace(op, [], each.results)


@dataclass(frozen=True)
class TileAttentionReductionPass(ModulePass):
    """Tiles online attention to a loop over blocks of keys."""

    name = "irees-tile-attention-reduction"

    keys: int = CPU.attention_keys
    """Keys per block."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pattern = TileOnlineAttention(self.keys)
        PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)
