"""
Counts the arithmetic operations and the compulsory memory traffic of a function.

Both counts are static lower bounds for any implementation, from the iteration spaces of the
structured ops of a function on tensors:

* flops: trip count times arithmetic ops in the body, summed over ops. A multiply-add counts as two,
  exp, erf and other math functions as one each. Integer arithmetic counts in contractions only;
  elsewhere it computes indices.
* bytes: the elements read of inputs (arguments, constants, tensors that a kernel loads), each
  counted once, plus outputs (results, tensors that a kernel stores). Temporaries cost nothing.

Counts are None if they depend on a dynamic size, or if the function has loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue, Use

from irees.analysis.contractions import multiply_add
from irees.analysis.distribution import loops_of
from irees.analysis.element_sizes import item_bytes
from irees.dialects.flow import DispatchOp, DispatchRegionOp
from irees.dialects.iree_tensor_ext import DispatchTensorLoadOp, DispatchTensorStoreOp
from irees.dialects.resources import is_splat
from irees.dialects.storage import is_dim, is_extract, is_reshape, is_undefined, slice_of
from irees.dialects.util import GlobalLoadOp
from irees.interfaces import flops_in_loops

_FLOATS = frozenset(
    f"arith.{name}"
    for name in "addf subf mulf divf remf negf maximumf minimumf maxnumf minnumf".split()
)
_ROOTS = (DispatchTensorLoadOp, GlobalLoadOp)


@dataclass(frozen=True)
class Work:
    """Arithmetic operations and bytes of one call; None if unknown."""

    flops: int | None
    bytes: int | None


def work_of(function: func.FuncOp) -> Work | None:
    """Returns the work of a function on tensors; None if it contains dispatches."""
    if any(isinstance(op, DispatchOp | DispatchRegionOp) for op in function.walk()):
        return None
    if any(isinstance(op, scf.ForOp | scf.WhileOp) for op in function.walk()):
        return Work(None, None)
    flops = _sum(flops_of(op) for op in function.walk())
    moved = _sum([*(_read(root) for root in _roots(function)), *_written(function)])
    return Work(flops, moved)


def flops_of(op: Operation) -> int | None:
    """Returns the arithmetic operations of one op: those of its body times its trip count."""
    if not isinstance(op, linalg.GenericOp):
        return flops_in_loops(op)
    each = sum(inner.name in _FLOATS or inner.name.startswith("math.") for inner in op.body.walk())
    if each == 0 and multiply_add(op) is not None:
        each = 2
    if each == 0:
        return 0
    points = _points(op, range(len(op.iterator_types)))
    return None if points is None else each * points


def bytes_of(kind: TensorType) -> int | None:
    """Returns the size of a tensor in bytes, None if dynamic."""
    shape: tuple[int, ...] = kind.get_shape()
    return None if any(s < 0 for s in shape) else prod(shape) * item_bytes(kind.get_element_type())


def _points(op: linalg.GenericOp, loops: range | set[int]) -> int | None:
    found = loops_of(op)
    assert found is not None
    sizes = [found.sizes[loop] for loop in loops]
    return None if any(size < 0 for size in sizes) else prod(sizes)


def _roots(function: func.FuncOp) -> Iterator[SSAValue]:
    for argument in function.body.block.args:
        if isinstance(argument.type, TensorType):
            yield argument
    for op in function.walk():
        if isinstance(op, arith.ConstantOp) and isinstance(op.result.type, TensorType):
            value = op.value
            if not is_splat(value):
                yield op.result
        elif isinstance(op, _ROOTS) and isinstance(op.results[0].type, TensorType):
            yield op.results[0]


def _read(value: SSAValue) -> int | None:
    """Returns the bytes read of a tensor, at most its size; a gather reads one per iteration."""
    kind = value.type
    assert isinstance(kind, TensorType)
    whole, size = bytes_of(kind), item_bytes(kind.get_element_type())
    parts = [_read_by(use, whole, size) for use in value.uses]
    total = _sum(parts)
    if whole is None or total is None:
        # An unknown use may read the whole tensor.
        return whole if total is None else total
    return min(whole, total)


def _read_by(use: Use, whole: int | None, size: int) -> int | None:
    op = use.operation
    if (is_reshape(op) or slice_of(op)) and use.index == 0:
        return _read(op.results[0])
    if is_dim(op) or is_undefined(op):
        return 0
    if isinstance(op, linalg.GenericOp):
        if use.index >= len(op.inputs) and not op.body.block.args[use.index].uses:
            return 0
        points = _points(op, op.indexing_maps.data[use.index].data.used_dims())
        if points is None:
            return whole
        return points * size if whole is None else min(whole, points * size)
    if is_extract(op):
        around = op.parent_op()
        points = 1
        if isinstance(around, linalg.GenericOp):
            points = _points(around, range(len(around.iterator_types)))
        return whole if points is None else points * size
    return whole


def _written(function: func.FuncOp) -> Iterator[int | None]:
    for op in function.walk():
        values: tuple[SSAValue, ...] = ()
        if isinstance(op, func.ReturnOp):
            values = tuple(op.operands)
        elif isinstance(op, DispatchTensorStoreOp):
            values = (op.value,)
        for value in values:
            if isinstance(value.type, TensorType):
                yield bytes_of(value.type)


def _sum(parts: list[int | None] | Iterator[int | None]) -> int | None:
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total
