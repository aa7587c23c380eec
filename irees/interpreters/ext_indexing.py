"""iree_linalg_ext: scatter, gather, map_load and map_store, with indices in order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from irees.errors import RuntimeTrap
from irees.interpreters.ext_sorting import finish
from irees.interpreters.machine import Machine
from irees.interpreters.registry import Operands, Prepared, implements
from irees.interpreters.structured import is_vectorizable, mesh
from irees.interpreters.tensor import numbers
from irees.interpreters.values import array_of


class _Places:
    """The coordinates of a batch of slices."""

    def __init__(self, op: Operation):
        self.dims = list(numbers(op, "dimension_map"))

    def of(self, indices: np.ndarray, batch: int) -> np.ndarray:
        """Coordinates by batch index, in the order of the indexed dims."""
        flat = indices.astype(np.int64)
        if indices.ndim == batch:
            flat = flat[..., None]
        flat = flat.reshape(flat.size // len(self.dims), len(self.dims))
        return flat[:, np.argsort(self.dims)]


@implements("iree_linalg_ext.scatter", "tm_tensor.scatter")
def _scatter(machine: Machine, op: Operation) -> Prepared:
    """Combines slices into a tensor; out-of-bounds indices are skipped."""
    operands, places, body = Operands(op), _Places(op), op.regions[0].block
    depth = len(places.dims)
    last = body.last_op
    assert last is not None
    overwrites = last.operands[0] is body.args[0]
    vectorizable = is_vectorizable(body)

    def run(*args: Any):
        b = operands.bind(args)
        if "inputs" in b:  # tm_tensor
            names = ("updates", "indices", "original")
            b = dict(zip(names, (*b["inputs"], *b["outputs"]), strict=True))
        updates, indices = array_of(b["updates"]), array_of(b["indices"])
        result = array_of(b["original"]).copy()
        batch = updates.ndim - (result.ndim - depth)
        slices = updates.reshape(prod(updates.shape[:batch]), *updates.shape[batch:])
        allowed = array_of(b["mask"]).reshape(-1) != 0 if b.get("mask") is not None else None
        for number, at in enumerate(places.of(indices, batch)):
            if allowed is not None and not allowed[number]:
                continue
            if not all(0 <= i < n for i, n in zip(at, result.shape, strict=False)):
                continue
            whole, new = result[tuple(at)], slices[number]
            if any(n > room for n, room in zip(new.shape, whole.shape, strict=True)):
                raise RuntimeTrap(f"slices of shape {new.shape} into {whole.shape}", op=op)
            place = (*at, *map(slice, new.shape))
            old = result[place]
            if overwrites:
                result[place] = new
            elif vectorizable:
                result[place] = machine.run_block(body, [new, old])[0]
            else:
                for inner in np.ndindex(*new.shape):
                    result[(*at, *inner)] = machine.run_block(body, [new[inner], old[inner]])[0]
        return finish([b["original"]], [result])

    return run


@implements("iree_linalg_ext.gather")
def _gather(machine: Machine, op: Operation) -> Prepared:
    """Gathers slices of a tensor; indices are clamped."""
    operands, places = Operands(op), _Places(op)
    depth = len(places.dims)

    def run(*args: Any):
        b = operands.bind(args)
        source, indices = array_of(b["source"]), array_of(b["indices"])
        result = array_of(b["output"]).copy()
        batch = result.ndim - (source.ndim - depth)
        slices = result.reshape(prod(result.shape[:batch]), *result.shape[batch:])
        allowed = array_of(b["mask"]).reshape(-1) != 0 if b["mask"] is not None else None
        for number, at in enumerate(places.of(indices, batch)):
            if allowed is not None and not allowed[number]:
                continue
            if 0 in source.shape:
                slices[number] = 0
                continue
            inside = tuple(
                min(max(int(i), 0), n - 1) for i, n in zip(at, source.shape, strict=False)
            )
            slices[number] = source[inside]
        return finish([b["output"]], [slices.reshape(result.shape)])

    return run


def _coordinates(machine: Machine, op: Operation, shape: Sequence[int]) -> list[np.ndarray]:
    """The values that the region yields for each index, as arrays of this shape."""
    body = op.regions[0].block
    if is_vectorizable(body):
        return [np.broadcast_to(v, shape) for v in machine.run_block(body, mesh(shape))]
    rows = [machine.run_block(body, [np.int64(i) for i in at]) for at in np.ndindex(*shape)]
    return [np.array(column).reshape(shape) for column in zip(*rows, strict=True)]


@implements("iree_linalg_ext.map_load")
def _map_load(machine: Machine, op: Operation) -> Prepared:
    """Reads each element at the coordinates from the region; padding out of bounds."""

    def run(source: Any, output: Any):
        data, shape = array_of(source), array_of(output).shape
        if 0 in shape:
            return finish([output], [array_of(output)])
        *places, padding = _coordinates(machine, op, shape)
        inside = np.ones(shape, bool)
        for place, n in zip(places, data.shape, strict=True):
            inside &= (place >= 0) & (place < n)
        result = padding.copy()
        result[inside] = data[tuple(p[inside] for p in places)]
        return finish([output], [result])

    return run


@implements("iree_linalg_ext.map_store")
def _map_store(machine: Machine, op: Operation) -> Prepared:
    """Writes each element to the coordinates from the region, if its mask is true, in order."""

    def run(source: Any, output: Any):
        data = array_of(source)
        result = array_of(output).copy()
        if data.size:
            *places, wanted = _coordinates(machine, op, data.shape)
            inside = wanted.astype(bool)
            for place, n in zip(places, result.shape, strict=True):
                inside = inside & (place >= 0) & (place < n)
            if places:
                result[tuple(p[inside] for p in places)] = data[inside]
            elif inside.any():
                result[...] = data[inside][-1]
        return finish([output], [result])

    return run
