"""
iree_linalg_ext: im2col, custom_op, and the Winograd transforms, of linalg too.

The transforms are sums of few terms without a defined order, so they are computed in f64 and
rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from irees.dialects.iree_linalg_ext.convolution import Im2colOp
from irees.dialects.upstream.linalg.winograd import transform_of
from irees.errors import UnsupportedError
from irees.interpreters.ext_sorting import finish
from irees.interpreters.machine import Machine
from irees.interpreters.registry import Operands, Prepared, implements
from irees.interpreters.structured import mesh
from irees.interpreters.tensor import clamped, mixed, numbers
from irees.interpreters.values import array_of


def _digits(number: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """Delinearizes an index; the first coordinate is not bounded by its size."""
    found: list[np.ndarray] = []
    for position in range(len(sizes)):
        digit = number // prod(sizes[position + 1 :])
        found.append(digit % sizes[position] if position else digit)
    return found


@dataclass(frozen=True)
class _Gather:
    """How an im2col indexes the image: the attributes of its name."""

    strides: Sequence[int]
    dilations: Sequence[int]
    batch_pos: Sequence[int]
    m_pos: Sequence[int]
    k_pos: Sequence[int]
    input_k_perm: Sequence[int]

    def places(self, coordinates: Sequence[np.ndarray], rank: int) -> dict[int, np.ndarray]:
        """Returns the place in each dim of the padded image, by coordinates of batch, M and K."""
        batch, m = self.batch_pos, self.m_pos
        lead, rows = coordinates[: len(batch)], coordinates[len(batch) :][: len(m)]
        columns = coordinates[len(batch) + len(m) :]
        columns = [columns[self.input_k_perm.index(i)] for i in range(len(columns))]
        inner = [d for d in range(rank) if d not in batch]
        window = iter([c for d, c in zip(inner, columns, strict=True) if d in m])
        channel = iter([c for d, c in zip(inner, columns, strict=True) if d not in m])
        found: dict[int, np.ndarray] = dict(zip(batch, lead, strict=True))
        for d, row, stride, dilation in zip(m, rows, self.strides, self.dilations, strict=True):
            found[d] = row * stride + next(window) * dilation
        for d in self.k_pos:
            found[d] = next(channel)
        return found


@implements("iree_linalg_ext.im2col")
def _im2col(machine: Machine, op: Operation) -> Prepared:
    """Gathers the image element of each matrix element."""
    assert isinstance(op, Im2colOp)
    operands = Operands(op)
    gather = _Gather(*(list(numbers(op, each.name)) for each in fields(_Gather)))
    perm = list(numbers(op, "output_perm"))

    def run(*args: Any):
        b = operands.bind(args)
        source, shape = array_of(b["input"]), array_of(b["output"]).shape

        def sizes(name: str, otherwise: int) -> list[int]:
            given = mixed(numbers(op, f"static_{name}"), iter(b[name]))
            return given or [0] * otherwise

        rest = iter(b["output_sizes"])
        nested = op.static_output_sizes.data
        static = [list(group.get_values()) for group in nested]
        groups = [mixed(group, rest) for group in static]
        at = mesh(shape)
        coordinates: list[np.ndarray] = []
        for canonical, (offset, group) in enumerate(
            zip(sizes("offsets", len(shape)), groups, strict=True)
        ):
            coordinates += _digits(at[perm.index(canonical)] + offset, group)
        places = gather.places(coordinates, source.ndim)
        low = sizes("input_pad_low", source.ndim)
        inside = np.ones(shape, bool)
        for d, n in enumerate(source.shape):
            places[d] = places[d] - low[d]
            inside &= (places[d] >= 0) & (places[d] < n)
        ends = zip(sizes("output_pad_low", len(shape)), sizes("output_pad_high", len(shape)))
        for axis, (before, after) in enumerate(ends):
            inside &= (at[axis] >= before) & (at[axis] < shape[axis] - after)
        if b["pad_value"] is None:
            places = [np.broadcast_to(places[d], shape) for d in range(source.ndim)]
            return finish([b["output"]], [clamped(source, places)])
        result = np.full(shape, 0 if b["pad_value"] is None else b["pad_value"], source.dtype)
        wanted = [np.broadcast_to(places[d], shape)[inside] for d in range(source.ndim)]
        result[inside] = source[tuple(wanted)]
        return finish([b["output"]], [result])

    return run


@implements(
    *(f"linalg.winograd_{kind}_transform" for kind in ("input", "filter", "output")),
    *(f"iree_linalg_ext.winograd.{kind}_transform" for kind in ("input", "filter", "output")),
)
def _winograd(machine: Machine, op: Operation) -> Prepared:
    """M tile M^T for every tile, where M is the matrix of the transform."""
    t = transform_of(op)
    if t is None:
        raise UnsupportedError("a Winograd transform of this size or layout", op=op)
    left, right = (np.array(t.matrix(axis), np.float32).astype(np.float64) for axis in (0, 1))
    flat_rest, tile_rest = ([pair[i] for pair in t.rest] for i in (0, 1))

    def input_transform(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
        window = left.shape[1], right.shape[1]
        x = x.transpose([*t.image, *flat_rest])
        counts = (1, 1) if t.counts is None else tuple(shape[d] for d in t.counts)
        steps = t.outputs(0), t.outputs(1)
        ends = [(n - 1) * s + w for n, s, w in zip(counts, steps, window, strict=True)]
        missing = [max(0, e - n) for e, n in zip(ends, x.shape)]
        x = np.pad(x, [(0, missing[0]), (0, missing[1]), (0, 0), (0, 0)])
        if min(counts) < 1:
            return np.zeros(shape)
        tiles = np.lib.stride_tricks.sliding_window_view(x, window, (0, 1))
        tiles = tiles[: ends[0] : steps[0], : ends[1] : steps[1]][: counts[0], : counts[1]]
        result = np.einsum("ia,jb,hwcdab->ijhwcd", left, right, tiles)
        if t.counts is None:
            result = result[:, :, 0, 0]
        now = [0, 1, *(t.counts or ()), *tile_rest]
        return result.transpose(np.argsort(now))

    def output_transform(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
        assert t.counts is not None
        x = x.transpose([0, 1, *t.counts, *tile_rest])
        result = np.einsum("ia,jb,abhwcd->hiwjcd", left, right, x)
        h, i, w, j, *rest = result.shape
        result = result.reshape(h * i, w * j, *rest)
        result = result[: shape[t.image[0]], : shape[t.image[1]]]
        return result.transpose(np.argsort([*t.image, *flat_rest]))

    def run(source: Any, output: Any):
        x, target = array_of(source).astype(np.float64), array_of(output)
        transform = output_transform if t.kind == "output" else input_transform
        result = transform(x, target.shape)
        if t.accumulates:
            result = result + target.astype(np.float64)
        return finish([output], [result.astype(target.dtype)])

    return run


@implements("iree_linalg_ext.custom_op")
def _custom_op(machine: Machine, op: Operation) -> Prepared:
    """Runs the region on one tile: the whole operands."""
    block = op.regions[0].block
    loops = len(op.properties["iterator_types"])  # pyright: ignore

    def run(*args: Any):
        machine.loop_indices.append([np.int64(0)] * loops)
        try:
            return machine.run_block(block, args)
        finally:
            machine.loop_indices.pop()

    return run
