"""
Matches ops that only move the elements of a constant: transposes, reversals, slices with steps and
paddings. Part of `irees-fold-constants`.

A moved constant is a recipe: its bytes are computed one constant at a time when they are needed, so
the size does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from irees.analysis.paddings import is_padding
from irees.dialects.storage import inserted, is_extract
from irees.transforms.utils.shapes import constant_value
from irees.transforms.utils.structured import filled_value, is_parallel, maps, static_ranges


@dataclass(frozen=True)
class Move:
    """A constant whose elements are moved. `name` tells moves of one constant apart."""

    source: arith.ConstantOp
    make: Callable[[Sequence[np.ndarray], np.ndarray], None]
    name: str


@dataclass(frozen=True)
class Step:
    """The index `factor * loop + offset`; a constant if there is no loop."""

    loop: int | None
    factor: int
    offset: int


def move_of(op: Operation) -> Move | None:
    """Returns how an op moves a constant, or None."""
    if is_padding(op):
        return padding(op)
    if not isinstance(op, linalg.GenericOp) or len(op.outputs) != 1:
        return None
    return transposition(op) or strided(op)


def transposition(op: linalg.GenericOp) -> Move | None:
    """A generic that yields its only input, each of whose dims has a loop of its own."""
    if len(op.inputs) != 1 or not isinstance(op.inputs[0].type, TensorType):
        return None
    if not isinstance(op.inputs[0].owner, arith.ConstantOp):
        return None
    end = op.body.block.first_op
    if not isinstance(end, linalg.YieldOp) or end.operands[0] is not op.body.block.args[0]:
        return None
    source, result = (list(each.results) for each in maps(op))
    whole = all(isinstance(e, AffineDimExpr) for e in source)
    if not whole or len(set(source)) != len(source) or set(source) != set(result):
        return None
    order = [source.index(e) for e in result]

    def make(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
        np.copyto(out, np.transpose(arrays[0], order))

    return Move(op.inputs[0].owner, make, f"transposed{''.join(map(str, order))}")


def strided(op: linalg.GenericOp) -> Move | None:
    """A generic that yields a constant at indices `factor * loop + offset`, each loop in one."""
    *_, end = op.body.block.ops
    extract = end.operands[0].owner
    if op.inputs or not is_extract(extract) or not is_parallel(op):
        return None
    source, kind = extract.tensor.owner, extract.tensor.type
    if not isinstance(source, arith.ConstantOp) or not isinstance(kind, TensorType):
        return None
    ranges = static_ranges(op)
    steps = _steps(extract, kind.get_shape(), ranges)
    if steps is None or maps(op)[0] != AffineMap.identity(len(ranges)):
        return None
    places = tuple(s.offset if s.loop is None else _slice(s, ranges[s.loop]) for s in steps)
    order = np.argsort([s.loop for s in steps if s.loop is not None])

    def make(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
        np.copyto(out, np.transpose(arrays[0][places], order))

    name = "_".join(f"{s.loop}.{s.factor}.{s.offset}" for s in steps)
    return Move(source, make, f"strided_{name}_{'x'.join(map(str, ranges))}")


def _steps(
    extract: tensor.ExtractOp, shape: Sequence[int], ranges: Sequence[int]
) -> list[Step] | None:
    """Returns the index of each dim, if all are in bounds and each loop is in one of them."""
    steps: list[Step] = []
    for index, size in zip(extract.indices, shape, strict=True):
        step = _step(index)
        if step is None or step.factor == 0:
            return None
        last = step.offset + step.factor * (0 if step.loop is None else ranges[step.loop] - 1)
        if not (0 <= step.offset < size and 0 <= last < size):
            return None
        steps.append(step)
    loops = sorted(s.loop for s in steps if s.loop is not None)
    return steps if loops == list(range(len(ranges))) else None


def _slice(step: Step, count: int) -> slice:
    """The slice of the indices of a loop. A stop of -1 would count from the end."""
    stop = step.offset + step.factor * count
    return slice(step.offset, None if stop < 0 else stop, step.factor)


def _step(value: SSAValue) -> Step | None:
    """Returns an index of a body as a step, or None."""
    op = value.owner
    if isinstance(op, linalg.IndexOp):
        return Step(op.dim.value.data, 1, 0)
    if (known := constant_value(value)) is not None:
        return Step(None, 1, known)
    if not isinstance(op, arith.AddiOp | arith.SubiOp | arith.MuliOp):
        return None
    lhs, rhs = _step(op.lhs), _step(op.rhs)
    if lhs is None or rhs is None or (lhs.loop is not None and rhs.loop is not None):
        return None
    return _combined(op, lhs, rhs)


def _combined(op: arith.AddiOp | arith.SubiOp | arith.MuliOp, lhs: Step, rhs: Step) -> Step:
    """Returns the sum, difference or product of two steps, one of which is a constant."""
    moving, number = (lhs, rhs.offset) if rhs.loop is None else (rhs, lhs.offset)
    if isinstance(op, arith.MuliOp):
        return Step(moving.loop, moving.factor * number, moving.offset * number)
    if isinstance(op, arith.AddiOp):
        return Step(moving.loop, moving.factor, moving.offset + number)
    if rhs.loop is None:
        return Step(moving.loop, moving.factor, moving.offset - number)
    return Step(moving.loop, -moving.factor, number - moving.offset)


def padding(op: Operation) -> Move | None:
    """The insertion of a constant into a fill with a constant."""
    source, part = op.operands[0].owner, inserted(op)
    if not isinstance(source, arith.ConstantOp) or part is None:
        return None
    fill = part.source.owner
    assert isinstance(fill, linalg.GenericOp)
    value, kind = filled_value(fill), part.source.type
    assert isinstance(kind, TensorType)
    if (
        value is None
        or not kind.has_static_shape()
        or not isinstance(value.value, FloatAttr | IntegerAttr)
    ):
        return None
    around = value.value.value.data
    places = tuple(
        slice(n, n + size)
        for n, size in zip(part.offsets, part.sizes, strict=True)
        if isinstance(n, int) and isinstance(size, int)
    )

    def make(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
        out[...] = around
        out[places] = arrays[0]

    sizes = "x".join(map(str, kind.get_shape()))
    return Move(source, make, f"padded_{sizes}_{'.'.join(map(str, part.offsets))}_{value.value}")
