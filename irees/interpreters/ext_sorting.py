"""
iree_linalg_ext: sort, topk, arg_compare and scan.

A comparator of a single pair of elements is made a total order first, like
`transforms/utils/orders.py` for the compiled program: NaN is greater than every number. Elements
are equal if the comparator gives the same result both ways. Sorting is stable.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from irees.errors import RuntimeTrap
from irees.interpreters.arith import Width
from irees.interpreters.machine import Machine
from irees.interpreters.registry import Operands, Prepared, implements
from irees.interpreters.structured import is_vectorizable
from irees.interpreters.values import MemRef, array_of, dtype_of

_DESCENDING = {"ogt", "oge", "ugt", "uge", "sgt", "sge"}
_ASCENDING = {"olt", "ole", "ult", "ule", "slt", "sle"}


class Order:
    """An order of tuples of elements, defined by a comparator over interleaved pairs."""

    def __init__(self, machine: Machine, block: Block):
        self.machine = machine
        self.block = block
        self.operand: int | None = None
        ops = list(block.ops)
        if len(ops) != 2 or not isinstance(ops[0], arith.CmpfOp | arith.CmpiOp):
            return
        compare = ops[0]
        floats = isinstance(compare, arith.CmpfOp)
        names = arith.CMPF_COMPARISON_OPERATIONS if floats else arith.CMPI_COMPARISON_OPERATIONS
        predicate = names[compare.predicate.value.data]
        pair = [_position(block, value) for value in compare.operands]
        if predicate in _DESCENDING | _ASCENDING and pair[0] % 2 == 0 and pair[1] == pair[0] + 1:
            self.operand = pair[0] // 2
            self.descending = predicate in _DESCENDING
            self.width = None if floats else Width.of(compare.operands[0].type)
            self.signed = predicate[0] == "s"

    def argsort(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Source indices of the sorted elements of each row; rows are along the last axis."""
        if self.operand is not None:
            return np.lexsort(self._keys(columns[self.operand]), axis=-1)
        shape = columns[0].shape
        rows = [c.reshape(-1, shape[-1]) for c in columns]
        result = np.empty(rows[0].shape, np.int64)
        for number in range(len(result)):
            elements = [[c[number, i] for c in rows] for i in range(shape[-1])]
            key = cmp_to_key(lambda a, b, e=elements: self._compare(e[a], e[b]))
            result[number] = sorted(range(shape[-1]), key=key)
        return result.reshape(shape)

    def _keys(self, column: np.ndarray) -> tuple[np.ndarray, ...]:
        """Sort keys for `np.lexsort`, which takes the primary key last."""
        if self.width is not None:
            values = self.width.signed(column) if self.signed else self.width.unsigned(column)
            return (~values if self.descending else values,)
        values = column.astype(np.float64)
        nan = values != values
        values = np.where(nan, 0.0, values)
        return (-values, ~nan) if self.descending else (values, nan)

    def _says(self, a: Sequence[Any], b: Sequence[Any]) -> bool:
        arguments = [v for pair in zip(a, b, strict=True) for v in pair]
        return bool(self.machine.run_block(self.block, arguments)[0])

    def _compare(self, a: Sequence[Any], b: Sequence[Any]) -> int:
        return int(self._says(b, a)) - int(self._says(a, b))


def _position(block: Block, value: SSAValue) -> int:
    return next((i for i, a in enumerate(block.args) if a is value), -1)


def finish(targets: Sequence[Any], values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Writes memrefs; returns tensors."""
    results: list[np.ndarray] = []
    for target, value in zip(targets, values, strict=True):
        if isinstance(target, MemRef):
            target.array[...] = value
        else:
            results.append(np.ascontiguousarray(value, target.dtype).reshape(target.shape))
    return results


def _take(values: np.ndarray, order: np.ndarray, dim: int) -> np.ndarray:
    return np.moveaxis(np.take_along_axis(np.moveaxis(values, dim, -1), order, -1), -1, dim)


def _dimension(op: Operation) -> int:
    return op.properties["dimension"].value.data  # pyright: ignore


def _positions(like: np.ndarray, dim: int) -> np.ndarray:
    """Each element's position along a dim; narrow integers wrap."""
    shape = [-1 if d == dim else 1 for d in range(like.ndim)]
    numbers = np.arange(like.shape[dim]).astype(like.dtype).reshape(shape)
    return np.broadcast_to(numbers, like.shape)


@implements("iree_linalg_ext.sort", "tm_tensor.sort")
def _sort(machine: Machine, op: Operation) -> Prepared:
    """Sorts all operands together; stable."""
    dim, order = _dimension(op), Order(machine, op.regions[0].block)
    inputs = len(op.inputs)  # pyright: ignore
    generated = getattr(op, "generated", ())

    def run(*args: Any):
        targets = args[inputs:]
        sources = [array_of(v) for v in (args[:inputs] or targets)]
        for number in generated:
            like = array_of(targets[number])
            sources.insert(number, _positions(like, dim))
        if any(s.shape != sources[0].shape for s in sources):
            raise RuntimeTrap("operands of different shapes", op=op)
        if sources[0].size == 0:
            return finish(targets, sources)
        places = order.argsort([np.moveaxis(s, dim, -1) for s in sources])
        return finish(targets, [_take(s, places, dim) for s in sources])

    return run


@implements("iree_linalg_ext.topk_v2")
def _topk_v2(machine: Machine, op: Operation) -> Prepared:
    """The first K elements in order, with their indices."""
    dim, order, operands = _dimension(op), Order(machine, op.regions[0].block), Operands(op)

    def run(*args: Any):
        b = operands.bind(args)
        values = array_of(b["values"])
        targets = [
            b["output_values"],
            *([b["output_indices"]] if b["output_indices"] is not None else []),
        ]
        k = array_of(b["output_values"]).shape[dim]
        if k > values.shape[dim]:
            raise RuntimeTrap(f"the first {k} of {values.shape[dim]}", op=op)
        places = np.zeros((0,) * values.ndim, np.int64)
        if values.size:
            places = order.argsort([np.moveaxis(values, dim, -1)])[..., :k]
            best = [_take(values, places, dim)]
        else:
            best = [
                values[tuple(slice(0, k) if d == dim else slice(None) for d in range(values.ndim))]
            ]
            places = np.moveaxis(np.zeros(best[0].shape, np.int64), dim, -1)
        if b["output_indices"] is not None:
            numbers = np.moveaxis(places, -1, dim)
            if b["indices"] is not None:
                numbers = _take(array_of(b["indices"]), places, dim)
            best.append(numbers)
        return finish(targets, best)

    return run


@implements("iree_linalg_ext.topk")
def _topk(machine: Machine, op: Operation) -> Prepared:
    """The best K of the outs and the values; for equal elements the outs come first."""
    dim, order, operands = _dimension(op), Order(machine, op.regions[0].block), Operands(op)

    def run(*args: Any):
        b = operands.bind(args)
        values, best, numbers = (
            array_of(b[k]) for k in ("values", "output_values", "output_indices")
        )
        if b["indices"] is not None:
            own = array_of(b["indices"])
        else:
            own = np.arange(values.shape[dim], dtype=numbers.dtype)
            own = np.broadcast_to(
                own.reshape([-1 if d == dim else 1 for d in range(values.ndim)]), values.shape
            )
        k = best.shape[dim]
        candidates = np.concatenate([best, values], axis=dim)
        places = order.argsort([np.moveaxis(candidates, dim, -1)])[..., :k]
        chosen = [
            _take(candidates, places, dim),
            _take(np.concatenate([numbers, own], axis=dim), places, dim),
        ]
        return finish([b["output_values"], b["output_indices"]], chosen)

    return run


@implements("iree_linalg_ext.arg_compare")
def _arg_compare(machine: Machine, op: Operation) -> Prepared:
    """The best element and its index by the comparator; the outs are the initial best."""
    dim, operands, body = _dimension(op), Operands(op), op.regions[0].block

    def run(*args: Any):
        b = operands.bind(args)
        values, best, where = (
            array_of(b[k]) for k in ("input_value", "output_value", "output_index")
        )
        base = int(b["index_base"]) if b["index_base"] is not None else 0
        rows = np.moveaxis(values, dim, -1)
        indices = (
            None if b["input_index"] is None else np.moveaxis(array_of(b["input_index"]), dim, -1)
        )
        best, where = best.copy(), where.copy()
        for at in np.ndindex(*rows.shape[:-1]):
            for i, value in enumerate(rows[at]):
                if machine.run_block(body, [value, best[at]])[0]:
                    best[at] = value
                    where[at] = i + base if indices is None else indices[at][i]
        return finish([b["output_value"], b["output_index"]], [best, where])

    return run


@implements("iree_linalg_ext.scan", "tm_tensor.scan")
def _scan(machine: Machine, op: Operation) -> Prepared:
    """
    A prefix scan; the accumulator holds the last value at the end. An exclusive scan starts with
    the accumulator, an inclusive one with the first element.
    """
    body = op.regions[0].block
    dim, inclusive = _dimension(op), bool(op.properties["inclusive"].value.data)  # pyright: ignore
    vectorizable = is_vectorizable(body)
    dtype = dtype_of(op.operands[2].type)

    def combine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if vectorizable:
            return np.broadcast_to(machine.run_block(body, [a, b])[0], a.shape)
        result = np.empty(a.shape, dtype)
        for at in np.ndindex(*a.shape):
            result[at] = machine.run_block(body, [a[at], b[at]])[0]
        return result

    def run(source: Any, output: Any, accumulator: Any):
        current = array_of(accumulator)
        elements = np.moveaxis(array_of(source), dim, 0)
        rows = np.empty_like(np.moveaxis(array_of(output), dim, 0))
        for number in range(len(elements)):
            if number:
                current = combine(current, elements[number if inclusive else number - 1])
            elif inclusive:
                current = elements[0]
            rows[number] = current
        return finish([output, accumulator], [np.moveaxis(rows, 0, dim), current])

    return run
