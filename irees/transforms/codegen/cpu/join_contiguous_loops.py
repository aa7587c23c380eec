"""
Joins the last two loops of an op on buffers whose rows fill no whole vectors, and have no gaps.

    linalg.generic ins(%x, %y : memref<?x3xf32>, memref<?x3xf32>) outs(%z) { subf }
  =>
    %a = memref.collapse_shape %x [[0, 1]] : memref<?x3xf32> into memref<?xf32>
    linalg.generic ins(%a, %b : memref<?xf32>, memref<?xf32>) outs(%c : memref<?xf32>) { subf }

Rows of points, colours and complex numbers are shorter than a vector, and rows of most lengths end
in a part of one. If all operands have both loops as adjacent dims, or neither, the loops step
through memory like one. The output has them last; an input that is transposed need not, such as
pixels in blocks of channels. The sizes may be dynamic, and the buffers tiles: only strides count.

An op is left alone if the body reads an index of the loops, if an operand is broadcast along one of
them, and if another op on one of its buffers is left alone, since the two may be fused later.
`irees-collapse-dimensions` does this to tensors for reductions, before they are distributed. MLIR:
`collapseOpIterationDims`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, MemRefType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from irees.analysis.element_sizes import item_bytes
from irees.dialects.irees_target import target_of
from irees.dialects.storage import root, users
from irees.rewrites import may_rewrite
from irees.transforms.codegen.common.utils.operand_accesses import joined_rows
from irees.transforms.utils.shapes import IndexBuilder
from irees.transforms.utils.structured import iterators, maps
from irees.transforms.utils.views import strides_of

NAME = "irees-join-contiguous-loops"

Pair = tuple[int, int]
"""A loop and the next inner one."""


def last_loops(indexing: AffineMap) -> Pair | None:
    """
    Returns the two loops of the last two dims of an operand, or None if other indices are there, or
    one loop twice: a diagonal.
    """
    found = indexing.results[-2:]
    if len(found) < 2 or not all(isinstance(e, AffineDimExpr) for e in found):
        return None
    first, last = (e.position for e in found if isinstance(e, AffineDimExpr))
    return None if first == last else (first, last)


def pair_of(op: linalg.GenericOp, vector_bytes: int) -> Pair | None:
    """Returns the loops of an op that can be joined, if the rows are not whole vectors."""
    if not all(isinstance(v.type, MemRefType) for v in op.operands):
        return None
    indexing = maps(op)
    pair = last_loops(indexing[-1])
    if pair is None or any(iterators(op)[loop] != "parallel" for loop in pair):
        return None
    if read_indices(op) & set(pair):
        return None
    touched = [
        (value.type, map_)
        for value, map_ in zip(op.operands, indexing, strict=True)
        if map_.used_dims() & set(pair)
    ]
    if not all(_has_no_gaps(kind, place_of(pair, map_)) for kind, map_ in touched):
        return None
    rows = [kind for kind, map_ in touched if last_loops(map_) == pair]
    return pair if any(_row_bytes(kind) % vector_bytes for kind in rows) else None


def read_indices(op: linalg.GenericOp) -> set[int]:
    """Returns the loops whose index the body reads."""
    return {o.dim.value.data for o in op.body.walk() if isinstance(o, linalg.IndexOp)}


def place_of(pair: Pair, indexing: AffineMap) -> int | None:
    """Returns the first of the two adjacent dims that two loops index, and no other; or None."""
    exprs = indexing.results
    found = [d for d, e in enumerate(exprs) if e.used_dims() & set(pair)]
    plain = [e.position for d in found if isinstance(e := exprs[d], AffineDimExpr)]
    return found[0] if plain == list(pair) and found[1] == found[0] + 1 else None


def _row_bytes(kind: Attribute) -> int:
    assert isinstance(kind, MemRefType)
    return kind.get_shape()[-1] * item_bytes(kind.element_type)


def _has_no_gaps(kind: Attribute, dim: int | None) -> bool:
    """Whether a dim begins again, after a static number of steps, where its next row begins."""
    assert isinstance(kind, MemRefType)
    if dim is None:
        return False
    (first, step), count = strides_of(kind)[dim : dim + 2], kind.get_shape()[dim + 1]
    return count > 1 and step > 0 and first == count * step


def neighbours(op: linalg.GenericOp) -> list[linalg.GenericOp]:
    """Returns the structured ops that use a buffer of an op, and the op itself."""
    roots = dict.fromkeys(root(v) for v in op.operands)
    found = dict.fromkeys(user for value in roots for user in users(value))
    return [user for user in found if isinstance(user, linalg.GenericOp)]


def joinable(ops: Sequence[linalg.GenericOp], vector_bytes: int) -> dict[linalg.GenericOp, Pair]:
    """Returns the loops to join of those ops that are joined with all of their neighbours."""
    pairs = {op: pair for op in ops if (pair := pair_of(op, vector_bytes)) is not None}
    around = {op: neighbours(op) for op in pairs}
    while wrong := [op for op in pairs if any(other not in pairs for other in around[op])]:
        for op in wrong:
            del pairs[op]
    return pairs


def join(op: linalg.GenericOp, pair: Pair) -> None:
    """(.., i, j) -> (.., i, j)  =>  (.., ij) -> (.., ij)"""
    first, last = pair
    at = IndexBuilder(InsertPoint.before(op))
    kinds = iterators(op)
    rest = [loop for loop in range(len(kinds)) if loop != last]
    renumbered = {loop: AffineExpr.dimension(i) for i, loop in enumerate(rest)}
    new: list[AffineMap] = []
    for position, map_ in enumerate(maps(op)):
        results = map_.results
        if first in map_.used_dims():
            place = place_of(pair, map_)
            assert place is not None
            op.operands[position] = joined_rows(op.operands[position], at, place)
            results = (*results[: place + 1], *results[place + 2 :])
        dims = [renumbered.get(i, AffineExpr.constant(0)) for i in range(len(kinds))]
        new.append(
            AffineMap(len(rest), 0, tuple(e.replace_dims_and_symbols(dims, []) for e in results))
        )
    op.properties["indexing_maps"] = ArrayAttr(AffineMapAttr(m) for m in new)
    op.properties["iterator_types"] = ArrayAttr(op.iterator_types.data[loop] for loop in rest)
    for inner in [o for o in op.body.walk() if isinstance(o, linalg.IndexOp)]:
        loop = inner.dim.value.data
        inner.properties["dim"] = linalg.IndexOp(rest.index(loop)).dim


@dataclass(frozen=True)
class JoinContiguousLoopsPass(ModulePass):
    """Joins loops over short rows without gaps."""

    name = "irees-join-contiguous-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ops = [o for o in op.walk() if isinstance(o, linalg.GenericOp)]
        while pairs := joinable(ops, target_of(op).vector_bytes):
            for inner, pair in pairs.items():
                if not may_rewrite(NAME, inner, "loops over rows"):
                    return
                join(inner, pair)
