"""
Decomposes gather, map_load and map_store into generics and scatters.

Each op maps an element of one tensor to an index of the other. gather and map_load compute the
index that they read, so they become a `linalg.generic` with a `tensor.extract`. map_store computes
the index that it writes, so it becomes a scatter whose indices a generic computes first.

    %r = iree_linalg_ext.gather dimension_map = [0]
        ins(%x, %i : tensor<8x4xf32>, tensor<3x1xi32>) outs(%o : tensor<3x4xf32>)
  =>
    %r = linalg.generic {(d0, d1) -> (d0, 0), (d0, d1) -> (d0, d1)} ins(%i) outs(%o) {
    ^bb0(%at: i32, %old: f32):
      %row = arith.index_cast %at : i32 to index
      %column = linalg.index 1
      %v = tensor.extract %x[%row, %column]
      linalg.yield %v }

For an out-of-bounds index, gather clamps it, map_load reads the padding, and map_store skips the
element. A map_store into a tensor of rank 0 becomes a reduction that keeps the last element whose
mask is true. The mask of a scatter becomes i1. Ops on memrefs stay. IREE: `DecomposeMapStore`, and
loops for the other ops.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    IndexType,
    IntegerType,
    ModuleOp,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import dims
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import ScalarBuilder, TensorBuilder, rank_of


class DecomposeGather(RewritePattern):
    """gather(x, i)  =>  generic {x[i]}"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.GatherOp, rewriter: PatternRewriter) -> None:
        if not isinstance(op.output.type, TensorType):
            return
        b = TensorBuilder(op)
        rank, batch = rank_of(op.output), op.batch_rank
        named = list(op.dimension_map.get_values())
        lead = tuple(AffineExpr.dimension(d) for d in range(batch))
        inputs, maps = [op.indices] * len(named), []
        for position in range(len(named)):
            last = (AffineExpr.constant(position),) if rank_of(op.indices) > batch else ()
            maps.append(AffineMap(rank, 0, (*lead, *last)))
        if op.mask is not None:
            inputs.append(op.mask)
            maps.append(AffineMap(rank, 0, lead))

        def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
            found = {d: s.cast(v[p], IndexType()) for p, d in enumerate(named)}
            inside = [s.index(d) for d in range(batch, rank)]
            new = s.extract(op.source, [*(found[d] for d in range(len(named))), *inside])
            if op.mask is None:
                return [new]
            return [s.select(truth(v[len(named)], s), new, v[-1])]

        (result,) = b.compute(inputs, [op.output], [*maps, AffineMap.identity(rank)], body)
        rewriter.replace(op, [], [result])


def truth(value: SSAValue, s: ScalarBuilder) -> SSAValue:
    """Whether an integer is not 0."""
    if value.type == IntegerType(1):
        return value
    return s.op(arith.CmpiOp, value, s.number(0, value.type), "ne")  # pyright: ignore


class DecomposeMapLoad(RewritePattern):
    """map_load(x) {i, pad}  =>  generic {x[i] or pad}"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.MapLoadOp, rewriter: PatternRewriter) -> None:
        if not isinstance(op.output.type, TensorType):
            return
        b = TensorBuilder(op)
        rank, sizes = rank_of(op.output), dims(op.source, b)

        def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
            at = [s.index(d) for d in range(rank)]
            *places, padding = inline_region(op.body.block, at, s)
            inside, read = s.inside(places, sizes), s.extract(op.source, places)
            return [read if inside is None else s.select(inside, read, padding)]

        (result,) = b.compute([], [op.output], [AffineMap.identity(rank)], body)
        rewriter.replace(op, [], [result])


class DecomposeMapStore(RewritePattern):
    """map_store(x, o) {i, wanted}  =>  scatter(x, generic {i where wanted, else -1}, o)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.MapStoreOp, rewriter: PatternRewriter) -> None:
        if not isinstance(op.output.type, TensorType):
            return
        b = TensorBuilder(op)
        rank, depth = rank_of(op.input), rank_of(op.output)
        if not depth:
            rewriter.replace(op, [], [last_wanted(op, b)])
            return

        def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
            at = [s.index(d) for d in range(rank)]
            *places, wanted = inline_region(op.body.block, at, s)
            chosen = places[-1]
            for number, place in list(enumerate(places))[-2::-1]:
                this = s.compare(s.index(rank), number, "eq")
                chosen = s.select(this, place, chosen)
            # A scatter skips out-of-bounds indices such as -1.
            return [s.cast(s.select(wanted, chosen, s.number(-1, IndexType())), i64)]

        init = b.empty(i64, [*dims(op.input, b), depth])
        (indices,) = b.compute([], [init], [AffineMap.identity(rank + 1)], body)
        element = element_type(op.output)
        block = Block(arg_types=[element, element])
        block.add_op(ext.YieldOp(block.args[0]))
        properties = {
            "dimension_map": DenseArrayBase.from_list(i64, list(range(depth))),
            "unique_indices": BoolAttr.from_bool(False),
        }
        scatter = ext.ScatterOp.of([op.input, indices], [op.output], properties, block)
        b.insert(scatter)
        rewriter.replace(op, [], scatter.results)


def last_wanted(op: ext.MapStoreOp, b: TensorBuilder) -> SSAValue:
    """map_store(x, o : rank 0) {wanted}  =>  generic {wanted ? x : o}, a reduction in order"""
    rank = rank_of(op.input)

    def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
        at = [s.index(d) for d in range(rank)]
        (wanted,) = inline_region(op.body.block, at, s)
        return [s.select(wanted, v[0], v[1])]

    maps = [AffineMap.identity(rank), AffineMap(rank, 0, ())]
    return b.compute([op.input], [op.output], maps, body)[0]


class DecomposeScatterMask(RewritePattern):
    """scatter(x, i, mask : i8)  =>  scatter(x, i, generic {mask != 0})"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.ScatterOp, rewriter: PatternRewriter) -> None:
        if op.mask is None or not isinstance(op.mask.type, TensorType):
            return
        if element_type(op.mask) == i1:
            return
        b, identity = TensorBuilder(op), AffineMap.identity(rank_of(op.mask))
        init = b.empty(i1, dims(op.mask, b))
        (bits,) = b.compute([op.mask], [init], [identity] * 2, lambda s, v: [truth(v[0], s)])
        index = list(op.operands).index(op.mask)
        op.operands[index] = bits
        rewriter.notify_op_modified(op)


@dataclass(frozen=True)
class DecomposeMovesPass(ModulePass):
    """Decomposes gather, map_load and map_store into generics and scatters."""

    name = "irees-decompose-moves"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [
            DecomposeGather(),
            DecomposeMapLoad(),
            DecomposeMapStore(),
            DecomposeScatterMask(),
        ]
        PatternRewriteWalker(
            GreedyRewritePatternApplier(patterns, dce_enabled=False), apply_recursively=False
        ).rewrite_module(op)
