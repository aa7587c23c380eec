"""tensor: immutable arrays. An out-of-bounds index reads the nearest element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import bufferization
from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType
from xdsl.ir import Operation

from irees.dialects.result_sizes import reassociation
from irees.errors import RuntimeTrap
from irees.interpreters.machine import Machine
from irees.interpreters.registry import Prepared, implements
from irees.interpreters.values import array_of, constant, dtype_of, filled, poison, shape_from


def mixed(static: Sequence[int], dynamic: Iterator[Any]) -> list[int]:
    """Static numbers, with dynamic values in place of the `DYNAMIC_INDEX` marker."""
    return [int(next(dynamic)) if n == DYNAMIC_INDEX else n for n in static]


def numbers(op: Operation, name: str) -> Sequence[int]:
    """The integers of an array attribute."""
    return op.properties[name].get_values()  # pyright: ignore


def segment(op: Operation, *names: str) -> dict[str, slice]:
    """The operand range of each segment, by name."""
    sizes = numbers(op, "operandSegmentSizes")
    found: dict[str, slice] = {}
    start = 0
    for name, size in zip(names, sizes, strict=True):
        found[name] = slice(start, start + size)
        start += size
    return found


def clamped(array: np.ndarray, indices: Sequence[Any]) -> Any:
    """array[indices], with each index clamped to its dim; 0 for an empty array."""
    if 0 in array.shape:
        shape = np.broadcast_shapes(*(np.shape(i) for i in indices))
        return np.zeros(shape, array.dtype) if shape else array.dtype.type(0)
    place = tuple(
        np.minimum(np.maximum(i, 0), n - 1) for i, n in zip(indices, array.shape, strict=True)
    )
    return array[place]


def inserted(array: np.ndarray, indices: Sequence[Any], value: Any) -> np.ndarray:
    """A copy with array[indices] = value; an out-of-bounds index has no effect."""
    if not all(0 <= i < n for i, n in zip(indices, array.shape, strict=True)):
        return array
    result = array.copy()
    result[tuple(int(i) for i in indices)] = value
    return result


@implements("tensor.extract", elementwise=True)
def _extract(machine: Machine, op: Operation) -> Prepared:
    """An element."""
    return lambda source, *indices: (clamped(source, indices),)


@implements("tensor.dim", "memref.dim", elementwise=True)
def _dim(machine: Machine, op: Operation) -> Prepared:
    """The size of a dim. Raises RuntimeTrap for a dim out of range."""

    def run(source: Any, dim: Any):
        shape, index = np.array(array_of(source).shape, np.int64), np.asarray(dim)
        outside = index[(index < 0) | (index >= len(shape))]
        if outside.size:
            raise RuntimeTrap(f"dim {outside[0]} of a value of rank {len(shape)}", op=op)
        return (shape[index],)

    return run


@implements("tensor.rank", "memref.rank")
def _rank(machine: Machine, op: Operation) -> Prepared:
    """The number of dims."""
    return lambda source: (np.int64(array_of(source).ndim),)


@implements("tensor.insert")
def _insert(machine: Machine, op: Operation) -> Prepared:
    """Inserts an element."""
    return lambda value, dest, *indices: (inserted(dest, indices, value),)


@implements("bufferization.alloc_tensor")
def _alloc_tensor(machine: Machine, op: Operation) -> Prepared:
    """Allocates a tensor, initialized from `copy` if given."""
    assert isinstance(op, bufferization.AllocTensorOp)
    if op.copy is None:
        return _empty(machine, op)
    return lambda source: (source.copy(),)


@implements("tensor.empty")
def _empty(machine: Machine, op: Operation) -> Prepared:
    """An uninitialized tensor."""
    kind = op.results[0].type
    dtype = dtype_of(kind)
    return lambda *sizes: (poison(shape_from(kind, sizes), dtype),)


@implements("tensor.splat")
def _splat(machine: Machine, op: Operation) -> Prepared:
    """A tensor filled with one element."""
    kind = op.results[0].type
    return lambda value, *sizes: (filled(value, shape_from(kind, sizes), dtype_of(kind)),)


@implements("tensor.from_elements")
def _from_elements(machine: Machine, op: Operation) -> Prepared:
    """A tensor of these elements."""
    kind = op.results[0].type
    assert isinstance(kind, ShapedType)
    shape, dtype = kind.get_shape(), dtype_of(kind)
    return lambda *elements: (np.array(elements, dtype).reshape(shape),)


@implements("tensor.generate")
def _generate(machine: Machine, op: Operation) -> Prepared:
    """A tensor whose elements are computed by a region from their indices."""
    kind = op.results[0].type
    body = op.regions[0].block

    def run(*sizes: Any):
        result = poison(shape_from(kind, sizes), dtype_of(kind))
        for at in product(*(range(n) for n in result.shape)):
            result[at] = machine.run_block(body, [np.int64(i) for i in at])[0]
        return (result,)

    return run


@implements("tensor.cast", "memref.cast")
def _cast(machine: Machine, op: Operation) -> Prepared:
    """The same value; static sizes of the type must match the actual sizes."""
    kind = op.results[0].type
    wanted = kind.get_shape() if isinstance(kind, ShapedType) and hasattr(kind, "shape") else None

    def run(source: Any):
        shape = array_of(source).shape
        if wanted is not None and any(
            n not in (DYNAMIC_INDEX, m) for n, m in zip(wanted, shape, strict=True)
        ):
            raise RuntimeTrap(f"a value of shape {shape} is no {kind}", op=op)
        return (source,)

    return run


def reshaped(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """
    Reshapes an array. Raises RuntimeTrap if the number of elements differs, MemoryError if numpy
    has no array of such a shape, which may be empty.
    """
    if prod(shape) != array.size or any(n < 0 for n in shape):
        raise RuntimeTrap(f"{array.shape} cannot become {tuple(shape)}")
    try:
        return array.reshape(shape)
    except ValueError as error:
        raise MemoryError(f"no array has the shape {tuple(shape)}") from error


@implements("tensor.collapse_shape")
def _collapse(machine: Machine, op: Operation) -> Prepared:
    """Collapses groups of adjacent dims."""
    groups = reassociation(op)
    return lambda source: (reshaped(source, [prod(source.shape[i] for i in g) for g in groups]),)


@implements("tensor.expand_shape")
def _expand(machine: Machine, op: Operation) -> Prepared:
    """Expands dims to groups of dims."""
    static, groups = numbers(op, "static_output_shape"), reassociation(op)

    def run(source: np.ndarray, *sizes: Any):
        shape = mixed(static, iter(sizes))
        for size, group in zip(source.shape, groups, strict=False):
            if prod(shape[i] for i in group) != size:
                raise RuntimeTrap(f"{source.shape} cannot become {tuple(shape)}")
        return (reshaped(source, shape),)

    return run


@implements("tensor.reshape")
def _reshape(machine: Machine, op: Operation) -> Prepared:
    """Reshapes a tensor to a shape given by another tensor."""
    return lambda source, shape: (reshaped(source, [int(n) for n in shape]),)


def slices(
    shape: Sequence[int], offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> tuple[Any, ...]:
    """The numpy index of a slice. Raises RuntimeTrap if it is out of bounds."""
    found: list[Any] = []
    for extent, offset, size, stride in zip(shape, offsets, sizes, strides, strict=True):
        last = offset + (size - 1) * stride
        if size < 0 or (size > 0 and not (0 <= offset < extent and 0 <= last < extent)):
            raise RuntimeTrap(f"slice [{offset}] [{size}] [{stride}] of a dim of size {extent}")
        end = last + (1 if stride > 0 else -1)
        found.append(slice(0, 0) if size == 0 else slice(offset, None if end < 0 else end, stride))
    return (*found, Ellipsis)


def _dropped(sizes: Sequence[int], static: Sequence[int], kept: Sequence[int]) -> list[int]:
    """Unit dims of a slice that its rank-reduced type `kept` drops."""
    missing = len(sizes) - len(kept)
    found: list[int] = []
    position = 0
    for dim, size in enumerate(static):
        fits = position < len(kept) and kept[position] == size
        if not fits and size == 1 and len(found) < missing:
            found.append(dim)
        else:
            position += 1
    return found


class Slicing:
    """The offsets, sizes and strides of an op, with dynamic values in order."""

    def __init__(self, op: Operation, part: Sequence[int]):
        self.offsets = numbers(op, "static_offsets")
        self.sizes = numbers(op, "static_sizes")
        self.strides = numbers(op, "static_strides")
        self.dropped = tuple(_dropped(self.sizes, self.sizes, part))

    def of(self, shape: Sequence[int], dynamic: Sequence[Any]) -> tuple[Any, ...]:
        """The numpy index of the slice for an array of this shape."""
        values = iter(dynamic)
        lists = [mixed(n, values) for n in (self.offsets, self.sizes, self.strides)]
        return slices(shape, *lists)


def shape_of_type(value: Any) -> Sequence[int]:
    """The static shape of an SSA value."""
    assert isinstance(value.type, ShapedType)
    return value.type.get_shape()


@implements("tensor.extract_slice")
def _extract_slice(machine: Machine, op: Operation) -> Prepared:
    """A slice."""
    slicing = Slicing(op, shape_of_type(op.results[0]))

    def run(source: np.ndarray, *dynamic: Any):
        return (source[slicing.of(source.shape, dynamic)].squeeze(slicing.dropped),)

    return run


@implements("tensor.insert_slice")
def _insert_slice(machine: Machine, op: Operation) -> Prepared:
    """Inserts a slice."""
    slicing = Slicing(op, shape_of_type(op.operands[0]))

    def run(source: np.ndarray, dest: np.ndarray, *dynamic: Any):
        result = dest.copy()
        put(result, slicing.of(dest.shape, dynamic), source, slicing.dropped)
        return (result,)

    return run


@implements("tensor.parallel_insert_slice")
def _parallel_insert_slice(machine: Machine, op: Operation) -> Prepared:
    """Inserts a slice into a shared output of an scf.forall, in place."""
    slicing = Slicing(op, shape_of_type(op.operands[0]))

    def run(source: np.ndarray, dest: np.ndarray, *dynamic: Any):
        put(dest, slicing.of(dest.shape, dynamic), source, slicing.dropped)
        return ()

    return run


def put(
    target: np.ndarray, place: tuple[Any, ...], source: np.ndarray, dropped: Sequence[int]
) -> None:
    """target[place] = source. Raises RuntimeTrap when the sizes differ."""
    part = target[place]
    source = np.expand_dims(source, tuple(dropped))
    if part.shape != source.shape:
        raise RuntimeTrap(f"a slice of shape {part.shape} cannot hold {source.shape}")
    part[...] = source


def overwritten(target: np.ndarray, place: tuple[Any, ...], source: Any) -> np.ndarray:
    """A copy of an array with `target[place] = source`. Raises RuntimeTrap for other sizes."""
    result = np.array(target, order="C")
    put(result, place, np.broadcast_to(source, result[place].shape) if np.ndim(source) == 0
        else source, ())  # fmt: skip
    return result


@implements("tensor.concat")
def _concat(machine: Machine, op: Operation) -> Prepared:
    """Concatenates tensors along a dim."""
    dim = op.properties["dim"].value.data  # pyright: ignore
    return lambda *inputs: (np.concatenate(inputs, axis=dim),)


@implements("tensor.pad")
def _pad(machine: Machine, op: Operation) -> Prepared:
    """Pads a tensor with values that a region computes from the index."""
    parts = segment(op, "source", "low", "high")
    low, high = numbers(op, "static_low"), numbers(op, "static_high")
    body = op.regions[0].block
    yielded = body.last_op.operands[0]  # pyright: ignore
    uniform = all(not list(a.uses) for a in body.args)

    def run(*operands: Any):
        source = operands[0]
        before = mixed(low, iter(operands[parts["low"]]))
        after = mixed(high, iter(operands[parts["high"]]))
        shape = [n + b + a for n, b, a in zip(source.shape, before, after, strict=True)]
        result = poison(shape, source.dtype)
        if result.size == 0:
            return (result,)
        if uniform:
            machine.run_block(body, [np.int64(0)] * len(shape))
            result[...] = machine.value(yielded)
        else:
            for at in product(*(range(n) for n in shape)):
                result[at] = machine.run_block(body, [np.int64(i) for i in at])[0]
        inner: list[slice] = []
        outer: list[slice] = []
        for n, b, total in zip(source.shape, before, shape, strict=True):
            # negative padding crops
            first, last = max(b, 0), min(n + b, total)
            inner.append(slice(first, max(last, first)))
            outer.append(slice(first - b, max(last, first) - b))
        result[tuple(inner)] = source[tuple(outer)]
        return (result,)

    return run


def _coordinates(indices: np.ndarray) -> list[np.ndarray]:
    return [indices[..., i].astype(np.int64) for i in range(indices.shape[-1])]


@implements("tensor.gather")
def _gather(machine: Machine, op: Operation) -> Prepared:
    """Gathers slices at coordinates, which are clamped to the dims."""
    dims = list(numbers(op, "gather_dims"))
    result_type = op.results[0].type

    def run(source: np.ndarray, indices: np.ndarray):
        moved = np.moveaxis(source, dims, range(len(dims)))
        places = [
            np.clip(c, 0, max(n - 1, 0))
            for c, n in zip(_coordinates(indices), moved.shape, strict=False)
        ]
        result = moved[tuple(places)]
        kept = shape_of_type(op.results[0])
        if len(kept) != result.ndim:
            batch = indices.ndim - 1
            axes = [batch + d for d in dims]
            result = np.expand_dims(result, tuple(axes))
        assert result.ndim == len(kept), result_type
        return (np.ascontiguousarray(result),)

    return run


@implements("tensor.scatter")
def _scatter(machine: Machine, op: Operation) -> Prepared:
    """Scatters slices to coordinates; out-of-bounds ones are skipped."""
    dims = list(numbers(op, "scatter_dims"))

    def run(source: np.ndarray, dest: np.ndarray, indices: np.ndarray):
        result = dest.copy()
        moved = np.moveaxis(result, dims, range(len(dims)))
        batch = indices.shape[:-1]
        rest = moved.shape[len(dims) :]
        updates = source.reshape(*batch, *rest)
        for at in product(*(range(n) for n in batch)):
            place = [int(i) for i in indices[at]]
            if all(0 <= i < n for i, n in zip(place, moved.shape, strict=False)):
                moved[tuple(place)] = updates[at]
        return (result,)

    return run


@implements("util.unfoldable_constant")
def _unfoldable(machine: Machine, op: Operation) -> Prepared:
    """A constant."""
    result = (constant(op.properties["value"]),)
    return lambda: result
