"""
Decomposes `linalg.pack` and `linalg.unpack` into generics over the elements that they write.

Tiles of static size become an indexing map, which fusion, tiling and vectorization handle. If the
source is not a whole number of tiles, the pass pads it first.

    %r = linalg.pack %x padding_value(%v) inner_dims_pos = [0] inner_tiles = [4] into %o
        : tensor<7xf32> -> tensor<2x4xf32>
  =>
    %p = tensor.insert_slice %x into %filled[0] [7] [1] : tensor<7xf32> into tensor<8xf32>
    %r = linalg.generic {(d0, d1) -> (d0 * 4 + d1), (d0, d1) -> (d0, d1)} ins(%p) outs(%o)

    %r = linalg.unpack %x inner_dims_pos = [0] inner_tiles = [4] into %o
        : tensor<2x4xf32> -> tensor<7xf32>
  =>
    %r = linalg.generic {(d0) -> (d0 floordiv 4, d0 mod 4), (d0) -> (d0)} ins(%x) outs(%o)

With a dynamic tile size, or for an unpack of dynamic shapes, which might read out of bounds, the
body computes the index and extracts the element. Ops on memrefs stay. MLIR:
`DecomposeOuterUnitDimsPackOpPattern` and `lowerPack`, which emit a pad, a reshape and a transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from irees.dialects.upstream.linalg.packing import PackOp, UnPackOp
from irees.transforms.utils.shapes import Size, dims
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import (
    ScalarBuilder,
    TensorBuilder,
    is_static,
    rank_of,
    select_dims,
)


@dataclass
class Tiles:
    """The tiling of a tensor: order of the outer dims, tile sizes and tiled dims."""

    order: list[int]
    sizes: dict[int, Size]
    positions: list[int]

    @staticmethod
    def of(op: PackOp | UnPackOp, rank: int) -> Tiles:
        """Returns the tiling of a pack or unpack of a tensor of rank `rank`."""
        positions = list(op.inner_dims_pos.get_values())
        order = list(op.outer_dims_perm.get_values()) or list(range(rank))
        return Tiles(order, dict(zip(positions, op.inner_tiles_list, strict=True)), positions)

    @property
    def rank(self) -> int:
        """Rank of the packed form."""
        return len(self.order) + len(self.positions)

    @property
    def static(self) -> bool:
        """Whether all tile sizes are static."""
        return all(isinstance(size, int) for size in self.sizes.values())

    def outer(self, dim: int) -> int:
        """Returns the dim of the packed form that indexes the tiles of `dim`."""
        return self.order.index(dim)

    def inner(self, dim: int) -> int:
        """Returns the dim of the packed form that indexes within the tiles of `dim`."""
        return len(self.order) + self.positions.index(dim)

    def pack_map(self) -> AffineMap:
        """Returns the map from packed indices to tensor indices."""
        exprs = []
        for dim in range(len(self.order)):
            expr = AffineExpr.dimension(self.outer(dim))
            if isinstance(size := self.sizes.get(dim), int):
                expr = expr * size + AffineExpr.dimension(self.inner(dim))
            exprs.append(expr)
        return AffineMap(self.rank, 0, tuple(exprs))

    def unpack_map(self) -> AffineMap:
        """Returns the map from tensor indices to packed indices."""
        exprs: list[AffineExpr] = []
        for dim in self.order:
            size, expr = self.sizes.get(dim, 1), AffineExpr.dimension(dim)
            assert isinstance(size, int)
            exprs.append(expr if size == 1 else expr // size)
        for dim in self.positions:
            size = self.sizes[dim]
            assert isinstance(size, int)
            exprs.append(AffineExpr.dimension(dim) % size)
        return AffineMap(len(self.order), 0, tuple(exprs))


class DecomposePack(RewritePattern):
    """pack(x)  =>  generic {x[outer * tile + inner], or the padding}"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PackOp, rewriter: PatternRewriter) -> None:
        if not isinstance(op.dest.type, TensorType):
            return
        b, tiles = TensorBuilder(op), Tiles.of(op, rank_of(op.source))
        identity = AffineMap.identity(tiles.rank)
        if tiles.static:
            source = padded(op, tiles, b)
            (result,) = b.compute(
                [source], [op.dest], [tiles.pack_map(), identity], lambda s, v: [v[0]]
            )
            rewriter.replace(op, [], [result])
            return
        sizes = dims(op.source, b)

        def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
            places: list[Size] = []
            for dim in range(len(sizes)):
                place: Size = s.index(tiles.outer(dim))
                if dim in tiles.sizes:
                    place = s.add(s.mul(place, tiles.sizes[dim]), s.index(tiles.inner(dim)))
                places.append(place)
            read, inside = s.extract(op.source, places), s.inside(places, sizes)
            if op.padding_value is None or inside is None:
                return [read]
            return [s.select(inside, read, op.padding_value)]

        (result,) = b.compute([], [op.dest], [identity], body)
        rewriter.replace(op, [], [result])


def padded(op: PackOp, tiles: Tiles, b: TensorBuilder) -> SSAValue:
    """Returns the source of a pack, padded to whole tiles."""
    sizes, packed = dims(op.source, b), dims(op.dest, b)
    whole = [b.mul(packed[tiles.outer(d)], tiles.sizes.get(d, 1)) for d in range(len(sizes))]
    if op.padding_value is None or whole == sizes:
        return op.source
    init = b.empty(element_type(op.source), whole)
    maps = [select_dims(len(sizes), []), AffineMap.identity(len(sizes))]
    (background,) = b.compute([op.padding_value], [init], maps, lambda s, v: [v[0]])
    return b.insert_slice(op.source, background, [0] * len(sizes), sizes)


class DecomposeUnPack(RewritePattern):
    """unpack(x)  =>  generic {x[i / tile, i mod tile]}"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: UnPackOp, rewriter: PatternRewriter) -> None:
        if not isinstance(op.dest.type, TensorType):
            return
        rank = rank_of(op.dest)
        b, tiles, identity = TensorBuilder(op), Tiles.of(op, rank), AffineMap.identity(rank)
        if tiles.static and is_static(op.source) and is_static(op.dest):
            maps = [tiles.unpack_map(), identity]
            (result,) = b.compute([op.source], [op.dest], maps, lambda s, v: [v[0]])
            rewriter.replace(op, [], [result])
            return

        def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
            at = [s.index(d) for d in range(rank)]
            outer = [s.floordiv(at[d], tiles.sizes.get(d, 1)) for d in tiles.order]
            return [s.extract(op.source, [*outer, *inner(s, at)])]

        def inner(s: ScalarBuilder, at: Sequence[SSAValue]) -> list[Size]:
            return [s.rem(at[d], tiles.sizes[d]) for d in tiles.positions]

        (result,) = b.compute([], [op.dest], [identity], body)
        rewriter.replace(op, [], [result])


@dataclass(frozen=True)
class DecomposePacksPass(ModulePass):
    """Decomposes pack and unpack into generics."""

    name = "irees-decompose-packs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        patterns = [DecomposePack(), DecomposeUnPack()]
        PatternRewriteWalker(
            GreedyRewritePatternApplier(patterns, dce_enabled=False), apply_recursively=False
        ).rewrite_module(op)
