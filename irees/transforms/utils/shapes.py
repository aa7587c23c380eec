"""
Dims of tensors as values: ints if static, SSA values if dynamic.

As in MLIR's `ReifyRankedShapedTypeOpInterface`, the dims of a result are computed from the dims of
the operands, so shapes do not depend on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from xdsl.dialects import arith, memref, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
    UnknownLoc,
    i64,
)
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from irees.analysis.element_sizes import item_bytes
from irees.dialects.result_sizes import reassociation as reassociation
from irees.dialects.result_sizes import result_size
from irees.dialects.sizes import Dim, Scalar, Size, constant_value, evaluate, mixed
from irees.dialects.storage import is_allocation, slice_of

Known = dict[tuple[object, ...], SSAValue]
"""Operation and operands => result that can be reused."""


@lru_cache(1 << 12)
def index_attr(value: int) -> IntegerAttr[IndexType]:
    """value : index"""
    return IntegerAttr.from_index_int_value(value)


def insert_located(op: Operation, point: InsertPoint) -> Operation:
    """
    Inserts an op. If it has no location, it gets that of the following op, or else of the parent
    op; so do the ops in its regions. This traces generated code back to the source.
    """
    Rewriter.insert_op(op, point)
    location = op.location
    if isinstance(location, UnknownLoc):
        near = point.insert_before or point.block.parent_op()
        location = location if near is None else near.location
    if not isinstance(location, UnknownLoc):
        for inner in op.walk() if op.regions else (op,):
            if isinstance(inner.location, UnknownLoc):
                inner.location = location
    return op


class IndexBuilder:
    """
    Builds index arithmetic at one insertion point, and folds constants.

    With `known`, equal computations reuse the value that this builder or an enclosing one created.
    Those ops must not move while the builder is in use.
    """

    def __init__(self, point: InsertPoint, known: Known | None = None):
        self.point = point
        self.known = known

    def within(self, block: Block) -> IndexBuilder:
        """Returns a builder at the end of a block of an op that this builder inserts next."""
        known = None if self.known is None else dict(self.known)
        return IndexBuilder(InsertPoint.at_end(block), known)

    def insert(self, op: Operation) -> Operation:
        """Inserts any op here, as `insert_located` does."""
        return insert_located(op, self.point)

    def op(self, kind: type[Operation], *operands: SSAValue, **options: Any) -> SSAValue:
        """Inserts an op; returns its result."""
        return self.insert(kind(*operands, **options)).results[0]

    def value(self, size: Size) -> SSAValue:
        """Returns the size as an SSA value."""
        if isinstance(size, SSAValue):
            return size
        return self._once(lambda: arith.ConstantOp(index_attr(size)), size)

    def _once(self, make: Callable[[], Operation], *key: object) -> SSAValue:
        """Returns the result of `make()`, or the known value with that key."""
        known = None if self.known is None else self.known.get(key)
        if known is None:
            known = self.insert(make()).results[0]
            if self.known is not None:
                self.known[key] = known
        return known

    def _binary(self, kind: Callable[..., Operation], a: Size, b: Size) -> SSAValue:
        return self._once(lambda: kind(self.value(a), self.value(b)), kind, a, b)

    def add(self, a: Size, b: Size) -> Size:
        """a + b"""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 and isinstance(a, int):
            return b
        if b == 0 and isinstance(b, int):
            return a
        return self._binary(arith.AddiOp, a, b)

    def sub(self, a: Size, b: Size) -> Size:
        """a - b"""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        if isinstance(b, int) and b == 0:
            return a
        return self._binary(arith.SubiOp, a, b)

    def mul(self, a: Size, b: Size) -> Size:
        """a * b"""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if isinstance(a, int) and a == 1:
            return b
        if isinstance(b, int) and b == 1:
            return a
        if (isinstance(a, int) and a == 0) or (isinstance(b, int) and b == 0):
            return 0
        return self._binary(arith.MuliOp, a, b)

    def floordiv(self, a: Size, b: Size) -> Size:
        """a / b for a >= 0, b > 0"""
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        if isinstance(b, int) and b == 1:
            return a
        return self._binary(arith.DivUIOp, a, b)

    def whole(self, size: Size, block: Size) -> Size:
        """The largest multiple of `block` up to `size`, for size >= 0, block > 0"""
        return self.mul(self.floordiv(size, block), block)

    def ceildiv(self, a: Size, b: Size) -> Size:
        """ceil(a / b) for a >= 0, b > 0"""
        return self.floordiv(self.add(a, self.sub(b, 1)), b)

    def rem(self, a: Size, b: Size) -> Size:
        """a mod b for a >= 0, b > 0"""
        if isinstance(a, int) and isinstance(b, int):
            return a % b
        if isinstance(b, int) and b == 1:
            return 0
        return self._binary(arith.RemUIOp, a, b)

    def minimum(self, a: Size, b: Size) -> Size:
        """min(a, b)"""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self._binary(arith.MinSIOp, a, b)

    def maximum(self, a: Size, b: Size) -> Size:
        """max(a, b)"""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self._binary(arith.MaxSIOp, a, b)

    def at_least(self, a: Size, b: Size) -> SSAValue:
        """a >= b, as i1"""
        return self._binary(lambda x, y: arith.CmpiOp(x, y, "sge"), a, b)

    def product(self, sizes: Sequence[Size]) -> Size:
        """Returns the product of all sizes."""
        result: Size = prod(s for s in sizes if isinstance(s, int))
        for size in sizes:
            if not isinstance(size, int):
                result = self.mul(result, size)
        return result


def static_shape(sizes: Sequence[Size]) -> list[int]:
    """Returns sizes with `?` for those that are values."""
    return [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]


def split(sizes: Sequence[Size]) -> tuple[list[int], list[SSAValue]]:
    """The inverse of `mixed`; index constants become static."""
    known = [constant_value(size) if isinstance(size, SSAValue) else size for size in sizes]
    pairs = zip(sizes, known, strict=True)
    dynamic = [size for size, n in pairs if n is None and isinstance(size, SSAValue)]
    return [DYNAMIC_INDEX if n is None else n for n in known], dynamic


def dims(value: SSAValue, builder: IndexBuilder) -> list[Size]:
    """Returns all dims of a ranked tensor value."""
    assert isinstance(value.type, TensorType)
    shape = value.type.get_shape()
    if DYNAMIC_INDEX not in shape:
        return list(shape)
    return [dim(value, i, builder) for i in range(len(shape))]


def dynamic_dims(value: SSAValue, builder: IndexBuilder) -> list[SSAValue]:
    """Returns the dynamic dims of a tensor, in order, as SSA values."""
    assert isinstance(value.type, TensorType)
    shape = value.type.get_shape()
    return [
        builder.value(dim(value, i, builder)) for i, s in enumerate(shape) if s == DYNAMIC_INDEX
    ]


def sizes_of(value: SSAValue, builder: IndexBuilder) -> list[SSAValue]:
    """Returns the dynamic dims of a tensor as `tensor.dim` of the tensor itself."""
    assert isinstance(value.type, TensorType)
    return [
        builder.insert(tensor.DimOp(value, builder.value(index))).results[0]
        for index, size in enumerate(value.type.get_shape())
        if size == DYNAMIC_INDEX
    ]


def dim(value: SSAValue, index: int, builder: IndexBuilder) -> Size:
    """Returns one dim of a ranked tensor value, computed from operands of its op if possible."""
    assert isinstance(value.type, TensorType)
    size = value.type.get_shape()[index]
    if size != DYNAMIC_INDEX:
        return size
    found = None if isinstance(value, BlockArgument) else _result_dim(value, index, builder)
    if found is not None:
        return found
    at = builder.value(index)
    return builder.insert(tensor.DimOp(value, at)).results[0]


def _result_dim(value: SSAValue, index: int, builder: IndexBuilder) -> Size | None:
    """Returns one dim of an op's result computed from the op's operands, or None."""
    assert isinstance(value, OpResult)
    if value.op.name in ("flow.dispatch", "flow.dispatch.region"):
        return _listed_dim(value, index)
    expr = result_size(value, index)

    def leaf(part: Dim | Scalar) -> Size:
        if isinstance(part, Dim):
            return dim(part.value, part.axis, builder)
        return part.value if part.at is None else shape_element(part.value, part.at, builder)

    return None if expr is None else evaluate(expr, leaf, builder)


def _listed_dim(value: OpResult, index: int) -> SSAValue:
    """Returns a dynamic dim from `result_dims`, which lists those of all results of an op."""
    assert isinstance(value.type, TensorType)
    position = value.type.get_shape()[:index].count(DYNAMIC_INDEX)
    for result in value.op.results[: value.index]:
        assert isinstance(result.type, TensorType)
        position += result.type.get_shape().count(DYNAMIC_INDEX)
    return value.op.result_dims[position]


def shape_element(shape: SSAValue, index: int, builder: IndexBuilder) -> SSAValue:
    """Returns one element of a shape tensor as an index."""
    if isinstance(shape.owner, tensor.FromElementsOp):
        value = shape.owner.elements[index]
    else:
        assert isinstance(shape.type, TensorType)
        at = [builder.value(index)]
        value = builder.insert(tensor.ExtractOp(shape, at, shape.type.element_type)).results[0]
    if isinstance(value.type, IndexType):
        return value
    return builder.insert(arith.IndexCastOp(value, IndexType())).results[0]


def same_size(a: Size, b: Size) -> bool:
    """Whether two sizes are known to be equal; compares the defining ops, as CSE does."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    if a is b or not isinstance(a, OpResult) or not isinstance(b, OpResult):
        return a is b
    x, y = a.op, b.op
    if type(x) is not type(y) or x.properties != y.properties or not is_side_effect_free(x):
        return False
    same = len(x.operands) == len(y.operands) and a.index == b.index and not x.regions
    return same and all(map(same_size, x.operands, y.operands))


def reassociation_attr(groups: Sequence[Sequence[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    """Returns the attribute of reassociation groups."""
    return ArrayAttr(ArrayAttr(IntegerAttr(i, i64) for i in group) for group in groups)


def index_type() -> IndexType:
    """Returns the `index` type."""
    return IndexType()


def buffer_dim(buffer: SSAValue, axis: int, builder: IndexBuilder) -> Size:
    """Returns one dim of a memref, from its defining op if that states the size."""
    assert isinstance(buffer.type, MemRefType)
    size = buffer.type.get_shape()[axis]
    if size != DYNAMIC_INDEX:
        return size
    op = buffer.owner
    if (view := slice_of(op)) is not None:
        return view.sizes[view.kept[axis]]
    if is_allocation(op):
        return mixed(buffer.type.get_shape(), op.dynamic_sizes)[axis]  # type: ignore
    return builder.insert(memref.DimOp(buffer, builder.value(axis))).results[0]


def upper_bound(size: Size) -> int | None:
    """Returns a constant upper bound of a size, or None if no constant or `min` gives one."""
    if isinstance(size, int):
        return size
    if not isinstance(size.owner, arith.MinSIOp):
        return None
    known = [b for b in map(constant_value, size.owner.operands) if b is not None]
    return min(known, default=None)


def remainder(size: Size, block: int) -> int | None:
    """
    Returns the only nonzero value that size mod block may take, 0 if it is always 0, else None.

    Known cases: constants, products with a multiple of block (0), and tiles of a constant n,
    min(tile, n - i * tile), with tile a multiple of block: only the last has a remainder, n mod
    block.
    """
    if isinstance(size, int):
        return size % block
    if isinstance(size.owner, arith.MuliOp):
        factors = [constant_value(factor) for factor in size.owner.operands]
        return 0 if any(f is not None and f % block == 0 for f in factors) else None
    if not isinstance(size.owner, arith.MinSIOp):
        return None
    tile, rest = constant_value(size.owner.lhs), size.owner.rhs.owner
    if tile is None or tile % block or not isinstance(rest, arith.SubiOp):
        return None
    whole, offset = constant_value(rest.lhs), rest.rhs.owner
    if whole is None or not isinstance(offset, arith.MuliOp):
        return None
    return whole % block if constant_value(offset.rhs) == tile else None


def element_bytes(kind: TensorType | MemRefType) -> int:
    """Returns the bytes of one element in memory: 1 for i1, two parts for complex numbers."""
    return item_bytes(kind.element_type)


def delinearize(
    number: Size, loops: Sequence[int], sizes: Sequence[Size], at: IndexBuilder
) -> dict[int, Size]:
    """Returns the index of each loop for a linear iteration number; `loops`: outer to inner."""
    found: dict[int, Size] = {}
    rest = number
    for loop in reversed(loops):
        if sizes[loop] == 1:
            found[loop] = 0
        elif loop == loops[0] or all(sizes[x] == 1 for x in loops[: list(loops).index(loop)]):
            found[loop] = rest
        else:
            found[loop] = at.rem(rest, sizes[loop])
            rest = at.floordiv(rest, sizes[loop])
    return found
