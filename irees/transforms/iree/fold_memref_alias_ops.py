"""
Folds views of memrefs into the ops that access them.

    %v = memref.subview %m[%a, %b] [4, 4] [2, 3]
    %x = memref.load %v[%i, %j]
  =>
    %p = affine.apply (s0 + s1 * 2)()[%a, %i]
    %q = affine.apply (s0 + s1 * 3)()[%b, %j]
    %x = memref.load %m[%p, %q]

Views are subview, expand_shape, collapse_shape, cast and reinterpret_cast, in chains of any length.
Accesses are loads and stores of memref, affine and vector, including masked ones, transfers,
gathers and scatters. A copy takes the source of a cast, and a subview of a subview becomes one
subview. Index arithmetic is exact: offset and stride of a subview, `affine.linearize_index` for an
expanded group, `affine.delinearize_index` for a collapsed one.

An index into a view counts elements of the *view*: `vector.gather %v[%i][%x]` reads
`v[..., i + x]`, and every active lane is within the view's last dim. So a vector access or gather
folds only if adjacent lanes of the view are adjacent in memory along the same dim:

* through a subview if the stride of each such dim is 1 and no dropped dim is among them (a gather's
  index vector of type index is multiplied by a static stride instead);
* through an expand only along the last dims of groups;
* through a collapse if the lanes stay in one row: the other dims are 1, or the index and the row
  are multiples of the vector. MLIR folds any vector.load there, which may read past the row's end;
* never for a transfer that may be out of bounds, since the bounds are those of the view.

Accesses that do not fold keep their view, with a remark. Dead views are erased. MLIR:
`fold-memref-alias-ops`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.affine_sums import Sum
from irees.dialects.storage import accessed, is_view
from irees.remarks import remark
from irees.transforms.utils.affine_sums import build_sum
from irees.transforms.utils.memory_accesses import (
    Access,
    Refused,
    kept_dims,
)
from irees.transforms.utils.shapes import IndexBuilder, mixed
from irees.transforms.utils.views import subview


def fold_access(op: Operation) -> bool:
    """load(view(m), i) => load(m, j). Raises Refused."""
    memory = accessed(op)
    if memory is None or not is_view(memory.owner):
        return False
    access = Access.of(op)
    access.through()
    new = access.rebuilt()
    Rewriter.replace_op(op, [], new.results)
    return True


def fold_subview(op: memref.SubviewOp) -> bool:
    """subview(subview(m)) => subview(m)"""
    inner = op.source.owner
    if not isinstance(inner, memref.SubviewOp):
        return False
    try:
        kept = kept_dims(inner)
        mine = [kept[d] for d in kept_dims(op)]
    except Refused:
        return False
    builder = IndexBuilder(InsertPoint.before(op))
    offsets = mixed(inner.static_offsets.get_values(), inner.offsets)
    strides = mixed(inner.static_strides.get_values(), inner.strides)
    sizes = mixed(inner.static_sizes.get_values(), inner.sizes)
    outer_offsets = mixed(op.static_offsets.get_values(), op.offsets)
    outer_strides = mixed(op.static_strides.get_values(), op.strides)
    outer_sizes = mixed(op.static_sizes.get_values(), op.sizes)
    for at, dim in enumerate(kept):
        offset = Sum.of(offsets[dim]) + Sum.of(outer_offsets[at]) * strides[dim]
        offsets[dim] = build_sum(offset, builder)
        strides[dim] = build_sum(Sum.of(strides[dim]) * outer_strides[at], builder)
        sizes[dim] = outer_sizes[at]
    new = subview(inner.source, offsets, sizes, strides, mine)
    if new.result.type != op.result.type:
        # The unused op would keep the view alive.
        new.drop_all_references()
        return False
    Rewriter.insert_op(new, InsertPoint.before(op))
    Rewriter.replace_op(op, [], new.results)
    return True


def fold_copy(op: memref.CopyOp) -> bool:
    """copy(cast(x), cast(y)) => copy(x, y)"""
    folded = False
    for place, operand in enumerate(op.operands):
        cast = operand.owner
        if not isinstance(cast, memref.CastOp) or not isinstance(cast.source.type, MemRefType):
            continue
        other = op.operands[1 - place].type
        assert isinstance(other, MemRefType)
        pairs = zip(cast.source.type.get_shape(), other.get_shape(), strict=True)
        if any(a != b and DYNAMIC_INDEX not in (a, b) for a, b in pairs):
            continue
        op.operands[place] = cast.source
        folded = True
    return folded


class Folder:
    """Folds one view at a time; records the accesses that do not fold through a view."""

    def __init__(self) -> None:
        self.refused: set[tuple[Operation, SSAValue]] = set()

    def fold(self, op: Operation) -> bool:
        """Folds a view into an op; returns whether the op changed."""
        if isinstance(op, memref.SubviewOp):
            return fold_subview(op)
        if isinstance(op, memref.CopyOp):
            return fold_copy(op)
        memory = accessed(op)
        if memory is None or (op, memory) in self.refused:
            return False
        try:
            return fold_access(op)
        except Refused as error:
            remark("missed", FoldMemrefAliasOpsPass.name, op, str(error))
            self.refused.add((op, memory))
            return False


def _erase_dead_views(module: ModuleOp) -> None:
    for op in list(module.walk())[::-1]:
        if is_view(op) and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


@dataclass(frozen=True)
class FoldMemrefAliasOpsPass(ModulePass):
    """Folds views into the accesses that use them."""

    name = "irees-fold-memref-alias-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        folder = Folder()
        # Each round folds one more view of a chain, so this terminates.
        while any([folder.fold(inner) for inner in list(op.walk())]):
            pass
        _erase_dead_views(op)
