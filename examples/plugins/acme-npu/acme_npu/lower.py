"""
`acme-npu-lower`: products of f32 become loops over blocks of 8x8.

    linalg.generic ins(%a, %b) outs(%c) { multiply and add }
  =>
    for all other parallel loops, for %m by 8, for %n by 8:
      npu.load %c[%m, %n] {slot = 2}
      for all other reduction loops, for %k by 8:
        npu.load %a[%m, %k] {slot = 0} ; npu.load %b[%k, %n] {slot = 1} ; npu.multiply
      npu.store %c[%m, %n] {slot = 2}

A convolution is a product, too: the rows of its block are steps along an axis of the image.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from acme_npu.dialect import LoadOp, MultiplyOp, StoreOp
from irees.building import IndexBuilder, affine_value, buffer_dim, for_loop, multiply_add
from irees.remarks import remark

SIDE = 8


def along(indexing, loop):
    """Returns the axis that a loop indexes, and its step; None if there is not one such axis."""
    axes = [axis for axis, expr in enumerate(indexing.results) if loop in expr.used_dims()]
    if len(axes) != 1:
        return None
    expr, zeros = indexing.results[axes[0]], [0] * indexing.num_dims
    unit = [int(each == loop) for each in range(indexing.num_dims)]
    double = [2 * each for each in unit]
    first, one, two = (expr.eval(at, []) for at in (zeros, unit, double))
    return (axes[0], one - first) if two - one == one - first > 0 else None


@dataclass(frozen=True)
class Product:
    """The operands of a product, their maps, and the loops of its blocks."""

    values: tuple
    maps: tuple
    kinds: tuple[str, ...]
    row: int
    column: int
    depth: int

    @staticmethod
    def of(op: linalg.GenericOp) -> Product | None:
        """Returns the product that an op is, or None if it has no rows, columns or depth."""
        parts = multiply_add(op)
        if parts is None or parts.widen_lhs or parts.widen_rhs:
            return None
        numbers = (parts.lhs, parts.rhs, len(op.inputs))
        maps = tuple(op.indexing_maps.data[n].data for n in numbers)
        kinds = tuple(kind.data.value for kind in op.iterator_types)
        # The innermost loop of each role, as memory is contiguous along it.
        found = {}
        for loop in range(len(kinds)):
            used = tuple(loop in indexing.used_dims() for indexing in maps)
            role = {(1, 0, 1): "row", (0, 1, 1): "column", (1, 1, 0): "depth"}.get(used)
            places = [along(m, loop) for m, is_used in zip(maps, used, strict=True) if is_used]
            if role is not None and all(places):
                found[role] = loop
        values = tuple(op.operands[n] for n in numbers)
        return Product(values, maps, kinds, **found) if len(found) == 3 else None


def why_not(op) -> str | None:
    """Returns why the CPU computes an op."""
    if not isinstance(op, linalg.GenericOp):
        return "it is no structured op"
    kinds = (v.type for v in op.operands)
    if any(not isinstance(k, MemRefType | TensorType) or k.element_type != f32 for k in kinds):
        return "the unit multiplies f32"
    product = Product.of(op)
    if product is None:
        return "it is no product of rows and columns"
    for indexing in product.maps:
        axes = [along(indexing, loop) for loop in (product.row, product.column, product.depth)]
        taken = [place[0] for place in axes if place is not None]
        if len(set(taken)) != len(taken):
            return "two sides of a block are along one axis"
    if any(not isinstance(e, AffineDimExpr) for e in product.maps[2].results):
        return "its output is not indexed by loops"
    return None


def size_of(product: Product, loop: int, b: IndexBuilder):
    """Returns the trip count of a loop."""
    for value, indexing in zip(product.values, product.maps, strict=True):
        for axis, expr in enumerate(indexing.results):
            if isinstance(expr, AffineDimExpr) and expr.position == loop:
                return buffer_dim(value, axis, b)
    return None


def lower(op: linalg.GenericOp, product: Product) -> None:
    """product  =>  loops over blocks"""
    b = IndexBuilder(InsertPoint.before(op))
    sizes = [size_of(product, loop, b) for loop in range(len(product.kinds))]
    blocked = (product.row, product.column, product.depth)
    rest = [loop for loop in range(len(sizes)) if loop not in blocked]
    outer = [loop for loop in rest if product.kinds[loop] == "parallel"]
    inner = [loop for loop in rest if loop not in outer]
    at = {}

    def nest(loops, b, body):
        if not loops:
            body(b)
            return
        close, at[loops[0]], inside = for_loop(
            b, 0, sizes[loops[0]], SIDE if loops[0] in blocked else 1
        )
        nest(loops[1:], inside, body)
        close()

    def move(kind, number, slot, row, column, b):
        value, indexing = product.values[number], product.maps[number]
        place = [at.get(loop, 0) for loop in range(len(sizes))]
        indices = [b.value(affine_value(expr, place, b)) for expr in indexing.results]
        counts = [b.value(b.minimum(SIDE, b.sub(sizes[side], at[side]))) for side in (row, column)]
        sides = [along(indexing, side) for side in (row, column)]
        b.insert(kind.of(value, indices, *counts, slot, *sides))

    def step(b):
        move(LoadOp, 0, 0, product.row, product.depth, b)
        move(LoadOp, 1, 1, product.depth, product.column, b)
        b.insert(MultiplyOp.build())

    def block(b):
        move(LoadOp, 2, 2, product.row, product.column, b)
        nest([*inner, product.depth], b, step)
        move(StoreOp, 2, 2, product.row, product.column, b)

    nest([*outer, product.row, product.column], b, block)
    Rewriter.erase_op(op)


@dataclass(frozen=True)
class LowerPass(ModulePass):
    """Lowers products of f32 to instructions of the matrix unit."""

    name = "acme-npu-lower"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [each for each in op.walk() if isinstance(each, linalg.GenericOp)]:
            reason, product = why_not(inner), Product.of(inner)
            if reason is None and any(
                size_of(product, loop, IndexBuilder(InsertPoint.before(inner))) is None
                for loop in range(len(product.kinds))
            ):
                reason = "a loop has no operand that bounds it"
            if reason is None:
                lower(inner, product)
            elif multiply_add(inner) is not None:
                remark("missed", self.name, inner, f"on the CPU: {reason}")
