"""
Structured ops: linalg.generic and all named structured ops, vectorized with numpy.

A body without control flow is evaluated on whole arrays with one axis per loop. An axis has size 1
if the operand does not depend on the loop, so a transpose is a view and a broadcast is free. All
parallel iterations run at once. Reduction loops are Python loops in the order of the definition:
each step combines the accumulators of all parallel iterations with one slice of the inputs. If the
body is a simple reduction (such as an addition to the accumulator) and there are few parallel
iterations, `ufunc.accumulate` runs the chain, in the same order. Bodies with regions, and outputs
indexed by a reduction loop, run element by element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects import linalg
from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from irees.errors import RuntimeTrap
from irees.interpreters.machine import Machine
from irees.interpreters.registry import ELEMENTWISE, Prepared, implements, implements_others
from irees.interpreters.values import MemRef, array_of

Structured = linalg.abstract_ops.LinalgStructuredOperation  # pyright: ignore
CHUNK = 1 << 21
"""Maximum elements of the iteration space in memory at once, when numpy runs a chain."""
FEW = 1024
"""Maximum parallel iterations for which `ufunc.accumulate` beats a Python reduction loop."""


def affine_value(expr: AffineExpr, dims: Sequence[Any], symbols: Sequence[Any] = ()) -> Any:
    """Evaluates an affine expression on numbers or index arrays."""
    if isinstance(expr, AffineConstantExpr):
        return np.int64(expr.value)
    if isinstance(expr, AffineDimExpr):
        return dims[expr.position]
    if not isinstance(expr, AffineBinaryOpExpr):
        return symbols[expr.position]  # pyright: ignore
    a, b = affine_value(expr.lhs, dims, symbols), affine_value(expr.rhs, dims, symbols)
    match expr.kind:
        case AffineBinaryOpKind.Add:
            return a + b
        case AffineBinaryOpKind.Mul:
            return a * b
        case AffineBinaryOpKind.Mod:
            return a % b
        case AffineBinaryOpKind.FloorDiv:
            return a // b
        case AffineBinaryOpKind.CeilDiv:
            return -(-a // b)


def mesh(sizes: Sequence[int]) -> list[np.ndarray]:
    """The induction variable of each loop, as an array with one axis per loop."""
    rank = len(sizes)
    return [
        np.arange(n, dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(rank)])
        for axis, n in enumerate(sizes)
    ]


def ranges(maps: Sequence[AffineMap], shapes: Sequence[Sequence[int]], loops: int) -> list[int]:
    """Trip counts of the loops. Raises RuntimeTrap if operands disagree or do not define one."""
    found: list[int | None] = [None] * loops
    for indexing, shape in zip(maps, shapes, strict=True):
        for expr, size in zip(indexing.results, shape, strict=True):
            if isinstance(expr, AffineDimExpr):
                known = found[expr.position]
                if known is not None and known != size:
                    raise RuntimeTrap(f"loop d{expr.position} has {known} and {size} iterations")
                found[expr.position] = size
    for loop, size in enumerate(found):
        if size is None:
            raise RuntimeTrap(f"no operand says how many iterations loop d{loop} has")
    return found  # pyright: ignore


def positions(indexing: AffineMap) -> list[int]:
    """The loops of a projected permutation."""
    return [e.position for e in indexing.results if isinstance(e, AffineDimExpr)]


def is_projected_permutation(indexing: AffineMap) -> bool:
    """Whether the results are distinct dims."""
    dims = [e.position for e in indexing.results if isinstance(e, AffineDimExpr)]
    return len(dims) == len(indexing.results) == len(set(dims))


def spread(array: np.ndarray, indexing: AffineMap, sizes: Sequence[int]) -> np.ndarray:
    """
    The element that each iteration reads, as an array with one axis per loop (of size 1 if all
    iterations of the loop read the same element). Raises RuntimeTrap out of bounds.
    """
    if is_projected_permutation(indexing):
        dims = [e.position for e in indexing.results]  # pyright: ignore
        order = sorted(range(len(dims)), key=dims.__getitem__)
        shape = [1] * len(sizes)
        for axis in order:
            shape[dims[axis]] = array.shape[axis]
        moved = array.transpose(order)
        axes = tuple(i for i in range(len(sizes)) if i not in dims)
        return np.expand_dims(moved, axes)
    if 0 in sizes:
        return np.zeros([1 if size else 0 for size in sizes], array.dtype)
    return gather(array, [affine_value(e, mesh(sizes)) for e in indexing.results], len(sizes))


def gather(array: np.ndarray, indices: Sequence[Any], rank: int) -> np.ndarray:
    """array[indices] with `rank` axes. Raises RuntimeTrap out of bounds."""
    for index, size in zip(indices, array.shape, strict=True):
        index = np.asarray(index)
        if index.size and (index.min() < 0 or index.max() >= size):
            raise RuntimeTrap(f"index {index.min()} to {index.max()} of a dim of {size}")
    result = array[tuple(indices)]
    return np.reshape(result, (1,) * (rank - result.ndim) + result.shape)


def is_vectorizable(block: Block) -> bool:
    """Whether a body can run on whole arrays, and its trap does not depend on iteration order."""
    # The first assertion to fail depends on the iteration order.
    return takes_arrays(block) and assertions(block) < 2


def assertions(block: Block) -> int:
    """Number of assertions in a body."""
    return sum(op.name == "cf.assert" for op in block.ops)


def takes_arrays(block: Block) -> bool:
    """Whether a body can run on whole arrays."""
    for op in block.ops:
        if op is block.last_op:
            return True
        if op.name == "arith.constant" and not isinstance(op.results[0].type, ShapedType):
            continue
        if op.name not in ELEMENTWISE or op.regions:
            return False
        if any(isinstance(r.type, ShapedType) for r in op.results):
            return False
    return True


# --- chains ---------------------------------------------------------------------------------

_CHAINS = {
    "arith.addf": np.add, "arith.addi": np.add,
    "arith.mulf": np.multiply, "arith.muli": np.multiply,
}  # fmt: skip
_ANY_ORDER = {
    "arith.maximumf", "arith.minimumf", "arith.maxsi", "arith.minsi", "arith.maxui",
    "arith.minui", "arith.andi", "arith.ori", "arith.xori",
}  # fmt: skip


@dataclass(frozen=True)
class Chain:
    """A yielded value `combine(accumulator, term)`, whose term does not use accumulators."""

    combine: Operation
    term: SSAValue


def chains(block: Block, inputs: int) -> list[Chain] | None:
    """The chain of each yielded value; None unless each one is a single combining op."""
    accumulators = set(block.args[inputs:])
    tainted: set[SSAValue] = set(accumulators)
    for op in block.ops:
        if any(o in tainted for o in op.operands):
            tainted.update(op.results)
    found: list[Chain] = []
    last = block.last_op
    assert last is not None
    for value, accumulator in zip(last.operands, block.args[inputs:], strict=True):
        op = value.owner
        if not isinstance(op, Operation) or op.name not in {*_CHAINS, *_ANY_ORDER}:
            return None
        terms = [o for o in op.operands if o is not accumulator]
        if len(terms) != 1 or terms[0] in tainted or len(list(accumulator.uses)) != 1:
            return None
        if getattr(op.results[0].type, "width", None) is not None and op.name in _CHAINS:
            if op.results[0].type.width.data not in (8, 16, 32, 64):  # pyright: ignore
                return None
        found.append(Chain(op, terms[0]))
    return found


def _fold(machine: Machine, chain: Chain, start: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """combine(...combine(start, terms[0])..., terms[-1])"""
    ufunc = _CHAINS.get(chain.combine.name)
    if ufunc is not None:
        whole = np.concatenate([start[None], terms])
        return ufunc.accumulate(whole, axis=0, dtype=start.dtype)[-1]
    combine = machine.prepared(chain.combine)
    while len(terms) > 1:
        half = len(terms) // 2
        rest = terms[2 * half :]
        terms = np.concatenate([combine(terms[:half], terms[half : 2 * half])[0], rest])
    return combine(start, terms[0])[0] if len(terms) else start


def _unit_dims(value: SSAValue, indexing: AffineMap) -> tuple[int, ...]:
    """Unit dims that the map indexes with the constant 0."""
    if not isinstance(value.type, ShapedType):
        return ()
    return tuple(
        axis
        for axis, (expr, n) in enumerate(zip(indexing.results, value.type.get_shape(), strict=True))
        if n == 1 and isinstance(expr, AffineConstantExpr) and expr.value == 0
    )


def _without(indexing: AffineMap, axes: Sequence[int]) -> AffineMap:
    kept = tuple(e for i, e in enumerate(indexing.results) if i not in axes)
    return AffineMap(indexing.num_dims, indexing.num_symbols, kept)


# --- the op ---------------------------------------------------------------------------------


class Loops:
    """A prepared structured op."""

    def __init__(self, machine: Machine, op: Structured, body: Block):
        self.machine = machine
        self.op = op
        self.body = body
        self.maps = [attr.data for attr in op.get_indexing_maps()]
        self.kinds = [str(kind.data) for kind in op.get_iterator_types()]
        self.inputs = len(op.inputs)
        self.parallel = [i for i, kind in enumerate(self.kinds) if kind == "parallel"]
        self.reduced = [i for i, kind in enumerate(self.kinds) if kind != "parallel"]
        self.units = [_unit_dims(o, m) for o, m in zip(op.operands, self.maps, strict=True)]
        self.maps = [_without(m, axes) for m, axes in zip(self.maps, self.units, strict=True)]
        self.output_maps = self.maps[self.inputs :]
        parallel = set(self.parallel)
        complete = all(
            is_projected_permutation(m) and set(positions(m)) == parallel for m in self.output_maps
        )
        self.vectorizable = complete and takes_arrays(body)
        self.chains = chains(body, self.inputs) if self.vectorizable and self.reduced else None
        self.assertions = assertions(body)

    def run(self, *operands: Any) -> list[Any]:
        """Runs the op; returns the results for tensors, and writes memrefs in place."""
        arrays = [
            array_of(v).squeeze(axes) if isinstance(o.type, ShapedType) else np.asarray(v)
            for v, o, axes in zip(operands, self.op.operands, self.units, strict=True)
        ]
        sizes = ranges(self.maps, [a.shape for a in arrays], len(self.kinds))
        if 0 in sizes:
            outputs = [a for a in arrays[self.inputs :]]
        elif not self.vectorizable:
            outputs = self._element_by_element(arrays, sizes)
        else:
            outputs = self._all_at_once(arrays, sizes)
        if len(outputs) > 1:
            # One output may be the old contents of another, which is written first.
            outputs = [output.copy() for output in outputs]
        results: list[Any] = []
        for value, output in zip(operands[self.inputs :], outputs, strict=True):
            output = output.reshape(array_of(value).shape)
            if isinstance(value, MemRef):
                value.array[...] = output
            else:
                results.append(output)
        return results

    def _all_at_once(self, arrays: Sequence[np.ndarray], sizes: Sequence[int]) -> list[np.ndarray]:
        try:
            return (self._reduce if self.reduced else self._parallel)(arrays, sizes)
        except RuntimeTrap:
            if self.assertions < 2:
                raise
            # The first assertion to fail depends on the iteration order.
            return self._element_by_element(arrays, sizes)

    def _body(self, arguments: Sequence[Any], indices: Sequence[Any]) -> list[Any]:
        self.machine.loop_indices.append(indices)
        try:
            return self.machine.run_block(self.body, arguments)
        finally:
            self.machine.loop_indices.pop()

    def _parallel(self, arrays: Sequence[np.ndarray], sizes: Sequence[int]) -> list[np.ndarray]:
        arguments = [spread(a, m, sizes) for a, m in zip(arrays, self.maps, strict=True)]
        values = self._body(arguments, mesh(sizes))
        return [
            self._placed(np.broadcast_to(value, sizes), m, array)
            for value, m, array in zip(values, self.output_maps, arrays[self.inputs :], strict=True)
        ]

    def _placed(self, value: np.ndarray, indexing: AffineMap, output: np.ndarray) -> np.ndarray:
        """Converts values with one axis per loop (reduced loops have size 1) to an output."""
        dims = [e.position for e in indexing.results]  # pyright: ignore
        value = value.squeeze(tuple(self.reduced)) if self.reduced else value
        result = value.transpose([self.parallel.index(d) for d in dims])
        return np.ascontiguousarray(result, output.dtype).reshape(output.shape)

    def _reduce(self, arrays: Sequence[np.ndarray], sizes: Sequence[int]) -> list[np.ndarray]:
        kept = [1 if i in self.reduced else n for i, n in enumerate(sizes)]
        accumulators = [
            np.broadcast_to(spread(a, m, kept), kept).copy()
            for a, m in zip(arrays[self.inputs :], self.output_maps, strict=True)
        ]
        positions = math.prod(kept)
        if self.chains is not None and positions <= FEW:
            accumulators = self._accumulate(arrays, sizes, accumulators)
        else:
            accumulators = self._step_by_step(arrays, sizes, kept, accumulators)
        return [
            self._placed(np.broadcast_to(value, kept), m, array)
            for value, m, array in zip(
                accumulators, self.output_maps, arrays[self.inputs :], strict=True
            )
        ]

    def _slices(self, arrays: Sequence[np.ndarray], sizes: Sequence[int], kept: Sequence[int]):
        """For each input, a function from reduction indices to the slice that is read."""
        inside = mesh(kept)
        found: list[Any] = []
        for array, indexing in zip(arrays[: self.inputs], self.maps, strict=False):
            if is_projected_permutation(indexing):
                whole = spread(array, indexing, sizes)
                ahead = np.moveaxis(whole, self.reduced, range(len(self.reduced)))

                def read(at: Sequence[int], ahead: np.ndarray = ahead) -> Any:
                    place = tuple(0 if n == 1 else i for i, n in zip(at, ahead.shape))
                    return np.expand_dims(ahead[place], tuple(self.reduced))

            else:

                def read(
                    at: Sequence[int], array: np.ndarray = array, indexing: Any = indexing
                ) -> Any:
                    dims = list(inside)
                    for loop, i in zip(self.reduced, at, strict=True):
                        dims[loop] = np.int64(i)  # pyright: ignore
                    return gather(
                        array, [affine_value(e, dims) for e in indexing.results], len(kept)
                    )

            found.append(read)
        return found

    def _step_by_step(
        self,
        arrays: Sequence[np.ndarray],
        sizes: Sequence[int],
        kept: Sequence[int],
        accumulators: list[np.ndarray],
    ) -> list[np.ndarray]:
        readers = self._slices(arrays, sizes, kept)
        indices: list[Any] = list(mesh(kept))
        for at in product(*(range(sizes[loop]) for loop in self.reduced)):
            for loop, i in zip(self.reduced, at, strict=True):
                indices[loop] = np.int64(i)
            accumulators = self._body([*(read(at) for read in readers), *accumulators], indices)
        return accumulators

    def _accumulate(
        self, arrays: Sequence[np.ndarray], sizes: Sequence[int], accumulators: list[np.ndarray]
    ) -> list[np.ndarray]:
        """Computes the terms of as many inner iterations as fit in CHUNK, then folds the chain."""
        assert self.chains is not None
        held = math.prod(sizes[i] for i in self.parallel)
        steps: list[range] = []
        for loop in reversed(self.reduced):
            step = max(1, min(sizes[loop], CHUNK // held))
            held *= step
            steps.insert(0, range(0, sizes[loop], step))
        for at in product(*steps):
            fixed = {
                loop: (i, min(i + steps[k].step, sizes[loop]))
                for k, (loop, i) in enumerate(zip(self.reduced, at, strict=True))
            }
            part = [fixed[i][1] - fixed[i][0] if i in fixed else n for i, n in enumerate(sizes)]
            dims = mesh(part)
            for loop, (first, _) in fixed.items():
                dims[loop] = dims[loop] + first
            arguments = [
                self._part(a, m, part, fixed, dims)
                for a, m in zip(arrays[: self.inputs], self.maps, strict=False)
            ]
            self._body([*arguments, *accumulators], dims)
            for number, chain in enumerate(self.chains):
                terms = np.broadcast_to(self.machine.value(chain.term), part)
                terms = np.moveaxis(terms, self.reduced, range(len(self.reduced)))
                terms = terms.reshape(-1, *[sizes[i] for i in self.parallel])
                shape = accumulators[number].shape
                start = accumulators[number].reshape(terms.shape[1:])
                accumulators[number] = _fold(self.machine, chain, start, terms).reshape(shape)
        return accumulators

    def _part(
        self,
        array: np.ndarray,
        indexing: AffineMap,
        part: Sequence[int],
        fixed: dict[int, tuple[int, int]],
        dims: Sequence[Any],
    ) -> np.ndarray:
        if not is_projected_permutation(indexing):
            return gather(array, [affine_value(e, dims) for e in indexing.results], len(part))
        at = tuple(
            slice(*fixed[e.position]) if e.position in fixed else slice(None)  # pyright: ignore
            for e in indexing.results
        )
        return spread(array[at], indexing, part)

    def _element_by_element(
        self, arrays: Sequence[np.ndarray], sizes: Sequence[int]
    ) -> list[np.ndarray]:
        arrays = [*arrays[: self.inputs], *(a.copy() for a in arrays[self.inputs :])]
        for at in product(*(range(n) for n in sizes)):
            dims = [np.int64(i) for i in at]
            places = [tuple(affine_value(e, dims) for e in m.results) for m in self.maps]
            for place, array in zip(places, arrays, strict=True):
                if any(not 0 <= i < n for i, n in zip(place, array.shape, strict=True)):
                    raise RuntimeTrap(f"index {place} of an array of shape {array.shape}")
            arguments = [a[p] for a, p in zip(arrays, places, strict=True)]
            values = self._body(arguments, dims)
            for array, place, value in zip(
                arrays[self.inputs :], places[self.inputs :], values, strict=True
            ):
                array[place] = value
        return list(arrays[self.inputs :])


@implements_others
def _structured(machine: Machine, op: Operation) -> Prepared | None:
    """Prepares any structured op."""
    if not isinstance(op, Structured):
        return None
    return Loops(machine, op, op.regions[0].block).run


@implements("linalg.index", "iree_linalg_ext.index", elementwise=True)
def _index(machine: Machine, op: Operation) -> Prepared:
    """The index of an enclosing loop."""
    dim = op.properties["dim"].value.data  # pyright: ignore
    return lambda: (machine.loop_indices[-1][dim],)
