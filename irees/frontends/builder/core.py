"""
The `Builder`, its `Tensor` type, and the primitives that all other builder functions use.

`Builder` appends ops to one block. A `Tensor` is an SSA value with a `DType` and its dims, each an
int or an index value; two dims that are the same SSA value are equal. The builder does not verify
ops: the complete module is verified once at the end.

The primitives are `structured` (a `linalg.generic` whose body is a Python function of scalars),
`map` (elementwise with broadcasting), `from_function` (each element from its indices) and `reduce`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from xdsl.dialects import arith, cf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    LocationAttr,
    StringAttr,
    TensorType,
    i32,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from irees.blobs import Blob
from irees.dialects.resources import resource_attr
from irees.transforms.utils.shapes import IndexBuilder, Size

from .dtypes import BOOL, DType
from .scalars import Body, Scalar

Fn = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor value: its SSA value, dtype, and dims (ints or index values)."""

    value: SSAValue
    dtype: DType
    shape: tuple[Size, ...]

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether all dims are static."""
        return all(isinstance(size, int) for size in self.shape)


def same(a: Size, b: Size) -> bool:
    """Whether two dims are known to be equal."""
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


@lru_cache(1 << 12)
def _tensor_type(element: Attribute, shape: tuple[int, ...]) -> TensorType:
    return TensorType(element, shape)


def tensor_type(dtype: DType, shape: Sequence[Size]) -> TensorType:
    """The MLIR type of a tensor with these dims."""
    sizes = tuple(s if isinstance(s, int) else DYNAMIC_INDEX for s in shape)
    return _tensor_type(dtype.element, sizes)


@lru_cache(1 << 12)
def _maps_attr(maps: tuple[AffineMap, ...]) -> ArrayAttr:
    return ArrayAttr(AffineMapAttr(m) for m in maps)


@lru_cache(1 << 8)
def _kinds_attr(reduced: tuple[bool, ...]) -> ArrayAttr:
    names = (IteratorType.REDUCTION if r else IteratorType.PARALLEL for r in reduced)
    return ArrayAttr(IteratorTypeAttr(name) for name in names)


@lru_cache(1 << 8)
def _segments(*counts: int) -> DenseArrayBase:
    return DenseArrayBase.from_list(i32, list(counts))


@lru_cache(1 << 10)
def projection(loops: int, dims: tuple[int | None, ...]) -> AffineMap:
    """
    The map (d0, ..., dn) -> (d[dims[0]], d[dims[1]], ...), where None stands for the constant 0.
    """
    from xdsl.ir.affine import AffineExpr

    results = [AffineExpr.constant(0) if d is None else AffineExpr.dimension(d) for d in dims]
    return AffineMap(loops, 0, tuple(results))


class Builder(IndexBuilder):
    """Appends ops to a block, all with the current location."""

    def __init__(self, block: Block, location: LocationAttr | None = None):
        super().__init__(InsertPoint.at_end(block), {})
        self.block = block
        self.location = location
        self._numbers: dict[tuple[str, str], SSAValue] = {}

    def insert(self, op: Operation) -> Operation:
        """Appends an op."""
        if self.location is not None:
            op.location = self.location
        self.block.add_op(op)
        return op

    def emit(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        results: Sequence[Attribute],
        properties: dict[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """Creates an op from its parts and appends it."""
        op = kind.create(
            operands=operands, result_types=results, properties=properties or {}, regions=regions
        )
        return self.insert(op)

    @contextmanager
    def inside(self, block: Block):
        """Redirects insertion to another block; values computed there are not reused outside."""
        saved = self.block, self.known, self._numbers, self.point
        self.block, self.point = block, InsertPoint.at_end(block)
        self.known, self._numbers = dict(self.known or {}), dict(self._numbers)
        try:
            yield self
        finally:
            self.block, self.known, self._numbers, self.point = saved

    # --- constants, tensors and scalars ---

    def of(self, value: SSAValue, dtype: DType, shape: Sequence[Size]) -> Tensor:
        """Wraps a value as a tensor of this dtype and shape."""
        return Tensor(value, dtype, tuple(shape))

    def number(self, value: float | complex | bool, dtype: DType) -> SSAValue:
        """A scalar constant of a real dtype."""
        key = (repr(value), dtype.name)
        if key not in self._numbers:
            attributes = {"value": dtype.attribute(value)}  # pyright: ignore
            op = self.emit(arith.ConstantOp, (), (dtype.element,), attributes)
            self._numbers[key] = op.results[0]
        return self._numbers[key]

    def constant(self, array: np.ndarray, dtype: DType, key: str | None = None) -> Tensor:
        """A tensor constant backed by the array's memory; copied only if not contiguous."""
        blob = Blob.from_array(key or "", array)
        if key is None:
            blob.key = f"constant_{blob.digest()}"
        kind = tensor_type(dtype, array.shape)
        op = self.emit(arith.ConstantOp, (), (kind,), {"value": resource_attr(blob, kind)})
        return Tensor(op.results[0], dtype, array.shape)

    def empty(self, dtype: DType, shape: Sequence[Size]) -> Tensor:
        """A tensor with undefined elements."""
        dynamic = [s for s in shape if isinstance(s, SSAValue)]
        op = self.emit(tensor.EmptyOp, dynamic, (tensor_type(dtype, shape),))
        return Tensor(op.results[0], dtype, tuple(shape))

    def full(self, value: float | complex | bool, dtype: DType, shape: Sequence[Size]) -> Tensor:
        """A tensor filled with one number."""
        if dtype.is_complex:
            return self.from_function(lambda s, *_: s.number(value, dtype), shape, dtype)
        return self.splat(self.number(value, dtype), dtype, shape)

    def splat(self, value: SSAValue, dtype: DType, shape: Sequence[Size]) -> Tensor:
        """A tensor filled with one scalar value."""
        init = self.empty(dtype, shape)
        block = Block(arg_types=[dtype.element, dtype.element])
        block.add_op(linalg.YieldOp.create(operands=[block.args[0]]))
        op = self.emit(
            linalg.FillOp,
            (value, init.value),
            (init.value.type,),
            {"operandSegmentSizes": _segments(1, 1)},
            (Region(block),),
        )
        return Tensor(op.results[0], dtype, init.shape)

    def rank0(self, value: SSAValue, dtype: DType) -> Tensor:
        """A scalar value as a rank-0 tensor."""
        op = self.emit(tensor.FromElementsOp, (value,), (tensor_type(dtype, ()),))
        return Tensor(op.results[0], dtype, ())

    def item(self, x: Tensor, indices: Sequence[Size] = ()) -> SSAValue:
        """Extracts an element as a scalar value; the indices must be in bounds."""
        at = [self.value(i) for i in indices]
        return self.emit(tensor.ExtractOp, (x.value, *at), (x.dtype.element,)).results[0]

    def compute(self, fn: Fn, *values: tuple[SSAValue, DType]) -> Scalar:
        """Emits scalar arithmetic outside of structured ops: `fn` of these values."""
        body = Body(self.block, self.location)
        return fn(*(Scalar(body, value, dtype) for value, dtype in values))

    def check(self, condition: SSAValue, message: str) -> None:
        """Aborts the program with a message if a bool is false."""
        self.emit(cf.AssertOp, (condition,), (), {"msg": StringAttr(message)})

    # --- primitives ---

    def structured(
        self,
        inputs: Sequence[Tensor],
        inits: Sequence[Tensor],
        maps: Sequence[AffineMap],
        reduced: Sequence[bool],
        body: Fn,
    ) -> list[Tensor]:
        """
        A `linalg.generic`: one loop per entry of `reduced`, one map per operand, inits last.

        `body(s, *scalars)` gets a `Body` and an element of each operand, and returns one Scalar per
        init (a bare Scalar for a single init). The results have the dtypes and dims of the inits.
        """
        operands = [*inputs, *inits]
        block = Block(arg_types=[t.dtype.element for t in operands])
        s = Body(block, self.location)
        arguments = [Scalar(s, arg, t.dtype) for arg, t in zip(block.args, operands)]
        results = body(s, *arguments)
        results = (results,) if isinstance(results, Scalar) else tuple(results)
        yielded = [r.to(t.dtype).value for r, t in zip(results, inits, strict=True)]
        block.add_op(linalg.YieldOp.create(operands=yielded))
        op = self.emit(
            linalg.GenericOp,
            [t.value for t in operands],
            [t.value.type for t in inits],
            {
                "indexing_maps": _maps_attr(tuple(maps)),
                "iterator_types": _kinds_attr(tuple(reduced)),
                "operandSegmentSizes": _segments(len(inputs), len(inits)),
            },
            (Region(block),),
        )
        return [Tensor(r, t.dtype, t.shape) for r, t in zip(op.results, inits)]

    def map(
        self, fn: Fn, *inputs: Tensor, dtype: DType | None = None, shape: Sequence[Size] = ()
    ) -> Tensor:
        """
        out[i] = fn(x[i], y[i], ...), with shapes broadcast against each other (and `shape`) as in
        numpy. `dtype` is the result's dtype and defaults to that of the first input.
        """
        out = self.broadcast_shape(*(t.shape for t in inputs), tuple(shape))
        init = self.empty(dtype or inputs[0].dtype, out)
        maps = [self.broadcast_map(t.shape, out) for t in inputs]
        maps.append(projection(len(out), tuple(range(len(out)))))
        reduced = [False] * len(out)
        n = len(inputs)
        return self.structured(inputs, [init], maps, reduced, lambda s, *v: fn(*v[:n]))[0]

    def from_function(self, fn: Fn, shape: Sequence[Size], dtype: DType) -> Tensor:
        """out[i, j, ...] = fn(s, i, j, ...), where the indices are Scalars of type index."""
        rank = len(shape)
        if any(isinstance(size, int) and size == 0 for size in shape):
            return self.empty(dtype, shape)
        return self.structured(
            [],
            [self.empty(dtype, shape)],
            [projection(rank, tuple(range(rank)))],
            [False] * rank,
            lambda s, _: fn(s, *(s.index(i) for i in range(rank))),
        )[0]

    def reduce(
        self,
        fn: Fn,
        inputs: Sequence[Tensor],
        axes: Sequence[int],
        starts: Sequence[tuple[Any, DType]],
    ) -> list[Tensor]:
        """
        Reduces along axes: acc = fn(s, *elements, *accs) from the start values (number, dtype).

        All inputs have the same shape; the results lack the reduced axes.
        """
        shape = inputs[0].shape
        kept = tuple(i for i in range(len(shape)) if i not in axes)
        inits = [self.full(v, dtype, [shape[i] for i in kept]) for v, dtype in starts]
        whole = projection(len(shape), tuple(range(len(shape))))
        maps = [whole] * len(inputs) + [projection(len(shape), kept)] * len(inits)
        return self.structured(inputs, inits, maps, [i in axes for i in range(len(shape))], fn)

    # --- broadcasting ---

    def broadcast_shape(self, *shapes: Sequence[Size]) -> tuple[Size, ...]:
        """The broadcast shape; a dim that is not statically 1 is assumed not to stretch."""
        rank = max((len(shape) for shape in shapes), default=0)
        out: list[Size] = [1] * rank
        for shape in shapes:
            for i, size in enumerate(shape, rank - len(shape)):
                current = out[i]
                if isinstance(current, int) and (current == 1 or not isinstance(size, int)):
                    # A static 4 against a dynamic dim gives 4.
                    out[i] = size if current == 1 else current
                elif isinstance(size, int) and size != 1:
                    out[i] = size
        return tuple(out)

    def broadcast_map(self, shape: Sequence[Size], out: Sequence[Size]) -> AffineMap:
        """The indexing map of an operand of `shape` in a loop nest over `out`."""
        skipped = len(out) - len(shape)
        stretched = (
            None if isinstance(size, int) and size == 1 and not same(size, out[i]) else i
            for i, size in enumerate(shape, skipped)
        )
        return projection(len(out), tuple(stretched))

    # --- casts ---

    def cast(self, x: Tensor, dtype: DType) -> Tensor:
        """Returns x with its elements converted (`Scalar.to`)."""
        if dtype is x.dtype:
            return x
        if dtype.element == x.dtype.element:
            return Tensor(x.value, dtype, x.shape)
        return self.map(lambda v: v.to(dtype), x, dtype=dtype)

    def with_shape(self, x: Tensor, shape: Sequence[Size]) -> Tensor:
        """x with dims known to equal its own; casts if the static type changes."""
        kind = tensor_type(x.dtype, shape)
        value = x.value
        if value.type != kind:
            value = self.emit(tensor.CastOp, (value,), (kind,)).results[0]
        return Tensor(value, x.dtype, tuple(shape))

    def is_true(self, x: Tensor) -> Tensor:
        """x != 0 as bool."""
        return self.cast(x, BOOL)
