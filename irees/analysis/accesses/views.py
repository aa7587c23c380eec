"""Handlers of ops that create buffers and views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, NoneAttr, StridedLayoutAttr
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from irees.analysis.accesses.buffers import Root, View, contiguous
from irees.analysis.accesses.polynomials import Polynomial
from irees.dialects.result_sizes import reassociation
from irees.dialects.sizes import kept_dims

if TYPE_CHECKING:
    from irees.analysis.accesses.walk import Walk


def buffer(walk: Walk, value: SSAValue, sizes: Sequence[Polynomial], kind: str) -> Root:
    """Creates a root for a value, viewed as a whole."""
    assert isinstance(value.type, MemRefType)
    strides, name = type_strides(value.type, sizes), value.name_hint or f"{kind}{len(walk.views)}"
    root = Root(name, tuple(sizes), strides, value, len(walk.space.variables))
    walk.views[value] = (View.of(root),)
    return root


def type_strides(kind: MemRefType, sizes: Sequence[Polynomial]) -> tuple[Polynomial, ...] | None:
    """Returns the strides of a memref type, if all are static."""
    if isinstance(kind.layout, NoneAttr):
        return contiguous(sizes)
    if not isinstance(kind.layout, StridedLayoutAttr):
        return None
    strides = [s.data for s in kind.layout.strides if not isinstance(s, NoneAttr)]
    return tuple(map(Polynomial.number, strides)) if len(strides) == len(sizes) else None


def beneath(value: SSAValue) -> SSAValue:
    """Returns the buffer at the base of a chain of view ops."""
    while isinstance(value, OpResult) and value.op.name in VIEWS and value.op.name not in ROOTS:
        value = value.op.operands[0]
    return value


def allocate(walk: Walk, op: Operation) -> None:
    """memref.alloc, memref.alloca, irees.counters"""
    result = op.results[0]
    assert isinstance(result.type, MemRefType)
    dynamic = getattr(op, "dynamic_sizes", ())
    for size in dynamic:
        walk.as_the_machine_has_it(size)
    known = [walk.known_size(s) for s in walk.mixed(result.type.get_shape(), dynamic)]
    space = str(result.type.memory_space)
    kind = "shared" if "workgroup" in space else op.name.rpartition(".")[2]
    walk.allocated(known)
    root = buffer(walk, result, known, kind)
    if isinstance(result.type.element_type, IntegerType | IndexType):
        root.table = is_table(result)


def is_table(value: SSAValue) -> bool:
    """Whether loads and stores are the only uses of a buffer."""
    return all(
        use.operation.name in ("memref.load", "memref.dim")
        or (use.operation.name == "memref.store" and use.index == 1)
        for use in value.uses
    )


def dim(walk: Walk, op: Operation) -> None:
    """memref.dim"""
    assert isinstance(op, memref.DimOp)
    axis = walk.number(op.index).constant
    sizes = {tuple(view.sizes) for view in walk.views.get(op.source, ())}
    if axis is not None and len(sizes) == 1:
        (found,) = sizes
        if 0 <= axis < len(found):
            walk.polynomials[op.result] = found[axis]
            return
    walk.polynomials[op.result] = walk.arithmetic.natural("dim")


def mapped(
    walk: Walk, op: Operation, source: SSAValue, make: Callable[[View], View | None]
) -> None:
    """Binds the result to `make` of each possible view of the source."""
    found = [make(view) for view in walk.views.get(source, ())]
    walk.views[op.results[0]] = (
        tuple(v for v in found if v is not None) if None not in found else ()
    )


def subview(walk: Walk, op: Operation) -> None:
    """memref.subview"""
    assert isinstance(op, memref.SubviewOp)
    offsets = _all(walk, walk.mixed(op.static_offsets.get_values(), op.offsets))
    sizes = _all(walk, walk.mixed(op.static_sizes.get_values(), op.sizes))
    steps = _all(walk, walk.mixed(op.static_strides.get_values(), op.strides))
    kept = _kept(op)
    mapped(walk, op, op.source, lambda view: view.slice(offsets, sizes, steps, kept))


def _kept(op: memref.SubviewOp) -> list[int]:
    assert isinstance(op.result.type, MemRefType)
    return kept_dims(op.static_sizes.get_values(), op.result.type.get_shape())


def _all(walk: Walk, values: Sequence[Polynomial | None]) -> list[Polynomial]:
    return [walk.known_size(v) for v in values]


def expand(walk: Walk, op: Operation) -> None:
    """memref.expand_shape"""
    assert isinstance(op, memref.ExpandShapeOp)
    groups = reassociation(op)
    sizes = _all(walk, walk.mixed(op.static_output_shape.get_values(), op.output_shape))
    mapped(walk, op, op.src, lambda view: view.expanded(groups, sizes))


def collapse(walk: Walk, op: Operation) -> None:
    """memref.collapse_shape"""
    assert isinstance(op, memref.CollapseShapeOp)
    groups = reassociation(op)
    mapped(walk, op, op.src, lambda view: view.collapsed(groups))


def same(walk: Walk, op: Operation) -> None:
    """memref.cast, memref.memory_space_cast"""
    mapped(walk, op, op.operands[0], lambda view: view)


def transpose(walk: Walk, op: Operation) -> None:
    """memref.transpose"""
    results = op.properties["permutation"].data.results  # type: ignore[attr-defined]
    order = [e.position for e in results if isinstance(e, AffineDimExpr)]
    mapped(walk, op, op.operands[0], lambda view: view.permuted(order))


def metadata(walk: Walk, op: Operation) -> None:
    """memref.extract_strided_metadata"""
    assert isinstance(op, memref.ExtractStridedMetaDataOp)
    views = walk.views.get(op.source, ())
    walk.views[op.base_buffer] = views
    if len(views) != 1:
        return
    (view,) = views
    values = [view.offset, *view.sizes, *(axis.stride for axis in view.axes)]
    for result, value in zip(op.results[1:], values, strict=True):
        if value is not None:
            walk.polynomials[result] = value


def reinterpret(walk: Walk, op: Operation) -> None:
    """memref.reinterpret_cast"""
    assert isinstance(op, memref.ReinterpretCastOp)
    (offset,) = _all(walk, walk.mixed(op.static_offsets.get_values(), op.offsets))
    sizes = _all(walk, walk.mixed(op.static_sizes.get_values(), op.sizes))
    strides = _all(walk, walk.mixed(op.static_strides.get_values(), op.strides))
    mapped(walk, op, op.source, lambda view: view.reinterpreted(offset, sizes, strides))


def reshape_of_arena(walk: Walk, op: Operation) -> None:
    """memref.view: a typed view of bytes, which must fit."""
    assert isinstance(op, memref.ViewOp)
    assert isinstance(op.result.type, MemRefType)
    sizes = _all(walk, walk.mixed(op.result.type.get_shape(), op.sizes))
    walk.show_room(op, sizes)
    buffer(walk, op.result, sizes, "view")


def parts(walk: Walk, op: Operation) -> None:
    """irees.view_parts: elements of another size, so the offsets in the source do not apply."""
    result, source = op.results[0], walk.views.get(op.operands[0], ())
    assert isinstance(result.type, MemRefType)
    if len(source) == 1:
        sizes = [*source[0].sizes, Polynomial.number(2)][: result.type.get_num_dims()]
        buffer(walk, result, sizes, "view")


VIEWS: dict[str, Callable[[Walk, Operation], None]] = {
    "memref.alloc": allocate,
    "memref.alloca": allocate,
    "irees.counters": allocate,
    "memref.dim": dim,
    "memref.subview": subview,
    "memref.expand_shape": expand,
    "memref.collapse_shape": collapse,
    "memref.cast": same,
    "memref.memory_space_cast": same,
    "memref.transpose": transpose,
    "memref.extract_strided_metadata": metadata,
    "memref.reinterpret_cast": reinterpret,
    "memref.view": reshape_of_arena,
    "irees.view_bytes": same,
    "irees.view_parts": parts,
}
"""Op name => handler that binds the views of its results."""

ROOTS = frozenset(name for name, row in VIEWS.items() if row in (allocate, reshape_of_arena))
"""Ops whose results are roots."""
