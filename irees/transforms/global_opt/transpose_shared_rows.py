"""
Transposes an operand of a reduction so that vectors run along the results.

A reduction over pairs of rows, such as a matrix of distances, reads both operands along the reduced
loop. Vectors of that loop need a horizontal reduction for each result, and load both operands for
each step. With one operand transposed, a vector holds adjacent results: it needs no horizontal
reduction, and several rows of results share each vector that is loaded, as in a matrix product.

    %r = linalg.generic {maps = [(i, j, k) -> (i, k), (i, j, k) -> (j, k), (i, j, k) -> (i, j)]}
           ins(%x, %y) outs(%f) { ... |x - y| ... }
  =>
    %t = linalg.generic {maps = [(k, j) -> (j, k), (k, j) -> (k, j)]} ins(%y) { yield }
    %r = linalg.generic {maps = [(i, j, k) -> (i, k), (i, j, k) -> (k, j), (i, j, k) -> (i, j)]}
           ins(%x, %t) outs(%f) { ... |x - y| ... }

The copy pays if enough rows of results read it (`CPU.transposed_rows`). The order of the reduction
stays as it is. Sums of products are left to `irees-lower-contractions`, which packs panels; bodies
that read memory or a loop index, and GPUs, whose threads reduce rows in shared memory, to others.
Source: packing as in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
(2008); IREE packs products only (`linalg.pack`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.analysis.contractions import multiply_add
from irees.dialects.irees_target import target_of
from irees.dialects.sizes import Size
from irees.dialects.storage import loaded
from irees.rewrites import may_rewrite
from irees.targets.cpu import CPU
from irees.transforms.utils.shapes import dim
from irees.transforms.utils.structured import (
    element_type,
    generic,
    iterators,
    maps,
    static_ranges,
    writes_along_reduction,
)
from irees.transforms.utils.tensors import TensorBuilder


def columns_of(op: linalg.GenericOp) -> int | None:
    """
    Returns the loop along which all results of a reduction of tensors are contiguous, if its body
    computes on elements alone; else None.
    """
    kinds, ends = iterators(op), {m.results[-1:] for m in maps(op)[len(op.inputs) :]}
    if "parallel" not in kinds or "reduction" not in kinds or writes_along_reduction(op):
        return None
    inside = op.body.block.ops
    if any(o.regions or isinstance(o, linalg.IndexOp) or loaded(o) is not None for o in inside):
        return None
    if len(ends) != 1 or not all(isinstance(o.type, TensorType) for o in op.operands):
        return None
    ((last, *_),) = ends or {()}
    return last.position if isinstance(last, AffineDimExpr) else None


def is_row(op: linalg.GenericOp, indexing: AffineMap, columns: int) -> bool:
    """Whether an operand has a row along a reduced loop for each of the columns."""
    if not indexing.is_projected_permutation() or columns not in indexing.used_dims():
        return False
    last = indexing.results[-1]
    assert isinstance(last, AffineDimExpr)
    return iterators(op)[last.position] != "parallel"


def rows_to_transpose(op: linalg.GenericOp) -> tuple[int, list[int]] | None:
    """
    Returns the loop over columns and the inputs to transpose; None if another input is not
    contiguous along the columns, or if too few results read each input.
    """
    columns = columns_of(op)
    if columns is None or multiply_add(op) is not None:
        return None
    sizes, found = static_ranges(op), list[int]()
    if 0 <= sizes[columns] < CPU.transposed_columns:
        return None
    for number, indexing in enumerate(maps(op)[: len(op.inputs)]):
        if columns not in indexing.used_dims():
            continue
        if is_row(op, indexing, columns):
            if not _is_shared(op, indexing, sizes):
                return None
            found.append(number)
        elif indexing.results[-1] != AffineDimExpr(columns):
            return None
    return (columns, found) if found else None


def _is_shared(op: linalg.GenericOp, indexing: AffineMap, sizes: list[int]) -> bool:
    """Whether enough results read each element of an operand."""
    used, rows = indexing.used_dims(), 1
    for loop, kind in enumerate(iterators(op)):
        if kind == "parallel" and loop not in used:
            rows *= sizes[loop] if sizes[loop] >= 0 else CPU.assumed_trip_count
    return rows >= CPU.transposed_rows


def transposed(value: SSAValue, dim_of_columns: int, b: TensorBuilder) -> SSAValue:
    """Returns a copy of a tensor whose last dim is another one."""
    rank, kind = len(value.type.get_shape()), element_type(value)
    order = [d for d in range(rank) if d != dim_of_columns] + [dim_of_columns]
    sizes: list[Size] = [dim(value, d, b) for d in order]
    source: list[AffineExpr] = [AffineDimExpr(order.index(d)) for d in range(rank)]
    moves = [AffineMap(rank, 0, tuple(source)), AffineMap.identity(rank)]
    (result,) = b.compute([value], [b.empty(kind, sizes)], moves, lambda _, v: [v[0]])
    return result


def transpose_rows(op: linalg.GenericOp, columns: int, numbers: list[int]) -> None:
    """fold over k of f(x[i, k], y[j, k])  =>  fold over k of f(x[i, k], t[k, j])"""
    b, inputs, indexing = TensorBuilder(op), list(op.inputs), maps(op)
    for number in numbers:
        results = indexing[number].results
        place = results.index(AffineDimExpr(columns))
        inputs[number] = transposed(inputs[number], place, b)
        moved = (*results[:place], *results[place + 1 :], results[place])
        indexing[number] = AffineMap(indexing[number].num_dims, 0, moved)
    kinds, body = iterators(op), op.detach_region(op.body)
    fresh = generic(inputs, list(op.outputs), indexing, kinds, body)
    fresh.attributes.update(op.attributes)
    Rewriter.replace_op(op, fresh)


@dataclass(frozen=True)
class TransposeSharedRowsPass(ModulePass):
    """Transposes operands of reductions whose rows are read by many results."""

    name = "irees-transpose-shared-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None:
            return
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            found = rows_to_transpose(inner)
            if found is not None and may_rewrite(self.name, inner, "vectors along the results"):
                transpose_rows(inner, *found)
