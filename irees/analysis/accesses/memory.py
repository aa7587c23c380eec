"""Handlers of ops that access memory: prove that the accesses are in bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Operation, SSAValue

from irees.analysis.accesses.buffers import Root, Store
from irees.analysis.accesses.polynomials import ONE, Polynomial
from irees.analysis.accesses.scalars import bits_of
from irees.analysis.accesses.terms import Case, Every
from irees.dialects.storage import stored
from irees.interfaces import Place

if TYPE_CHECKING:
    from irees.analysis.accesses.walk import Walk

HARMLESS = frozenset(
    """
    memref.prefetch memref.dealloc memref.assume_alignment memref.yield gpu.barrier
    nvgpu.device_async_create_group nvgpu.device_async_wait scf.yield scf.in_parallel func.return
    scf.condition nvgpu.tma.create.descriptor stream.cmd.trace
    memref.extract_aligned_pointer_as_index
    """.split()
)
"""Ops that access no element of their memref operands."""


def _scalar(walk: Walk, op: Operation, *, writes: bool) -> None:
    place = [walk.number(i) for i in op.indices]  # type: ignore[attr-defined]
    buffer: SSAValue = op.memref  # type: ignore[attr-defined]
    walk.access(op, buffer, place, [ONE] * len(place), writes=writes)


def load(walk: Walk, op: Operation) -> None:
    """memref.load"""
    assert isinstance(op, memref.LoadOp)
    _scalar(walk, op, writes=False)
    if bits_of(op.results[0].type) not in (None, 1):
        walk.polynomials[op.results[0]] = _loaded(walk, op)


def store(walk: Walk, op: Operation) -> None:
    """memref.store"""
    assert isinstance(op, memref.StoreOp)
    _scalar(walk, op, writes=True)
    _remember(walk, op)


def update(walk: Walk, op: Operation) -> None:
    """memref.atomic_rmw"""
    _scalar(walk, op, writes=True)
    if (bits := bits_of(op.results[0].type)) not in (None, 1):
        walk.polynomials[op.results[0]] = walk.arithmetic.opaque("loaded", bits)


def instruction(walk: Walk, op: Operation, places: Sequence[Place]) -> None:
    """An instruction of a plug-in, with the places that its interface states."""
    for place in places:
        first, counts = (
            [n if isinstance(n, Polynomial) else Polynomial.number(n) for n in numbers]
            for numbers in (place.first, place.counts)
        )
        walk.access(op, place.memory, first, counts, writes=place.writes)


def _remember(walk: Walk, op: memref.StoreOp) -> None:
    """Records the value stored to a table, if a load may ask for it."""
    if _filled(op) is None:
        return
    views, value = walk.views.get(op.memref, ()), walk.polynomial(op.value)
    if len(views) == 1 and value is not None and views[0].root.table:
        root = views[0].root
        if not walk.prover.fits(value):
            value = walk.arithmetic.opaque("stored", bits_of(op.value.type) or 64)
        root.stores[op] = Store(value, walk.loose(root.born))


def _loaded(walk: Walk, op: memref.LoadOp) -> Polynomial:
    """Returns the loaded value: one of the stored values for a table, else unknown."""
    bits = bits_of(op.results[0].type) or 64
    views = walk.views.get(op.memref, ())
    if len(views) != 1 or not views[0].root.table:
        return walk.arithmetic.opaque("loaded", bits)
    root = views[0].root
    fill = _last_fill(walk, root, op)
    if fill is None or fill not in root.stores:
        return walk.arithmetic.opaque("loaded", bits)
    store = root.stores[fill]
    (one,) = walk.space.renamed([store.value], store.inside)
    place = tuple(walk.number(i) for i in op.indices)
    value = walk.space.variable(("entry", root.number, store.number, place), "entry")
    variable = walk.space.newest_of(value)
    if not variable.cases:
        variable.relates = True
        variable.cases = (Case(one, Every()),)
        variable.low, variable.high = walk.space.low(one), walk.space.high(one)
    return value


def _last_fill(walk: Walk, root: Root, load: memref.LoadOp) -> Operation | None:
    """
    Returns the store whose loop wrote the loaded element last, or None.

    No other store may be between that loop and the load.
    """
    if len(root.sizes) != 1:
        return None
    # The loads and stores of a table are those of single elements.
    stores = [use.operation for use in load.memref.uses if stored(use.operation)]
    fills = [store for store in stores if _fills(walk, store, load)]
    return next((fill for fill in fills if _is_last(fill, load, stores)), None)


def _is_last(fill: memref.StoreOp, load: memref.LoadOp, stores: Sequence[memref.StoreOp]) -> bool:
    """Whether no other store may be between the loop of a fill and the load."""
    loop = fill.parent_op()
    assert loop is not None
    at = _around(load, loop)
    assert at is not None
    others = [_around(store, loop) for store in stores if store is not fill]
    between = (o for o in others if o is not None and o is not loop)
    return all(o.is_before_in_block(loop) or at.is_before_in_block(o) for o in between)


def _filled(store: memref.StoreOp) -> int | None:
    """Returns how many elements the loop of a store fills, from the first; None for other loops."""
    loop = store.parent_op()
    if not isinstance(loop, scf.ForOp) or len(store.indices) != 1:
        return None
    if store.indices[0] is not loop.body.block.args[0]:
        return None
    first, end, step = (_constant(v) for v in (loop.lb, loop.ub, loop.step))
    return end if (first, step) == (0, 1) else None


def _fills(walk: Walk, store: memref.StoreOp, load: memref.LoadOp) -> bool:
    """Whether a loop before a load stores to the loaded element."""
    loop, end = store.parent_op(), _filled(store)
    at = None if loop is None else _around(load, loop)
    if loop is None or end is None or at is None or not loop.is_before_in_block(at):
        return False
    return walk.prover.holds(-walk.number(load.indices[0]) + (end - 1))


def _around(op: Operation, other: Operation) -> Operation | None:
    """Returns the ancestor of an op in the block of another op, or None."""
    at: Operation | None = op
    while at is not None and at.parent is not other.parent:
        at = at.parent_op()
    return at


def _constant(value: SSAValue) -> int | None:
    attribute = getattr(value.owner, "properties", {}).get("value")
    return attribute.value.data if attribute is not None else None


def _vector_lanes(rank: int, kind: VectorType) -> list[Polynomial]:
    shape = [Polynomial.number(n) for n in kind.get_shape()][-rank:] if rank else []
    return [ONE] * (rank - len(shape)) + shape


def in_a_row(walk: Walk, op: Operation) -> None:
    """vector.load, vector.store"""
    assert isinstance(op, vector.LoadOp | vector.StoreOp)
    kind = op.result.type if isinstance(op, vector.LoadOp) else op.vector.type
    assert isinstance(kind, VectorType)
    place = [walk.number(i) for i in op.indices]
    lanes = _vector_lanes(len(place), kind)
    walk.access(op, op.base, place, lanes, writes=isinstance(op, vector.StoreOp))


def async_copy(walk: Walk, op: Operation) -> None:
    """nvgpu.device_async_copy"""
    to = [walk.number(i) for i in op.dst_indices]  # type: ignore[attr-defined]
    source = [walk.number(i) for i in op.src_indices]  # type: ignore[attr-defined]
    count = Polynomial.number(op.dst_elements.value.data)  # type: ignore[attr-defined]
    walk.access(op, op.dst, to, [*[ONE] * (len(to) - 1), count], writes=True)  # type: ignore
    read = op.src_elements  # type: ignore[attr-defined]
    facts: list[Polynomial] = []
    if read is not None:
        count = walk.arithmetic.exact(walk.number(read))
        facts = walk.prover.implications(count - 1)
    with walk.space.assuming(facts):
        source = [walk.prover.settled(place) for place in source]
        lanes = [*[ONE] * (len(source) - 1), walk.prover.settled(count)]
        walk.access(op, op.src, source, lanes, writes=False)  # type: ignore[attr-defined]


def matrices(walk: Walk, op: Operation) -> None:
    """nvgpu.ldmatrix: each lane reads one 16-byte row."""
    source: SSAValue = op.src  # type: ignore[attr-defined]
    place = [walk.number(i) for i in op.indices]  # type: ignore[attr-defined]
    assert isinstance(source.type, MemRefType)
    width = getattr(source.type.element_type, "bitwidth", 16)
    lanes = [*[ONE] * (len(place) - 1), Polynomial.number(128 // width)]
    walk.access(op, source, place, lanes, writes=False)


def whole(walk: Walk, op: Operation) -> None:
    """Ops that access all elements of their memref operands."""
    for at, operand in enumerate(op.operands):
        if isinstance(operand.type, MemRefType):
            writes = op.name == "nvgpu.tma.async.load" and at == 0
            for_all_elements(walk, op, operand, writes=writes)


def for_all_elements(walk: Walk, op: Operation, value: SSAValue, *, writes: bool) -> None:
    """Proves an access to all elements of a view. The view may be empty."""
    sizes = [tuple(view.sizes) for view in walk.views.get(value, ())]
    kind = value.type
    assert isinstance(kind, MemRefType)
    if len(set(sizes)) > 1:
        walk.unmodelled(op, value)
        return
    first = sizes[0] if sizes else (ONE,) * kind.get_num_dims()
    zero = [Polynomial.number(0)] * len(first)
    with walk.space.assuming([size - 1 for size in first]):
        walk.access(op, value, zero, list(first), writes=writes, rows=True)


def copy(walk: Walk, op: Operation) -> None:
    """memref.copy: the shapes are equal and both views are in bounds."""
    assert isinstance(op, memref.CopyOp)
    for_all_elements(walk, op, op.source, writes=False)
    for_all_elements(walk, op, op.destination, writes=True)
    a, b = (walk.views.get(v, ()) for v in (op.source, op.destination))
    if len(a) == 1 == len(b):
        walk.show_equal(op, a[0].sizes, b[0].sizes)


def other(walk: Walk, op: Operation) -> None:
    """Ops without a handler: reports the memref operands that they may access as unmodelled."""
    if op.name in HARMLESS:
        return
    for operand in op.operands:
        if isinstance(operand.type, MemRefType) and not _passes_on(op):
            walk.unmodelled(op, operand)
    for result in op.results:
        if isinstance(result.type, MemRefType):
            walk.made(result)


def _passes_on(op: Operation) -> bool:
    return op.name in ("arith.select", "scf.for", "scf.while", "scf.if")


EFFECTS: dict[str, Callable[[Walk, Operation], None]] = {
    "memref.load": load,
    "memref.store": store,
    "memref.atomic_rmw": update,
    "vector.load": in_a_row,
    "vector.store": in_a_row,
    "nvgpu.device_async_copy": async_copy,
    "nvgpu.ldmatrix": matrices,
    "nvgpu.warpgroup.generate.descriptor": whole,
    "nvgpu.tma.async.load": whole,
    "memref.copy": copy,
}
"""Op name => handler that proves its accesses."""
