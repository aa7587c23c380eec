"""
Folds views of memory into what reads and writes through them.

    %v = memref.subview %m[%a, %b] [4, 4] [2, 3]
    %x = memref.load %v[%i, %j]
  =>
    %p = affine.apply (s0 + s1 * 2)()[%a, %i]
    %q = affine.apply (s0 + s1 * 3)()[%b, %j]
    %x = memref.load %m[%p, %q]

Views are subview, expand_shape, collapse_shape, cast and reinterpret_cast, any number of them on
top of each other. Accesses are loads and stores of memref, affine and vector, masked ones,
transfers, and gathers and scatters; a copy takes the source of a cast, and a subview of a subview
becomes one. The index arithmetic is exact: offset and stride of a subview, `affine.linearize_index`
for an expanded group and `affine.delinearize_index` for a collapsed one.

An index into a view counts elements of the *view*: `vector.gather %v[%i][%x]` reads
`v[..., i + x]`, and every lane that is on is inside the view's last dim. So a vector or a gather
folds only if lanes that are neighbours in the view are neighbours in memory along the same dim:

* through a subview where the stride of each such dim is 1 and no dropped dim lies among them (the
  index vector of a gather, of type index, is multiplied by a static stride instead);
* through an expand along the last dims of groups only;
* through a collapse where the lanes stay in one row: the other dims are 1, or the index and the row
  are multiples of the vector. MLIR folds any vector.load there, and reads past the row's end;
* never a transfer that may be out of bounds: bounds are those of the view.

What does not fold keeps its view, with a remark. Dead views go. MLIR: `fold-memref-alias-ops`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.remarks import remark
from irees.transforms.utils.affine_sums import Sum
from irees.transforms.utils.memory_accesses import (
    PLACES,
    VIEWS,
    Access,
    Refused,
    kept_dims,
    memory_of,
)
from irees.transforms.utils.shapes import IndexBuilder, mixed
from irees.transforms.utils.views import subview


def fold_access(op: Operation) -> bool:
    """load(view(m), i) => load(m, j). Raises Refused."""
    if not isinstance(memory_of(op).owner, VIEWS):
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
        offsets[dim] = (Sum.of(offsets[dim]) + Sum.of(outer_offsets[at]) * strides[dim]).build(
            builder
        )
        strides[dim] = (Sum.of(strides[dim]) * outer_strides[at]).build(builder)
        sizes[dim] = outer_sizes[at]
    new = subview(inner.source, offsets, sizes, strides, mine)
    if new.result.type != op.result.type:
        # It would count as a use of the view, which then never dies.
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
    """Folds one view at a time, and remembers what it could not fold through which view."""

    def __init__(self) -> None:
        self.refused: set[tuple[Operation, SSAValue]] = set()

    def fold(self, op: Operation) -> bool:
        """Whether it changed an op."""
        if isinstance(op, memref.SubviewOp):
            return fold_subview(op)
        if isinstance(op, memref.CopyOp):
            return fold_copy(op)
        if op.name not in PLACES or (op, memory_of(op)) in self.refused:
            return False
        try:
            return fold_access(op)
        except Refused as error:
            remark("missed", FoldMemrefAliasOpsPass.name, op, str(error))
            self.refused.add((op, memory_of(op)))
            return False


def _erase_dead_views(module: ModuleOp) -> None:
    for op in list(module.walk())[::-1]:
        if isinstance(op, VIEWS) and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


@dataclass(frozen=True)
class FoldMemrefAliasOpsPass(ModulePass):
    """Accesses to views become accesses to what they are views of."""

    name = "irees-fold-memref-alias-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        folder = Folder()
        # Each round goes one view further; a chain of views is as long as the program.
        while any([folder.fold(inner) for inner in list(op.walk())]):
            pass
        _erase_dead_views(op)
