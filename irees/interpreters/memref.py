"""
memref: views of numpy arrays, with a reference to their allocation.

Every access is bounds-checked. The compiler clamps accesses that a program can get wrong, so an
access outside a memref, or a view outside its allocation, is a compiler bug and traps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    MemRefType,
)
from xdsl.ir import Operation

from irees.errors import RuntimeTrap
from irees.interpreters.machine import Machine
from irees.interpreters.registry import Operands, Prepared, implements
from irees.interpreters.structured import affine_value
from irees.interpreters.tensor import mixed, numbers, reassociation, shape_of_type
from irees.interpreters.values import MemRef, array_of, constant, dtype_of, poison, shape_from

UNBOUNDED = (1 << 62) - 1
"""Size of codegen's unbounded flat views; the interpreter limits them to the allocation."""


def check(op: Operation, indices: Sequence[Any], shape: Sequence[int]) -> None:
    """Raises RuntimeTrap unless the indices are in bounds."""
    for i, n in zip(indices, shape, strict=True):
        if not 0 <= i < n:
            place = [int(i) for i in indices]
            raise RuntimeTrap(f"index {place} of a memref of shape {tuple(shape)}", op=op)


@implements("memref.load")
def _load(machine: Machine, op: Operation) -> Prepared:
    """Loads an element."""

    def run(source: MemRef, *indices: Any):
        array = source.array
        check(op, indices, array.shape)
        return (array[indices],)

    return run


@implements("memref.store")
def _store(machine: Machine, op: Operation) -> Prepared:
    """Stores an element."""

    def run(value: Any, target: MemRef, *indices: Any):
        array = target.array
        check(op, indices, array.shape)
        array[indices] = value
        return ()

    return run


@implements("affine.load")
def _affine_load(machine: Machine, op: Operation) -> Prepared:
    """Loads an element at the results of an affine map."""
    at = _mapped(op)

    def run(source: MemRef, *arguments: Any):
        indices = at(arguments)
        check(op, indices, source.array.shape)
        return (source.array[indices],)

    return run


@implements("affine.store")
def _affine_store(machine: Machine, op: Operation) -> Prepared:
    """Stores an element at the results of an affine map."""
    at = _mapped(op)

    def run(value: Any, target: MemRef, *arguments: Any):
        indices = at(arguments)
        check(op, indices, target.array.shape)
        target.array[indices] = value
        return ()

    return run


def _mapped(op: Operation) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Returns the function from the arguments of an affine access to its indices."""
    map_ = op.properties.get("map")
    if not isinstance(map_, AffineMapAttr):
        return lambda arguments: tuple(arguments)
    dims = map_.data.num_dims
    return lambda arguments: tuple(
        affine_value(e, arguments[:dims], arguments[dims:]) for e in map_.data.results
    )


@implements("memref.alloc", "memref.alloca")
def _alloc(machine: Machine, op: Operation) -> Prepared:
    """Allocates uninitialized memory."""
    kind, operands = op.results[0].type, Operands(op)
    dtype = dtype_of(kind)

    def run(*args: Any):
        sizes = operands.bind(args)["dynamic_sizes"]
        return (MemRef.of(poison(shape_from(kind, sizes), dtype)),)

    return run


@implements("memref.dealloc")
def _dealloc(machine: Machine, op: Operation) -> Prepared:
    """Does nothing: memory is garbage-collected."""
    return lambda source: ()


@implements("memref.copy")
def _copy(machine: Machine, op: Operation) -> Prepared:
    """Copies all elements."""

    def run(source: MemRef, target: MemRef):
        if source.array.shape != target.array.shape:
            raise RuntimeTrap(f"{source.array.shape} copied to {target.array.shape}", op=op)
        target.array[...] = source.array
        return ()

    return run


@implements("memref.global")
def _global(machine: Machine, op: Operation) -> Prepared:
    """Does nothing: `memref.get_global` reads the symbol."""
    return lambda: ()


@implements("memref.get_global")
def _get_global(machine: Machine, op: Operation) -> Prepared:
    """The memory of a global."""
    name = op.properties["name"].string_value()  # pyright: ignore

    def run():
        symbol = machine.symbol(name, op)
        if symbol not in machine.globals:
            kind, value = symbol.properties["type"], symbol.properties.get("initial_value")
            if isinstance(value, DenseIntOrFPElementsAttr | DenseResourceAttr):
                array = np.array(constant(value))
            else:
                array = poison(kind.get_shape(), dtype_of(kind))  # pyright: ignore
            machine.globals[symbol] = MemRef.of(array)
        return (machine.globals[symbol],)

    return run


@implements("memref.subview")
def _subview(machine: Machine, op: Operation) -> Prepared:
    """A strided subview."""
    offsets, sizes, strides = (
        numbers(op, f"static_{name}") for name in ("offsets", "sizes", "strides")
    )
    kept = shape_of_type(op.results[0])

    def run(source: MemRef, *dynamic: Any):
        values = iter(dynamic)
        at, size, step = (mixed(n, values) for n in (offsets, sizes, strides))
        for extent, o, n, s in zip(source.array.shape, at, size, step, strict=True):
            if n < 0 or (n > 0 and not (0 <= o < extent and 0 <= o + (n - 1) * s < extent)):
                raise RuntimeTrap(f"subview [{o}] [{n}] [{s}] of a dim of {extent}", op=op)
        own = source.strides
        offset = source.offset + sum(o * s for o, s in zip(at, own, strict=True))
        new = [a * b for a, b in zip(step, own, strict=True)]
        view = source.view(offset, size, new)
        drop = _dropped(sizes, kept)
        return (MemRef(view.array.squeeze(drop), view.base, view.offset),)

    return run


def _dropped(sizes: Sequence[int], kept: Sequence[int]) -> tuple[int, ...]:
    """Unit dims that the rank-reduced type drops, first fit."""
    missing = len(sizes) - len(kept)
    found: list[int] = []
    position = 0
    for dim, size in enumerate(sizes):
        fits = position < len(kept) and kept[position] == size
        if size == 1 and len(found) < missing and not fits:
            found.append(dim)
        else:
            position += 1
    return tuple(found)


@implements("memref.reinterpret_cast")
def _reinterpret_cast(machine: Machine, op: Operation) -> Prepared:
    """An arbitrary view of the allocation."""
    parts = [numbers(op, f"static_{name}") for name in ("offsets", "sizes", "strides")]

    def run(source: MemRef, *dynamic: Any):
        values = iter(dynamic)
        (offset,), sizes, strides = (mixed(n, values) for n in parts)
        if sizes == [UNBOUNDED] and strides == [1]:
            sizes = [max(0, source.base.size - offset)]
        return (source.view(offset, sizes, strides),)

    return run


@implements("irees.view_bytes")
def _view_bytes(machine: Machine, op: Operation) -> Prepared:
    """The bytes of booleans."""
    return lambda source: (
        MemRef(source.array.view(np.int8), source.base.view(np.int8), source.offset),
    )


@implements("irees.view_parts")
def _view_parts(machine: Machine, op: Operation) -> Prepared:
    """The parts of complex numbers as a last dim of 2, or pairs of numbers as complex ones."""
    kind = op.results[0].type
    dtype, rank = dtype_of(kind), len(shape_of_type(op.results[0]))
    buffers = isinstance(kind, MemRefType)

    def run(source: Any):
        array = array_of(source)
        shape = (*np.shape(array), 2)[:rank]
        data = np.ascontiguousarray(array).reshape(-1).view(dtype)
        return (MemRef(data.reshape(shape), data) if buffers else data.reshape(shape),)

    return run


@implements("memref.view")
def _view(machine: Machine, op: Operation) -> Prepared:
    """A view of bytes as elements of another type."""
    kind = op.results[0].type
    dtype = dtype_of(kind)

    def run(source: MemRef, shift: Any, *sizes: Any):
        shape = shape_from(kind, sizes)
        if any(n < 0 for n in shape) or shift < 0:
            raise RuntimeTrap(f"a view at {shift} of shape {shape}", op=op)
        size = prod(shape) * dtype.itemsize
        if shift + size > source.array.size:
            raise RuntimeTrap(f"bytes {shift} to {shift + size} of {source.array.size}", op=op)
        data = source.array[int(shift) : int(shift) + size].view(dtype)
        return (MemRef(data.reshape(shape), data),)

    return run


@implements("memref.extract_strided_metadata")
def _metadata(machine: Machine, op: Operation) -> Prepared:
    """The allocation, and the offset, sizes and strides of a view."""

    def run(source: MemRef):
        sizes = [np.int64(n) for n in source.array.shape]
        strides = [np.int64(s) for s in source.strides]
        base = MemRef(source.base[:1].reshape(()) if source.base.size else source.base, source.base)
        return (base, np.int64(source.offset), *sizes, *strides)

    return run


@implements("memref.extract_aligned_pointer_as_index")
def _address(machine: Machine, op: Operation) -> Prepared:
    """The address of a view's allocation."""
    return lambda source: (np.int64(source.base.ctypes.data),)


@implements("memref.collapse_shape", "memref.expand_shape")
def _reshape(machine: Machine, op: Operation) -> Prepared:
    """Collapses or expands dims without a copy. Raises RuntimeTrap if strides do not allow it."""
    groups = reassociation(op)
    static = op.properties.get("static_output_shape")

    def run(source: MemRef, *sizes: Any):
        if static is not None:
            shape = mixed(static.get_values(), iter(sizes))  # pyright: ignore
        elif op.name == "memref.expand_shape":
            shape = list(shape_of_type(op.results[0]))
        else:
            shape = [prod(source.array.shape[i] for i in g) for g in groups]
        if prod(shape) != source.array.size:
            raise RuntimeTrap(f"{source.array.shape} cannot become {shape}", op=op)
        result = source.array.reshape(shape)
        if result.size and not np.shares_memory(result, source.array):
            raise RuntimeTrap(f"strides {source.strides} do not allow the shape {shape}", op=op)
        return (MemRef(result, source.base, source.offset),)

    return run


@implements("memref.transpose")
def _transpose(machine: Machine, op: Operation) -> Prepared:
    """A view with permuted dims."""
    order = [e.position for e in op.properties["permutation"].data.results]  # pyright: ignore
    return lambda source: (MemRef(source.array.transpose(order), source.base, source.offset),)


@implements("memref.memory_space_cast", "memref.assume_alignment")
def _same(machine: Machine, op: Operation) -> Prepared:
    """The same view."""
    return lambda source: (source,) if op.results else ()


@implements("memref.prefetch")
def _prefetch(machine: Machine, op: Operation) -> Prepared:
    """Does nothing, even out of bounds."""
    return lambda *_: ()


@implements("bufferization.to_tensor", "bufferization.clone")
def _to_tensor(machine: Machine, op: Operation) -> Prepared:
    """Copies the current elements."""
    if isinstance(op.results[0].type, MemRefType):
        return lambda source: (MemRef.of(source.array.copy()),)
    return lambda source: (source.array.copy(),)


@implements("bufferization.to_buffer")
def _to_buffer(machine: Machine, op: Operation) -> Prepared:
    """Copies the elements to new memory."""
    return lambda source: (MemRef.of(source.copy()),)
