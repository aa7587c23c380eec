"""
Builds tensor ops from scalar equations.

`builder.compute(inputs, inits, maps, body)` creates one `linalg.generic`. Its loops follow from the
maps: loops that index no output are reductions. Its body is a Python function of scalars. The
builder inserts ops in front of the op that they replace, with its location.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, complex, tensor
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    TensorType,
    f32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint
from xdsl.utils.hints import isa

from irees.transforms.utils.shapes import IndexBuilder, Size, split, static_shape
from irees.transforms.utils.structured import element_type, generic


class ValueBuilder(IndexBuilder):
    """Builds ops on scalars."""

    def number(self, value: float, kind: Attribute) -> SSAValue:
        """Returns a constant of a scalar type."""
        return self.insert(constant(value, kind)).results[0]

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """condition ? yes : no"""
        return self.op(arith.SelectOp, condition, yes, no)

    def compare(self, lhs: Size, rhs: Size, predicate: str) -> SSAValue:
        """Compares two indices."""
        return self.insert(arith.CmpiOp(self.value(lhs), self.value(rhs), predicate)).results[0]

    def all(self, conditions: Sequence[SSAValue]) -> SSAValue | None:
        """Returns the conjunction of the conditions, or None if there are none."""
        result: SSAValue | None = None
        for condition in conditions:
            result = condition if result is None else self.op(arith.AndIOp, result, condition)
        return result

    def cast(self, value: SSAValue, kind: Attribute) -> SSAValue:
        """Converts a number to another type: floats are rounded, integers wrap, i1 is 0 or 1."""
        source = value.type
        if source == kind:
            return value
        if isa(source, AnyFloat) and isa(kind, AnyFloat):
            return self.op(arith.ExtFOp if wider(kind, source) else arith.TruncFOp, value, kind)
        if source == IntegerType(1) and isinstance(kind, IndexType):
            return self.cast(self.cast(value, i64), kind)
        if isinstance(source, IndexType) or isinstance(kind, IndexType):
            return self.op(arith.IndexCastOp, value, kind)
        assert isinstance(source, IntegerType)
        if isa(kind, AnyFloat):
            unsigned = source.width.data == 1
            return self.op(arith.UIToFPOp if unsigned else arith.SIToFPOp, value, kind)
        assert isinstance(kind, IntegerType)
        if kind.width.data < source.width.data:
            return self.op(arith.TruncIOp, value, kind)
        return self.op(arith.ExtUIOp if source.width.data == 1 else arith.ExtSIOp, value, kind)


class ScalarBuilder(ValueBuilder):
    """Builds the body of a structured op."""

    def __init__(self, block: Block):
        super().__init__(InsertPoint.at_end(block))

    @classmethod
    def before(cls, op: Operation) -> ScalarBuilder:
        """Returns a builder in front of an op of the body."""
        assert op.parent is not None
        builder = cls(op.parent)
        builder.point = InsertPoint.before(op)
        return builder

    def index(self, loop: int) -> SSAValue:
        """Returns the index of a loop."""
        return self.insert(linalg.IndexOp(loop)).results[0]

    def extract(self, source: SSAValue, indices: Sequence[Size]) -> SSAValue:
        """source[indices], with indices clamped to the bounds."""
        values = [self.value(i) for i in indices]
        op = tensor.ExtractOp(source, values, element_type(source))
        return self.insert(op).results[0]

    def inside(self, indices: Sequence[Size], sizes: Sequence[Size]) -> SSAValue | None:
        """Returns whether 0 <= index < size for every dim, or None for rank 0."""
        # One unsigned comparison: negative indices are very large.
        return self.all([self.compare(i, n, "ult") for i, n in zip(indices, sizes, strict=True)])


Body = Callable[[ScalarBuilder, list[SSAValue]], Sequence[SSAValue]]
"""Computes the yielded scalars of a structured op from its block arguments."""


class TensorBuilder(ValueBuilder):
    """Builds ops in front of the op that they replace."""

    def __init__(self, op: Operation):
        super().__init__(InsertPoint.before(op))
        self.location = op.location

    def insert(self, op: Operation) -> Operation:
        """Inserts any op here."""
        op.location = self.location
        return super().insert(op)

    def empty(self, element: Attribute, sizes: Sequence[Size]) -> SSAValue:
        """Returns an uninitialized tensor of these sizes."""
        static, dynamic = split(sizes)
        return self.insert(tensor.EmptyOp(dynamic, TensorType(element, static))).results[0]

    def filled(self, number: float, element: Attribute, sizes: Sequence[Size]) -> SSAValue:
        """Returns a tensor of these sizes, filled with a number."""
        value = self.insert(constant(number, element)).results[0]
        return self.fill(value, sizes)

    def fill(self, value: SSAValue, sizes: Sequence[Size]) -> SSAValue:
        """Returns a tensor of these sizes, filled with a value."""
        init = self.empty(value.type, sizes)
        return self.insert(linalg.FillOp([value], [init], [init.type])).results[0]

    def compute(
        self,
        inputs: Sequence[SSAValue],
        inits: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        body: Body,
    ) -> list[SSAValue]:
        """Returns the results of a linalg.generic; loops that index no init are reductions."""
        block = Block(arg_types=[element_type(v) for v in (*inputs, *inits)])
        inside = ScalarBuilder(block)
        block.add_op(linalg.YieldOp(*body(inside, list(block.args))))
        written = {d for m in maps[len(inputs) :] for e in m.results for d in e.used_dims()}
        kinds = ["parallel" if d in written else "reduction" for d in range(maps[0].num_dims)]
        return list(self.insert(generic(inputs, inits, maps, kinds, Region(block))).results)

    def stored(self, value: SSAValue, out: SSAValue) -> SSAValue:
        """Converts a tensor to the element type of `out`, writing into `out`; no-op if equal."""
        if value.type == out.type:
            return value
        kind, identity = element_type(out), AffineMap.identity(rank_of(value))
        return self.compute([value], [out], [identity] * 2, lambda s, v: [s.cast(v[0], kind)])[0]

    def cast_tensor(self, value: SSAValue, kind: Attribute) -> SSAValue:
        """Casts a tensor to a type with other static dims."""
        if value.type == kind:
            return value
        assert isinstance(kind, TensorType)
        return self.insert(tensor.CastOp(value, kind)).results[0]

    def index(self, value: SSAValue) -> SSAValue:
        """Converts an integer to an index."""
        if isinstance(value.type, IndexType):
            return value
        return self.insert(arith.IndexCastOp(value, IndexType())).results[0]

    def extract_slice(
        self, source: SSAValue, offsets: Sequence[Size], sizes: Sequence[Size]
    ) -> SSAValue:
        """tensor.extract_slice with unit strides."""
        shape = static_shape(sizes)
        kind = TensorType(element_type(source), shape)
        return self.insert(
            tensor.ExtractSliceOp(source, offsets, sizes, [1] * len(sizes), kind)
        ).results[0]

    def insert_slice(
        self, source: SSAValue, target: SSAValue, offsets: Sequence[Size], sizes: Sequence[Size]
    ) -> SSAValue:
        """tensor.insert_slice with unit strides."""
        return insert_slice(source, target, list(offsets), list(sizes), self)


def constant(value: float, kind: Attribute) -> arith.ConstantOp | complex.ConstantOp:
    """Returns a scalar constant, with imaginary part 0 for complex types."""
    if isinstance(kind, ComplexType):
        parts = [constant(part, kind.element_type) for part in (value, 0)]
        return complex.ConstantOp(ArrayAttr([part.properties["value"] for part in parts]), kind)
    if isa(kind, AnyFloat):
        return arith.ConstantOp(FloatAttr(float(value), kind))
    assert isinstance(kind, IntegerType | IndexType)
    return arith.ConstantOp(IntegerAttr(int(value), kind))


def wider(kind: Attribute, other: Attribute) -> bool:
    """Whether a float type has more bits than another."""
    return kind.bitwidth > other.bitwidth  # pyright: ignore


def accumulator_type(*kinds: Attribute) -> Attribute:
    """Returns the type for sums of floats of these types: f32, or f64 if one of them is f64."""
    widest: Attribute = f32
    for kind in kinds:
        if isa(kind, AnyFloat) and wider(kind, widest):
            widest = kind
    return widest


def select_dims(loops: int, dims: Sequence[int]) -> AffineMap:
    """(d0, ...) -> (dims)"""
    return AffineMap(loops, 0, tuple(AffineExpr.dimension(d) for d in dims))


def rank_of(value: SSAValue) -> int:
    """Returns the rank of a tensor or memref."""
    assert isinstance(value.type, TensorType | MemRefType)
    return value.type.get_num_dims()


def is_static(value: SSAValue) -> bool:
    """Whether every dim of a tensor is static; a scalar has none."""
    if not isinstance(value.type, TensorType):
        return True
    return min(value.type.get_shape(), default=0) >= 0


def empty(kind: TensorType, sizes: list[Size], builder: IndexBuilder) -> SSAValue:
    """tensor.empty; dynamic dims of `kind` get their values from `sizes`."""
    dynamic = [builder.value(s) for s, n in zip(sizes, kind.get_shape(), strict=True) if n < 0]
    return builder.insert(tensor.EmptyOp(dynamic, kind)).results[0]


def insert_slice(
    source: SSAValue,
    target: SSAValue,
    offsets: list[Size],
    sizes: list[Size],
    builder: IndexBuilder,
) -> SSAValue:
    """tensor.insert_slice with unit strides"""
    static_offsets, dynamic_offsets = split(offsets)
    # A size must be static exactly if it is static in the source type.
    assert isinstance(source.type, TensorType)
    static_sizes = list(source.type.get_shape())
    dynamic_sizes = [builder.value(s) for s, n in zip(sizes, static_sizes, strict=True) if n < 0]
    op = tensor.InsertSliceOp.build(
        operands=[source, target, dynamic_offsets, dynamic_sizes, []],
        properties={
            "static_offsets": DenseArrayBase.from_list(i64, static_offsets),
            "static_sizes": DenseArrayBase.from_list(i64, static_sizes),
            "static_strides": DenseArrayBase.from_list(i64, [1] * len(sizes)),
        },
        result_types=[target.type],
    )
    return builder.insert(op).results[0]
