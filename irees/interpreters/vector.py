"""vector: small arrays. Reductions run in order; memory accesses are bounds-checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation
from xdsl.ir.affine import AffineDimExpr

from irees.dialects.upstream.memref import ATOMIC_KINDS
from irees.errors import RuntimeTrap
from irees.interpreters.arith import Width, maximum, minimum
from irees.interpreters.machine import Machine
from irees.interpreters.math import fma
from irees.interpreters.memref import check
from irees.interpreters.registry import Operands, Prepared, implements, pure
from irees.interpreters.structured import ranges, spread
from irees.interpreters.tensor import mixed, numbers, shape_of_type
from irees.interpreters.values import MemRef, array_of, dtype_of, element_type, is_float

Combine = Callable[[Any, Any], Any]


def combiner(kind: Attribute, element: Attribute) -> Combine:
    """The function of a `#vector.kind`."""
    return combining(str(kind.data.value), element)  # pyright: ignore


def combining(name: str, element: Attribute) -> Combine:
    """The function of a kind of reduction on elements of this type."""
    if is_float(element):
        return {
            "add": lambda a, b: a + b, "mul": lambda a, b: a * b,
            "maximumf": maximum, "minimumf": minimum,
            "maxnumf": lambda a, b: np.where((a > b) | (b != b), a, b),
            "minnumf": lambda a, b: np.where((a < b) | (b != b), a, b),
        }[name]  # fmt: skip
    w = Width.of(element)
    function: Combine = {
        "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "and": lambda a, b: a & b,
        "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "maxsi": np.maximum,
        "maxui": np.maximum, "minsi": np.minimum, "minui": np.minimum,
    }[name]  # fmt: skip
    convert = w.unsigned if name in ("maxui", "minui") else w.signed
    return lambda a, b: w.wrap(function(convert(a), convert(b)))


ATOMIC = {
    "addf": "add", "addi": "add", "andi": "and", "maxs": "maxsi", "maxu": "maxui",
    "mins": "minsi", "minu": "minui", "mulf": "mul", "muli": "mul", "ori": "or", "xori": "xor",
}  # fmt: skip
"""Kinds of atomic updates => kinds of reductions of another name."""


@implements("memref.atomic_rmw")
def _atomic(machine: Machine, op: Operation) -> Prepared:
    """Combines an element with a value, and returns the old element."""
    assert isinstance(op, memref.AtomicRMWOp)
    name = ATOMIC_KINDS[op.kind.value.data]
    kind = op.value.type
    combine = combining(ATOMIC.get(name, name), kind) if name != "assign" else lambda a, b: b

    def run(value: Any, target: MemRef, *indices: Any):
        check(op, indices, target.array.shape)
        old = target.array[indices].copy()
        target.array[indices] = combine(old, value)
        return (old,)

    return run


def window(op: Operation, memory: Any, indices: Sequence[Any], shape: Sequence[int]) -> np.ndarray:
    """The view of memory that a vector access of this shape covers. Raises RuntimeTrap."""
    array = array_of(memory)
    lead = array.ndim - len(shape)
    place: list[Any] = []
    for dim, (i, n) in enumerate(zip(indices, array.shape, strict=True)):
        count = shape[dim - lead] if dim >= lead else 1
        if i < 0 or i + count > n:
            at = [int(i) for i in indices]
            raise RuntimeTrap(f"vector of {tuple(shape)} at {at} of {array.shape}", op=op)
        place.append(slice(int(i), int(i) + count) if dim >= lead else int(i))
    return array[tuple(place)]


def _vector_shape(kind: Attribute) -> Sequence[int]:
    assert isinstance(kind, VectorType)
    return kind.get_shape()


@implements("vector.load")
def _load(machine: Machine, op: Operation) -> Prepared:
    """Loads a vector."""
    shape = _vector_shape(op.results[0].type)
    return lambda base, *indices: (window(op, base, indices, shape).copy(),)


@implements("vector.store")
def _store(machine: Machine, op: Operation) -> Prepared:
    """Stores a vector."""
    shape = _vector_shape(op.operands[0].type)

    def run(value: np.ndarray, base: MemRef, *indices: Any):
        window(op, base, indices, shape)[...] = value
        return ()

    return run


@implements("vector.maskedload")
def _masked_load(machine: Machine, op: Operation) -> Prepared:
    """Loads the elements where the mask is true."""
    operands = Operands(op)

    def run(*args: Any):
        b = operands.bind(args)
        result = b["pass_thru"].copy()
        row = b["base"].array[_leading(op, b["base"].array, b["indices"])]
        for lane in np.nonzero(b["mask"])[0]:
            result[lane] = row[_inside(op, int(b["indices"][-1] + lane), len(row))]
        return (result,)

    return run


@implements("vector.maskedstore")
def _masked_store(machine: Machine, op: Operation) -> Prepared:
    """Stores the elements where the mask is true."""
    operands = Operands(op)

    def run(*args: Any):
        b = operands.bind(args)
        row = b["base"].array[_leading(op, b["base"].array, b["indices"])]
        for lane in np.nonzero(b["mask"])[0]:
            row[_inside(op, int(b["indices"][-1] + lane), len(row))] = b["value_to_store"][lane]
        return ()

    return run


def _leading(op: Operation, array: np.ndarray, indices: Sequence[Any]) -> tuple[int, ...]:
    """All indices except the last, bounds-checked."""
    return tuple(_inside(op, int(i), n) for i, n in zip(indices[:-1], array.shape, strict=False))


def _inside(op: Operation, index: int, size: int) -> int:
    if not 0 <= index < size:
        raise RuntimeTrap(f"an access at {index} of a dim of {size}", op=op)
    return index


@implements("vector.gather")
def _gather(machine: Machine, op: Operation) -> Prepared:
    """Loads elements at a vector of innermost indices, where the mask is true."""
    operands = Operands(op)

    def run(*args: Any):
        b = operands.bind(args)
        array, offsets = array_of(b["base"]), [int(i) for i in b["offsets"]]
        result = b["pass_thru"].copy()
        for at in zip(*np.nonzero(b["mask"]), strict=True):
            last = _inside(op, offsets[-1] + int(b["index_vec"][at]), array.shape[-1])
            result[at] = array[(*_leading(op, array, offsets), last)]
        return (result,)

    return run


@implements("vector.scatter")
def _scatter(machine: Machine, op: Operation) -> Prepared:
    """Stores elements at a vector of innermost indices, where the mask is true, in order."""
    operands = Operands(op)

    def run(*args: Any):
        b = operands.bind(args)
        array, offsets = array_of(b["base"]), [int(i) for i in b["offsets"]]
        array = array.copy() if op.results else array
        for at in zip(*np.nonzero(b["mask"]), strict=True):
            last = _inside(op, offsets[-1] + int(b["index_vec"][at]), array.shape[-1])
            array[(*_leading(op, array, offsets), last)] = b["value_to_store"][at]
        return (array,) if op.results else ()

    return run


class _Transfer:
    """Maps lanes of a transfer to elements of memory, and finds the lanes that are in bounds."""

    def __init__(self, op: Operation, shape: Sequence[int]):
        self.shape = tuple(shape)
        results = op.properties["permutation_map"].data.results  # pyright: ignore
        self.dims = [e.position if isinstance(e, AffineDimExpr) else None for e in results]

    def lanes(self, array: np.ndarray, indices: Sequence[Any], mask: Any):
        rank = len(self.shape)
        places = [np.full((1,) * rank, int(i), np.int64) for i in indices]
        for axis, dim in enumerate(self.dims):
            if dim is not None:
                step = np.arange(self.shape[axis]).reshape(
                    [-1 if a == axis else 1 for a in range(rank)]
                )
                places[dim] = places[dim] + step
        inside = np.ones(self.shape, bool)
        for place, n in zip(places, array.shape, strict=True):
            inside = inside & (place >= 0) & (place < n)
        if mask is not None:
            kept = [a for a, dim in enumerate(self.dims) if dim is not None]
            order = sorted(range(len(kept)), key=lambda k: self.dims[kept[k]])  # pyright: ignore
            spread_mask = np.moveaxis(mask, range(mask.ndim), order) if mask.ndim else mask
            axes = tuple(a for a, dim in enumerate(self.dims) if dim is None)
            inside = inside & np.expand_dims(spread_mask, axes)
        clipped = [np.clip(p, 0, max(n - 1, 0)) for p, n in zip(places, array.shape, strict=True)]
        return tuple(np.broadcast_to(p, self.shape) for p in clipped), inside


@implements("vector.transfer_read")
def _transfer_read(machine: Machine, op: Operation) -> Prepared:
    """Reads elements of memory or of a tensor; padding out of bounds."""
    operands = Operands(op)
    transfer = _Transfer(op, _vector_shape(op.results[0].type))

    def run(*args: Any):
        b = operands.bind(args)
        array = array_of(b["source"])
        if array.size == 0:
            return (np.full(transfer.shape, b["padding"], array.dtype),)
        places, inside = transfer.lanes(array, b["indices"], b["mask"])
        return (np.where(inside, array[places], b["padding"]),)

    return run


@implements("vector.transfer_write")
def _transfer_write(machine: Machine, op: Operation) -> Prepared:
    """Writes the lanes that are in bounds."""
    operands = Operands(op)
    transfer = _Transfer(op, _vector_shape(op.operands[0].type))

    def run(*args: Any):
        b = operands.bind(args)
        array = b["source"].copy() if op.results else array_of(b["source"])
        places, inside = transfer.lanes(array, b["indices"], b["mask"])
        array[tuple(p[inside] for p in places)] = b["vector"][inside]
        return (array,) if op.results else ()

    return run


@implements("vector.broadcast", "vector.splat")
def _broadcast(machine: Machine, op: Operation) -> Prepared:
    """Broadcasts a scalar or a vector of lower rank."""
    shape, dtype = _vector_shape(op.results[0].type), dtype_of(op.results[0].type)
    if not isinstance(op.operands[0].type, VectorType):
        return lambda source: (np.full(shape, source, dtype),)
    return lambda source: (np.broadcast_to(np.asarray(source, dtype), shape),)


@implements("vector.fma")
def _fma(machine: Machine, op: Operation) -> Prepared:
    """a * b + c, rounded once"""
    return lambda a, b, c: (fma(a, b, c),)


def flushed(values: np.ndarray) -> np.ndarray:
    """Flushes subnormals to zeros of the same sign."""
    tiny = np.abs(values) < np.finfo(values.dtype).tiny
    return np.where(tiny, np.copysign(np.zeros((), values.dtype), values), values)


def bf16_dot(src: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """src + products of lane pairs, odd lanes first; subnormals are flushed to zero"""
    result = flushed(src)
    a, b = (flushed(x.astype(np.float32)) for x in (a, b))
    for part in (1, 0):
        result = flushed(fma(a[part::2], b[part::2], result))
    return result


@implements("x86vector.avx512.dot")
def _avx512_dot(machine: Machine, op: Operation) -> Prepared:
    """src + products of lane pairs"""
    return lambda src, a, b: (bf16_dot(src, a, b),)


@implements("irees.dot")
def _dot(machine: Machine, op: Operation) -> Prepared:
    """acc + sums of four products each, unsigned times signed"""

    def run(acc: np.ndarray, a: np.ndarray, b: np.ndarray):
        products = a.view(np.uint8).astype(np.int32) * b.astype(np.int32)
        return (acc + products.reshape(-1, 4).sum(axis=1, dtype=np.int32),)

    return run


def _position(op: Operation, dynamic: Sequence[Any], shape: Sequence[int]) -> tuple[int, ...]:
    at = mixed(numbers(op, "static_position"), iter(dynamic))
    for i, n in zip(at, shape, strict=False):
        _inside(op, i, n)
    return tuple(at)


@implements("vector.extract")
def _extract(machine: Machine, op: Operation) -> Prepared:
    """Extracts an element or a subvector."""

    def run(source: Any, *dynamic: Any):
        if not isinstance(source, np.ndarray):
            return (source,)
        result = source[_position(op, dynamic, source.shape)]
        vector = isinstance(op.results[0].type, VectorType)
        return (
            result.reshape(_vector_shape(op.results[0].type)) if vector else np.asarray(result)[()],
        )

    return run


@implements("vector.insert")
def _insert(machine: Machine, op: Operation) -> Prepared:
    """Inserts an element or a subvector."""

    def run(source: Any, dest: np.ndarray, *dynamic: Any):
        result = dest.copy()
        result[_position(op, dynamic, dest.shape)] = source
        return (result,)

    return run


@implements("vector.extractelement")
def _extract_element(machine: Machine, op: Operation) -> Prepared:
    """Extracts an element."""
    return lambda source, *at: (source[tuple(_inside(op, int(i), len(source)) for i in at)],)


@implements("vector.reduction")
def _reduction(machine: Machine, op: Operation) -> Prepared:
    """Reduces all elements, in order."""
    combine = combiner(op.properties["kind"], op.results[0].type)

    def run(source: np.ndarray, *start: Any):
        values = list(source)
        return (np.asarray(reduce(combine, [*start, *values]))[()],)

    return run


@implements("vector.multi_reduction")
def _multi_reduction(machine: Machine, op: Operation) -> Prepared:
    """Reduces along dims, in order."""
    combine = combiner(op.properties["kind"], op.operands[1].type)
    dims = list(numbers(op, "reduction_dims"))

    def run(source: np.ndarray, start: Any):
        rows = np.moveaxis(source, dims, range(len(dims)))
        rows = rows.reshape(-1, *rows.shape[len(dims) :])
        return (reduce(combine, [start, *rows]),)

    return run


@implements("vector.contract")
def _contract(machine: Machine, op: Operation) -> Prepared:
    """Reduces products over the reduction loops, in order."""
    maps = [m.data for m in op.properties["indexing_maps"]]  # pyright: ignore
    kinds = [str(k.data.value) for k in op.properties["iterator_types"]]  # pyright: ignore
    combine = combiner(op.properties["kind"], op.operands[2].type)
    reduced = [i for i, kind in enumerate(kinds) if "reduction" in kind]
    dtype = dtype_of(op.operands[2].type)

    def run(lhs: np.ndarray, rhs: np.ndarray, start: Any):
        sizes = ranges(maps[:2], [lhs.shape, rhs.shape], len(kinds))
        a, b = (
            np.broadcast_to(spread(x, m, sizes), sizes) for x, m in ((lhs, maps[0]), (rhs, maps[1]))
        )
        rows = np.moveaxis(a.astype(dtype) * b.astype(dtype), reduced, range(len(reduced)))
        rows = rows.reshape(-1, *[n for i, n in enumerate(sizes) if i not in reduced])
        parallel = [i for i in range(len(kinds)) if i not in reduced]
        order = [parallel.index(e.position) for e in maps[2].results]  # pyright: ignore
        result = start
        for row in rows:
            result = combine(result, row.transpose(order))
        return (result,)

    return run


@implements("vector.outerproduct")
def _outer(machine: Machine, op: Operation) -> Prepared:
    """The outer product of two vectors, combined with an accumulator if there is one."""
    combine = combiner(op.properties["kind"], element_type(op.results[0].type))

    def run(lhs: np.ndarray, rhs: Any, *acc: Any):
        products = lhs[:, None] * rhs[None, :] if isinstance(rhs, np.ndarray) else lhs * rhs
        return (combine(acc[0], products) if acc else products,)

    return run


@implements("vector.scan")
def _scan(machine: Machine, op: Operation) -> Prepared:
    """A prefix reduction along a dim."""
    dim = op.properties["reduction_dim"].value.data  # pyright: ignore
    inclusive = bool(op.properties["inclusive"].value.data)  # pyright: ignore
    combine = combiner(op.properties["kind"], element_type(op.operands[0].type))

    def run(source: np.ndarray, start: np.ndarray):
        rows, current = [], start
        for row in np.moveaxis(source, dim, 0):
            following = combine(current, row)
            rows.append(following if inclusive else current)
            current = following
        return np.stack(rows, axis=dim), rows[-1]

    return run


# --- shapes ----------------------------------------------------------------------------------

pure("vector.interleave", lambda a, b: np.stack([a, b], axis=-1).reshape(*a.shape[:-1], -1))


@implements("vector.deinterleave")
def _deinterleave(machine: Machine, op: Operation) -> Prepared:
    """The even and the odd elements."""
    return lambda source: (source[..., ::2], source[..., 1::2])


@implements("vector.shape_cast")
def _shape_cast(machine: Machine, op: Operation) -> Prepared:
    """Reshapes a vector."""
    shape = _vector_shape(op.results[0].type)
    return lambda source: (source.reshape(shape),)


@implements("vector.transpose")
def _transpose(machine: Machine, op: Operation) -> Prepared:
    """Permutes dims."""
    order = list(numbers(op, "permutation"))
    return lambda source: (source.transpose(order),)


@implements("vector.bitcast")
def _bitcast(machine: Machine, op: Operation) -> Prepared:
    """Reinterprets the bits as another element type."""
    dtype = dtype_of(op.results[0].type)
    return lambda source: (np.ascontiguousarray(source).view(dtype),)


@implements("vector.shuffle")
def _shuffle(machine: Machine, op: Operation) -> Prepared:
    """Selects elements of two concatenated vectors."""
    mask = np.array(numbers(op, "mask"))
    return lambda a, b: (np.concatenate([a, b])[mask],)


@implements("vector.step")
def _step(machine: Machine, op: Operation) -> Prepared:
    """0, 1, 2, ..."""
    result = np.arange(_vector_shape(op.results[0].type)[0], dtype=np.int64)
    return lambda: (result,)


def _below(shape: Sequence[int], bounds: Sequence[Any]) -> np.ndarray:
    result = np.zeros(shape, bool)
    result[tuple(slice(0, max(0, int(n))) for n in bounds)] = True
    return result


@implements("vector.create_mask")
def _create_mask(machine: Machine, op: Operation) -> Prepared:
    """A mask that is true below the bounds."""
    shape = _vector_shape(op.results[0].type)
    return lambda *bounds: (_below(shape, bounds),)


@implements("vector.constant_mask")
def _constant_mask(machine: Machine, op: Operation) -> Prepared:
    """A mask that is true below the bounds."""
    result = _below(_vector_shape(op.results[0].type), numbers(op, "mask_dim_sizes"))
    return lambda: (result,)


@implements("vector.from_elements")
def _from_elements(machine: Machine, op: Operation) -> Prepared:
    """A vector of these elements."""
    shape, dtype = _vector_shape(op.results[0].type), dtype_of(op.results[0].type)
    return lambda *elements: (np.array(elements, dtype).reshape(shape),)


@implements("vector.to_elements")
def _to_elements(machine: Machine, op: Operation) -> Prepared:
    """The elements of a vector."""
    return lambda source: tuple(source.reshape(-1))


def _strided(op: Operation, name: str) -> list[int]:
    return [i.value.data for i in op.properties[name]]  # pyright: ignore


@implements("vector.extract_strided_slice")
def _extract_strided(machine: Machine, op: Operation) -> Prepared:
    """Extracts a strided slice."""
    place = tuple(
        slice(o, o + (n - 1) * s + 1, s)
        for o, n, s in zip(*(_strided(op, k) for k in ("offsets", "sizes", "strides")), strict=True)
    )
    return lambda source: (source[place],)


@implements("vector.insert_strided_slice")
def _insert_strided(machine: Machine, op: Operation) -> Prepared:
    """Inserts a strided slice."""
    offsets, strides = _strided(op, "offsets"), _strided(op, "strides")
    shape = shape_of_type(op.operands[0])
    lead = len(offsets) - len(shape)

    def run(source: np.ndarray, dest: np.ndarray):
        result = dest.copy()
        place: list[Any] = list(offsets[:lead])
        for o, n, s in zip(offsets[lead:], shape, strides, strict=True):
            place.append(slice(o, o + (n - 1) * s + 1, s))
        result[tuple(place)] = source
        return (result,)

    return run


@implements("vector.mask")
def _mask(machine: Machine, op: Operation) -> Prepared:
    """Runs the op of its region on the lanes where the mask is true."""
    operands = Operands(op)
    masked = op.regions[0].block.first_op
    assert masked is not None
    reads = masked.name in ("vector.transfer_read", "vector.transfer_write")

    def run(*args: Any):
        b = operands.bind(args)
        if reads:
            function = machine.prepared(masked)
            return function(*[machine.value(o) for o in masked.operands], b["mask"])
        if masked.name == "vector.reduction":
            values = [machine.value(o) for o in masked.operands]
            kept = list(values[0][b["mask"]])
            combine = combiner(masked.properties["kind"], masked.results[0].type)
            if not kept and len(values) == 1:
                raise RuntimeTrap("the reduced vector has no lanes", op=op)
            return (np.asarray(reduce(combine, [*values[1:], *kept]))[()],)
        results = machine.run_block(op.regions[0].block)
        if not results or b["passthru"] is None:
            return results
        return [np.where(b["mask"], results[0], b["passthru"])]

    return run
