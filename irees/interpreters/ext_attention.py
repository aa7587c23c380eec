"""
Attention, softmax, fft, pack and unpack: ops defined by a formula.

Softmax and attention do not define an order of operations, so they are computed in f64 and rounded
once, which is the center of any tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation
from xdsl.ir.affine import AffineMap

from irees.dialects.iree_linalg_ext import RegionUnits
from irees.dialects.iree_linalg_ext.convolution import LAST_STAGE
from irees.errors import RuntimeTrap
from irees.interpreters.ext_sorting import finish
from irees.interpreters.machine import Machine
from irees.interpreters.registry import Operands, Prepared, implements
from irees.interpreters.structured import Loops, is_vectorizable, mesh, ranges, spread
from irees.interpreters.tensor import mixed, numbers
from irees.interpreters.values import array_of, dtype_of


@implements("linalg.softmax")
def _softmax(machine: Machine, op: Operation) -> Prepared:
    """exp(x - max) / sum(exp(x - max))"""
    dim = op.properties["dimension"].value.data  # pyright: ignore

    def run(source: Any, output: Any):
        x = array_of(source).astype(np.float64)
        if x.size == 0:
            return finish([output], [array_of(output)])
        e = np.exp(x - x.max(axis=dim, keepdims=True))
        return finish([output], [e / e.sum(axis=dim, keepdims=True)])

    return run


def _dims(indexing: AffineMap) -> list[int]:
    return [e.position for e in indexing.results]  # pyright: ignore


class _Attention:
    """The loops of an attention op, and the dims of its operands."""

    def __init__(self, machine: Machine, op: Operation):
        self.machine, self.op, self.operands = machine, op, Operands(op)
        self.maps = [m.data for m in op.properties["indexing_maps"]]  # pyright: ignore
        query, key, value = (set(_dims(m)) for m in self.maps[:3])
        results = len(op.results) or (3 if op.name.endswith("online_attention") else 1)
        output = set(_dims(self.maps[-results]))
        self.keys = sorted((query & key) - value - output)
        self.positions = sorted((key & value) - query - output)
        if not self.keys or not self.positions:
            raise RuntimeTrap("the maps are not those of an attention", op=op)
        rows = (query | key) - {*self.keys, *self.positions}
        order = sorted(rows, key=lambda d: ((d in query) + (d in key) < 2, d))
        self.score_loops = [*order, *self.positions]
        self.body = op.regions[0].block
        self.units = RegionUnits.of(op)  # pyright: ignore

    def scores(self, b: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Scores and values, with one axis per loop (size 1 for loops that they do not use)."""
        arrays = [array_of(b[name]).astype(np.float64) for name in ("query", "key", "value")]
        sizes = ranges(self.maps[:3], [a.shape for a in arrays], self.maps[0].num_dims)
        q, k, v = (spread(a, m, sizes) for a, m in zip(arrays, self.maps, strict=False))
        scores = (q * k).sum(axis=tuple(self.keys), keepdims=True)
        scale, factor = float(b["scale"]), self.units.factor
        before, after = (scale, 1.0) if self.units.scaled else (1.0, scale)
        score_type = dtype_of(self.body.args[0].type)
        scores = self._region((scores * before * factor).astype(score_type)).astype(np.float64)
        scores = scores * after / factor
        if b["mask"] is not None:
            mask = spread(array_of(b["mask"]), self.maps[4], sizes)
            scores = scores + (
                np.where(mask & 1, 0.0, -np.inf)
                if mask.dtype.kind in "biu"
                else mask.astype(np.float64)
            )
        return scores, v

    def _region(self, scores: np.ndarray) -> np.ndarray:
        if not is_vectorizable(self.body):
            raise RuntimeTrap("a region with control flow", op=self.op)
        indices = mesh(scores.shape)
        self.machine.loop_indices.append([indices[loop] for loop in self.score_loops])
        try:
            return np.broadcast_to(self.machine.run_block(self.body, [scores])[0], scores.shape)
        finally:
            self.machine.loop_indices.pop()

    def place(self, value: np.ndarray, indexing: AffineMap) -> np.ndarray:
        """Converts an array with one axis per loop to the layout of an operand."""
        dims = _dims(indexing)
        rest = tuple(a for a in range(value.ndim) if a not in dims)
        order = sorted(dims)
        return value.squeeze(rest).transpose([order.index(d) for d in dims])


@implements("iree_linalg_ext.attention")
def _attention(machine: Machine, op: Operation) -> Prepared:
    """softmax(region(query . key * scale) + mask) . value"""
    attention = _Attention(machine, op)

    def run(*args: Any):
        b = attention.operands.bind(args)
        scores, v = attention.scores(b)
        over = tuple(attention.positions)
        most = scores.max(axis=over, keepdims=True, initial=-np.inf)
        p = np.exp(scores - most)
        p = p / p.sum(axis=over, keepdims=True)
        if "zero_masked_rows" in op.properties:
            p = np.where(most == -np.inf, 0.0, p)
        if array_of(b["value"]).dtype.itemsize == 2:
            p = p.astype(array_of(b["value"]).dtype).astype(np.float64)
        result = (p * v).sum(axis=over, keepdims=True)
        return finish([b["output"]], [attention.place(result, attention.maps[-1])])

    return run


@implements("iree_linalg_ext.online_attention")
def _online_attention(machine: Machine, op: Operation) -> Prepared:
    """Attention with a running maximum and sum, without normalization."""
    attention = _Attention(machine, op)

    def run(*args: Any):
        b = attention.operands.bind(args)
        scores, v = attention.scores(b)
        over = tuple(attention.positions)
        old, old_max, old_sum = (
            spread(array_of(b[name]).astype(np.float64), m, [1] * m.num_dims)
            for name, m in zip(("output", "max", "sum"), attention.maps[-3:], strict=True)
        )
        # Round the maximum before use: exponentials and sums must match the stored value.
        new_max = np.maximum(old_max, scores.max(axis=over, keepdims=True))
        new_max = new_max.astype(array_of(b["max"]).dtype).astype(np.float64)
        factor = np.where(old_max == new_max, 1.0, np.exp(old_max - new_max))
        e = np.exp(scores - new_max)
        new_sum = old_sum * factor + e.sum(axis=over, keepdims=True)
        new = old * factor + (e * v).sum(axis=over, keepdims=True)
        placed = [
            attention.place(x, m)
            for x, m in zip((new, new_max, new_sum), attention.maps[-3:], strict=True)
        ]
        return finish([b["output"], b["max"], b["sum"]], placed)

    return run


class _AsGeneric:
    """An adapter that presents an exp_reduction as a structured op to `Loops`."""

    def __init__(self, op: Operation):
        self.op, self.operands, self.inputs = op, op.operands, op.inputs  # pyright: ignore

    def get_indexing_maps(self) -> Any:
        """One map per operand."""
        return self.op.properties["indexing_maps"].data  # pyright: ignore

    def get_iterator_types(self) -> Any:
        """One kind per loop."""
        return self.op.properties["iterator_types"].data  # pyright: ignore


@implements("iree_linalg_ext.exp_reduction")
def _exp_reduction(machine: Machine, op: Operation) -> Prepared:
    """Runs its body as a generic on 2^(x - max), with outs scaled by 2^(old max - max)."""
    loops = Loops(machine, _AsGeneric(op), op.regions[0].block)  # pyright: ignore
    maps = [m.data for m in op.properties["indexing_maps"]]  # pyright: ignore
    scaled = numbers(op, "exp_reduced_operands")
    count = len(op.inputs)  # pyright: ignore
    rank = maps[0].num_dims

    def run(*args: Any):
        arrays = [array_of(a) for a in args]
        sizes = ranges(maps, [a.shape for a in arrays], rank)
        x = spread(arrays[0].astype(np.float64), maps[0], sizes)
        old = spread(arrays[count].astype(np.float64), maps[count], sizes)
        over = tuple(d for d in _dims(maps[0]) if d not in _dims(maps[count]))
        new = np.maximum(old, x.max(axis=over, keepdims=True)) if x.size else old
        factor = np.where(old == new, 1.0, np.exp2(old - new))
        operands = [*arrays]
        operands[0] = _placed(np.exp2(x - new), maps[0], arrays[0])
        operands[count] = _placed(new, maps[count], arrays[count])
        for number in scaled:
            at = count + number
            value = spread(arrays[at].astype(np.float64), maps[at], sizes) * factor
            operands[at] = _placed(value, maps[at], arrays[at])
        return finish(args[count:], loops.run(*operands))

    return run


def _placed(value: np.ndarray, indexing: AffineMap, like: np.ndarray) -> np.ndarray:
    """Converts an array with one axis per loop to the layout and type of an operand."""
    dims = _dims(indexing)
    rest = tuple(a for a in range(value.ndim) if a not in dims)
    order = sorted(dims)
    return value.squeeze(rest).transpose([order.index(d) for d in dims]).astype(like.dtype)


@implements("iree_linalg_ext.fft")
def _fft(machine: Machine, op: Operation) -> Prepared:
    """Runs one stage of a radix-2 FFT along the innermost dim."""
    operands = Operands(op)

    def run(*args: Any):
        b = operands.bind(args)
        re, im = array_of(b["real"]), array_of(b["imag"])
        dtype = re.dtype
        stage = int(b["stage"])
        if not 1 <= stage <= LAST_STAGE or re.shape[-1] % (1 << stage):
            raise RuntimeTrap(f"stage {stage} of a row of {re.shape[-1]} elements", op=op)
        m = 1 << stage
        half = m // 2
        if b["real_coeff"] is not None:
            wr, wi = array_of(b["real_coeff"]), array_of(b["imag_coeff"])
        else:
            angle = -2.0 * np.pi * np.arange(half) / m
            wr, wi = np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)
        shape = (*re.shape[:-1], re.shape[-1] // m, 2, half)
        r, i = re.reshape(shape), im.reshape(shape)
        tr = wr * r[..., 1, :] - wi * i[..., 1, :]
        ti = wr * i[..., 1, :] + wi * r[..., 1, :]
        ur, ui = r[..., 0, :], i[..., 0, :]
        real = np.stack([ur + tr, ur - tr], axis=-2).reshape(re.shape)
        imag = np.stack([ui + ti, ui - ti], axis=-2).reshape(im.shape)
        return finish([b["real"], b["imag"]], [real, imag])

    return run


def _tiles(op: Operation, dynamic: Sequence[Any]) -> tuple[list[int], list[int]]:
    """The tiled dims and their tile sizes."""
    dims = list(numbers(op, "inner_dims_pos"))
    return dims, mixed(numbers(op, "static_inner_tiles"), iter(dynamic))


def _outer_order(op: Operation, rank: int) -> list[int]:
    order = op.properties.get("outer_dims_perm")
    given = list(order.get_values()) if order is not None else []  # pyright: ignore
    return given or list(range(rank))


@implements("linalg.pack")
def _pack(machine: Machine, op: Operation) -> Prepared:
    """Packs tiles to inner dims, and pads to full tiles."""
    operands = Operands(op)

    def run(*args: Any):
        b = operands.bind(args)
        source, dest = array_of(b["source"]), array_of(b["dest"])
        dims, tiles = _tiles(op, b["inner_tiles"])
        order = _outer_order(op, source.ndim)
        outer = [0] * source.ndim
        for position, dim in enumerate(order):
            outer[dim] = dest.shape[position]
        size = dict(zip(dims, tiles, strict=True))
        padded_shape = [outer[d] * size.get(d, 1) for d in range(source.ndim)]
        if any(p < n for p, n in zip(padded_shape, source.shape, strict=True)):
            raise RuntimeTrap(f"{source.shape} does not fit in {dest.shape}", op=op)
        if b["padding_value"] is None and tuple(padded_shape) != source.shape:
            raise RuntimeTrap(f"{source.shape} has no whole tiles {tiles}", op=op)
        fill = b["padding_value"] if b["padding_value"] is not None else source.dtype.type(0)
        padded = np.full(padded_shape, fill, source.dtype)
        padded[tuple(slice(0, n) for n in source.shape)] = source
        split: list[int] = []
        outer_axis: dict[int, int] = {}
        inner_axis: dict[int, int] = {}
        for dim in range(source.ndim):
            outer_axis[dim] = len(split)
            split.append(outer[dim])
            if dim in size:
                inner_axis[dim] = len(split)
                split.append(size[dim])
        axes = [*(outer_axis[d] for d in order), *(inner_axis[d] for d in dims)]
        return finish([b["dest"]], [padded.reshape(split).transpose(axes)])

    return run


@implements("linalg.unpack")
def _unpack(machine: Machine, op: Operation) -> Prepared:
    """Unpacks tiles, and drops the padding."""
    operands = Operands(op)

    def run(*args: Any):
        b = operands.bind(args)
        source, dest = array_of(b["source"]), array_of(b["dest"])
        dims, _ = _tiles(op, b["inner_tiles"])
        order = _outer_order(op, dest.ndim)
        axes: list[int] = []
        shape: list[int] = []
        for dim in range(dest.ndim):
            axis = order.index(dim)
            axes.append(axis)
            size = source.shape[axis]
            if dim in dims:
                inner = dest.ndim + dims.index(dim)
                axes.append(inner)
                size *= source.shape[inner]
            shape.append(size)
        whole = source.transpose(axes).reshape(shape)
        if any(p < n for p, n in zip(shape, dest.shape, strict=True)):
            raise RuntimeTrap(f"{source.shape} is too small for {dest.shape}", op=op)
        return finish([b["dest"]], [whole[tuple(slice(0, n) for n in dest.shape)]])

    return run
