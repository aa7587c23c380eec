"""
Decomposes Winograd transforms into two contractions with a constant matrix.

    %t = linalg.winograd_input_transform fmr(F_2_3) ins(%x : tensor<1x6x6x8xf32>) outs(%o)
  =>
    %m = arith.constant dense<...> : tensor<4x4xf32>
    %u = linalg.generic {sum over b of m[j, b] * x[n, H, w * 2 + b, c]} : tensor<4x2x6x1x8xf32>
    %t = linalg.generic {sum over a of m[i, a] * u[j, w, h * 2 + a, n, c]}

The input image is zero-padded to whole tiles. The output transform computes the image element by
element: element H is in tile `H floordiv m` and uses matrix row `H mod m`. linalg's output
transform accumulates into its outs, IREE's does not. Along an axis where the filter has size 1,
the matrix is the number 1. Sums are in f32, or in f64 for f64 operands.

The pass skips memrefs, IREE's transforms of a single tile, and IREE's sizes other than F(6, 3), for
which IREE has no matrices. MLIR: `decomposeWinograd*TransformOp`; IREE:
`DecomposeWinogradTransform`. Both process the tiles one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern
from xdsl.utils.hints import isa

from irees.dialects.upstream.linalg.winograd import Matrix, Transform, transform_of
from irees.transforms.utils.shapes import Size, dims
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import TensorBuilder, accumulator_type

OPS = {
    *(f"linalg.winograd_{kind}_transform" for kind in ("input", "filter", "output")),
    *(f"iree_linalg_ext.winograd.{kind}_transform" for kind in ("input", "filter", "output")),
}


def constant_matrix(rows: Matrix, kind: Attribute, b: TensorBuilder) -> SSAValue:
    """Returns a matrix as a tensor constant."""
    shape = TensorType(kind, [len(rows), len(rows[0])])
    flat = [number for row in rows for number in row]
    return b.insert(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(shape, flat))).results[0]


def multiplied(
    matrix: Matrix, row: AffineExpr, source: SSAValue, place: Sequence[AffineExpr],
    sizes: Sequence[Size], b: TensorBuilder,
) -> SSAValue:  # fmt: skip
    """
    Returns the sum over loop `last` of matrix[row, last] * source[place], of shape `sizes`, in the
    accumulator type of the source's elements.
    """
    wide = accumulator_type(element_type(source))
    loops = len(sizes) + 1
    maps = [
        AffineMap(loops, 0, (row, AffineExpr.dimension(loops - 1))),
        AffineMap(loops, 0, tuple(place)),
        AffineMap(loops, 0, tuple(AffineExpr.dimension(d) for d in range(loops - 1))),
    ]
    (result,) = b.compute(
        [constant_matrix(matrix, wide, b), source],
        [b.filled(0, wide, sizes)],
        maps,
        lambda s, v: [s.op(arith.AddfOp, v[2], s.op(arith.MulfOp, v[0], s.cast(v[1], wide)))],
    )
    return result


def padded(
    source: SSAValue, sizes: Sequence[Size], whole: list[Size], b: TensorBuilder
) -> SSAValue:
    """Returns the source, zero-padded at the high ends to the sizes `whole`."""
    if whole == sizes:
        return source
    background = b.filled(0, element_type(source), whole)
    return b.insert_slice(source, background, [0] * len(whole), sizes)


def into_tiles(t: Transform, source: SSAValue, out: SSAValue, b: TensorBuilder) -> SSAValue | None:
    """tiles[i, j, h, w] = sum of M[i, a] * M[j, b] * source[h * m + a, w * m + b]"""
    sizes, tiles = dims(source, b), dims(out, b)
    rest = list(t.rest)
    whole = list(sizes)
    for axis in (0, 1):
        count = 1 if t.counts is None else tiles[t.counts[axis]]
        step, window = t.outputs(axis), len(t.matrix(axis)[0])
        whole[t.image[axis]] = b.add(b.mul(count, step), window - step)
    pairs = zip(whole, sizes, strict=True)
    if any(isinstance(w, int) and isinstance(n, int) and w < n for w, n in pairs):
        return None
    source = padded(source, sizes, whole, b)
    # First along the width: u[j, w, H, rest].
    j, w, h, *others, last = (AffineExpr.dimension(d) for d in range(6))
    width = 1 if t.counts is None else tiles[t.counts[1]]
    place: dict[int, AffineExpr] = {flat: e for (flat, _), e in zip(rest, others, strict=True)}
    place |= {t.image[0]: h, t.image[1]: w * t.outputs(1) + last}
    middle = [tiles[1], width, whole[t.image[0]], *(sizes[flat] for flat, _ in rest)]
    half = multiplied(t.matrix(1), j, source, [place[d] for d in range(4)], middle, b)
    # Then along the height, in the order of the tiles.
    last = AffineExpr.dimension(len(tiles))
    at = [AffineExpr.dimension(d) for d in range(len(tiles))]
    zero = AffineExpr.constant(0)
    row, column = (zero, zero) if t.counts is None else (at[t.counts[0]], at[t.counts[1]])
    inside = [at[1], column, row * t.outputs(0) + last, *(at[tile] for _, tile in rest)]
    result = multiplied(t.matrix(0), at[0], half, inside, tiles, b)
    return b.stored(result, out)


def out_of_tiles(t: Transform, source: SSAValue, out: SSAValue, b: TensorBuilder) -> SSAValue:
    """image[H, W] = sum of M[H mod m, a] * M[W mod m, b] * source[a, b, H / m, W / m]"""
    assert t.counts is not None
    wide = accumulator_type(element_type(source))
    sizes, tiles = dims(out, b), dims(source, b)
    # First along the width: u[a, h, W, rest].
    a, h, w, *others, last = (AffineExpr.dimension(d) for d in range(6))
    m, n = t.outputs(0), t.outputs(1)
    place: dict[int, AffineExpr] = {tile: e for (_, tile), e in zip(t.rest, others, strict=True)}
    place |= {0: a, 1: last, t.counts[0]: h, t.counts[1]: _over(w, n)}
    middle = [tiles[0], tiles[t.counts[0]], sizes[t.image[1]]]
    middle += [sizes[flat] for flat, _ in t.rest]
    half = multiplied(t.matrix(1), _modulo(w, n), source, [place[d] for d in range(6)], middle, b)
    at = [AffineExpr.dimension(d) for d in range(4)]
    last, row = AffineExpr.dimension(4), at[t.image[0]]
    inside = [last, _over(row, m), at[t.image[1]], *(at[flat] for flat, _ in t.rest)]
    result = multiplied(t.matrix(0), _modulo(row, m), half, inside, sizes, b)
    if not t.accumulates:
        return b.stored(result, out)
    kind = element_type(out)

    def add(s, v):  # type: ignore[no-untyped-def]
        return [s.cast(s.op(arith.AddfOp, v[0], s.cast(v[1], wide)), kind)]

    return b.compute([result], [out], [AffineMap.identity(4)] * 2, add)[0]


def _over(expr: AffineExpr, size: int) -> AffineExpr:
    return expr if size == 1 else expr // size


def _modulo(expr: AffineExpr, size: int) -> AffineExpr:
    return AffineExpr.constant(0) if size == 1 else expr % size


class DecomposeTransform(RewritePattern):
    """transform(tiles)  =>  M tile M^T"""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if op.name not in OPS or not op.results:
            return
        transform = transform_of(op)
        if transform is None or not isa(element_type(op.operands[0]), AnyFloat):
            return
        source, out = op.operands
        apply = out_of_tiles if transform.kind == "output" else into_tiles
        result = apply(transform, source, out, TensorBuilder(op))
        if result is not None:
            rewriter.replace(op, [], [result])


@dataclass(frozen=True)
class DecomposeWinogradPass(ModulePass):
    """Decomposes Winograd transforms into contractions."""

    name = "irees-decompose-winograd"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(DecomposeTransform(), apply_recursively=False).rewrite_module(op)
