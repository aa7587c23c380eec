"""vector ops that move elements: shape_cast, transpose, slices, gather, scatter, interleave."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    TensorType,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .._effects import DestinationStyleEffects, ReadsMemRefOperands


def shape(type_: Attribute) -> tuple[int, ...]:
    """Returns the shape of a vector, () for a scalar."""
    return type_.get_shape() if isinstance(type_, VectorType) else ()


def ints(attr: ArrayAttr) -> list[int]:
    """Returns the integers of an array attribute."""
    return [item.value.data for item in attr]


def parse_clauses(parser: Parser, names: Sequence[str]) -> dict[str, Attribute]:
    """Parses `offsets = [0], sizes = [2]`, MLIR's current syntax; empty if it is absent."""
    found: dict[str, Attribute] = {}
    for name in names:
        if found:
            parser.parse_punctuation(",")
            parser.parse_keyword(name)
        elif parser.parse_optional_keyword(name) is None:
            return {}
        parser.parse_punctuation("=")
        found[name] = parser.parse_attribute()
    return found


def print_clauses(printer: Printer, clauses: dict[str, ArrayAttr]) -> None:
    """Prints clauses as `parse_clauses` reads them."""
    printer.print_string(
        " " + ", ".join(f"{name} = {ints(attr)}" for name, attr in clauses.items())
    )


@irdl_op_definition
class ShapeCastOp(IRDLOperation):
    """Reshapes a vector, keeping the row-major element order (MLIR: vector.shape_cast)."""

    name = "vector.shape_cast"
    source = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue | Operation, result_type: Attribute):
        super().__init__(operands=[source], result_types=[result_type])

    def verify_(self) -> None:
        source, result = self.source.type, self.result.type
        if math.prod(shape(source)) != math.prod(shape(result)):
            raise VerifyException("source/result number of elements must match")
        if source.element_type != result.element_type:  # type: ignore[union-attr]
            raise VerifyException("has different source and result element types")


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """
    Permutes the dims of a vector: dim i of the result is dim permutation[i] of the operand (MLIR:
    vector.transpose).
    """

    name = "vector.transpose"
    vector = operand_def(VectorType)
    permutation = prop_def(DenseArrayBase.constr(i64))
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$vector `,` $permutation attr-dict `:` type($vector) `to` type($result)"

    def __init__(self, vector: SSAValue | Operation, permutation: Sequence[int]):
        vector = SSAValue.get(vector)
        assert isinstance(vector.type, VectorType)
        sizes = [vector.type.get_shape()[dim] for dim in permutation]
        super().__init__(
            operands=[vector],
            properties={"permutation": DenseArrayBase.from_list(i64, permutation)},
            result_types=[VectorType(vector.type.element_type, sizes)],
        )

    def verify_(self) -> None:
        source, permutation = shape(self.vector.type), self.permutation.get_values()
        if sorted(permutation) != list(range(len(source))):
            raise VerifyException("transposition must be a permutation of the dims of the vector")
        if shape(self.result.type) != tuple(source[dim] for dim in permutation):
            raise VerifyException(
                "expected the shape of the result to be the permuted shape of the operand"
            )


@irdl_op_definition
class ExtractStridedSliceOp(IRDLOperation):
    """
    Extracts a slice of a vector at static offsets; unnamed trailing dims are taken whole (MLIR:
    vector.extract_strided_slice).
    """

    name = "vector.extract_strided_slice"
    source = operand_def(VectorType)
    offsets = prop_def(ArrayAttr[IntegerAttr])
    sizes = prop_def(ArrayAttr[IntegerAttr])
    strides = prop_def(ArrayAttr[IntegerAttr])
    result = result_def(VectorType)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ExtractStridedSliceOp:
        names = ("offsets", "sizes", "strides")
        source = parser.parse_unresolved_operand()
        properties = parse_clauses(parser, names)
        attributes = dict(parser.parse_optional_attr_dict())
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        parser.parse_keyword("to")
        result_type = parser.parse_type()
        return cls.build(
            operands=[parser.resolve_operand(source, source_type)],
            properties=properties or {name: attributes.pop(name, None) for name in names},
            attributes=attributes,
            result_types=[result_type],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        print_clauses(
            printer, {"offsets": self.offsets, "sizes": self.sizes, "strides": self.strides}
        )
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)

    def __init__(self, source: SSAValue | Operation, offsets: Sequence[int], sizes: Sequence[int]):
        source = SSAValue.get(source)
        assert isinstance(source.type, VectorType)
        result = [*sizes, *source.type.get_shape()[len(sizes) :]]
        super().__init__(
            operands=[source],
            properties={
                "offsets": ArrayAttr([IntegerAttr(v, i64) for v in offsets]),
                "sizes": ArrayAttr([IntegerAttr(v, i64) for v in sizes]),
                "strides": ArrayAttr([IntegerAttr(1, i64) for _ in sizes]),
            },
            result_types=[VectorType(source.type.element_type, result)],
        )

    def verify_(self) -> None:
        source, offsets, sizes, strides = (
            shape(self.source.type),
            *map(ints, (self.offsets, self.sizes, self.strides)),
        )
        if not len(offsets) == len(sizes) == len(strides) or len(sizes) > len(source):
            raise VerifyException(
                "expected offsets, sizes and strides of the same length, within the rank"
            )
        if any(stride != 1 for stride in strides):
            raise VerifyException("expected strides to be 1")
        if any(o < 0 or s < 1 or o + s > n for o, s, n in zip(offsets, sizes, source)):
            raise VerifyException("expected the slice to be within the vector")
        if shape(self.result.type) != (*sizes, *source[len(sizes) :]):
            raise VerifyException("expected the result to have the shape of the slice")


@irdl_op_definition
class InsertStridedSliceOp(IRDLOperation):
    """Inserts a vector into another at static offsets (MLIR: vector.insert_strided_slice)."""

    name = "vector.insert_strided_slice"
    source = operand_def(VectorType)
    dest = operand_def(VectorType)
    offsets = prop_def(ArrayAttr[IntegerAttr])
    strides = prop_def(ArrayAttr[IntegerAttr])
    result = result_def(VectorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self, source: SSAValue | Operation, dest: SSAValue | Operation, offsets: Sequence[int]
    ):
        source, dest = SSAValue.get(source), SSAValue.get(dest)
        super().__init__(
            operands=[source, dest],
            properties={
                "offsets": ArrayAttr([IntegerAttr(v, i64) for v in offsets]),
                "strides": ArrayAttr([IntegerAttr(1, i64) for _ in shape(source.type)]),
            },
            result_types=[dest.type],
        )

    @classmethod
    def parse(cls, parser: Parser) -> InsertStridedSliceOp:
        start = parser.pos
        operands = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
        names = ("offsets", "strides")
        properties = parse_clauses(parser, names)
        attributes = dict(parser.parse_optional_attr_dict())
        parser.parse_punctuation(":")
        types = [parser.parse_type()]
        parser.parse_keyword("into")
        types.append(parser.parse_type())
        properties = properties or {key: attributes.pop(key, None) for key in names}
        return cls.build(
            operands=parser.resolve_operands(operands, types, start),
            properties=properties,
            attributes=attributes,
            result_types=[types[1]],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        print_clauses(printer, {"offsets": self.offsets, "strides": self.strides})
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" into ")
        printer.print_attribute(self.dest.type)

    def verify_(self) -> None:
        source, dest, offsets = shape(self.source.type), shape(self.dest.type), ints(self.offsets)
        if len(offsets) != len(dest) or len(source) > len(dest):
            raise VerifyException(
                "expected one offset per dim of dest, and source of no higher rank"
            )
        padded = (1,) * (len(dest) - len(source)) + source
        if any(o < 0 or o + s > n for o, s, n in zip(offsets, padded, dest)):
            raise VerifyException("expected the slice to be within dest")
        if len(self.strides) != len(source) or any(stride != 1 for stride in ints(self.strides)):
            raise VerifyException("expected one stride of 1 per dim of source")
        if self.result.type != self.dest.type:
            raise VerifyException("expected the result to have the type of dest")


@irdl_op_definition
class FromElementsOp(IRDLOperation):
    """Builds a vector of scalars in row-major order (MLIR: vector.from_elements)."""

    name = "vector.from_elements"
    elements = var_operand_def()
    result = result_def(VectorType)
    traits = traits_def(Pure())

    def __init__(self, elements: Sequence[SSAValue | Operation], result_type: Attribute):
        super().__init__(operands=[elements], result_types=[result_type])

    @classmethod
    def parse(cls, parser: Parser) -> FromElementsOp:
        start = parser.pos
        found = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isinstance(type_, VectorType):
            parser.raise_error("expected a vector type", start, parser.pos)
        op = cls(parser.resolve_operands(found, [type_.element_type] * len(found), start), type_)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.elements, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        if len(self.elements) != math.prod(shape(self.result.type)):
            raise VerifyException("expected one operand per element of the result")
        if any(value.type != self.result.type.element_type for value in self.elements):
            raise VerifyException("expected operands of the element type of the result")


@irdl_op_definition
class ToElementsOp(IRDLOperation):
    """The scalars of a vector, in row-major order (MLIR: vector.to_elements)."""

    name = "vector.to_elements"
    source = operand_def(VectorType)
    elements = var_result_def()
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue | Operation):
        source = SSAValue.get(source)
        assert isinstance(source.type, VectorType)
        count = math.prod(source.type.get_shape())
        super().__init__(operands=[source], result_types=[[source.type.element_type] * count])

    @classmethod
    def parse(cls, parser: Parser) -> ToElementsOp:
        start = parser.pos
        source = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isinstance(type_, VectorType):
            parser.raise_error("expected a vector type", start, parser.pos)
        op = cls(parser.resolve_operand(source, type_))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)


@irdl_op_definition
class StepOp(IRDLOperation):
    """The vector 0, 1, 2, ... (MLIR: vector.step)."""

    name = "vector.step"
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, result_type: Attribute):
        super().__init__(result_types=[result_type])

    def verify_(self) -> None:
        if len(shape(self.result.type)) != 1 or not isinstance(
            self.result.type.element_type, IndexType
        ):
            raise VerifyException("expected a vector of rank 1 of index")


@irdl_op_definition
class ConstantMaskOp(IRDLOperation):
    """A mask that is true below these bounds (MLIR: vector.constant_mask)."""

    name = "vector.constant_mask"
    mask_dim_sizes = prop_def(DenseArrayBase.constr(i64))
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$mask_dim_sizes attr-dict `:` type($result)"

    def __init__(self, sizes: Sequence[int], result_type: Attribute):
        super().__init__(
            properties={"mask_dim_sizes": DenseArrayBase.from_list(i64, sizes)},
            result_types=[result_type],
        )

    def verify_(self) -> None:
        sizes, dims = self.mask_dim_sizes.get_values(), shape(self.result.type)
        if len(sizes) != len(dims) or any(not 0 <= s <= d for s, d in zip(sizes, dims)):
            raise VerifyException("expected one bound per dim, within it")
        if self.result.type.element_type != i1:
            raise VerifyException("expected a vector of i1")


def _verify_indexed(op, value_type: Attribute, others: Sequence[SSAValue]) -> None:
    base, dims = op.base.type, shape(value_type)
    assert isinstance(base, MemRefType | TensorType)
    if base.element_type != value_type.element_type:  # type: ignore[attr-defined]
        raise VerifyException("base and result element type should match")
    if len(op.offsets) != base.get_num_dims():
        raise VerifyException(f"requires {base.get_num_dims()} indices")
    for other in others:
        if shape(other.type) != dims:
            raise VerifyException("expected result dim to match indices and mask dim")
    if not isinstance(op.index_vec.type.element_type, IntegerType | IndexType):
        raise VerifyException("expected indices of integer or index type")
    if op.mask.type.element_type != i1:
        raise VerifyException("expected a mask of i1")


@irdl_op_definition
class GatherOp(IRDLOperation):
    """
    Gathers lane i from `base[o0, ..., on + index[i]]` (MLIR: vector.gather).

    An index is a logical index into the innermost dim of `base`; where the mask is true it must be
    in bounds of that dim. Where the mask is false, nothing is read and the lane is that of
    `pass_thru`. `vector.scatter` indexes the same way and stores in lane order.
    """

    name = "vector.gather"
    base = operand_def(MemRefType | TensorType)
    offsets = var_operand_def(IndexType)
    index_vec = operand_def(VectorType)
    mask = operand_def(VectorType)
    pass_thru = operand_def(VectorType)
    alignment = opt_prop_def(IntegerAttr)
    result = result_def(VectorType)
    traits = traits_def(ReadsMemRefOperands())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$base `[` $offsets `]` `[` $index_vec `]` `,` $mask `,` $pass_thru attr-dict `:` "
        "type($base) `,` type($index_vec) `,` type($mask) `,` type($pass_thru) `into` type($result)"
    )

    def __init__(
        self,
        base: SSAValue,
        offsets: Sequence[SSAValue],
        index_vec: SSAValue,
        mask: SSAValue,
        pass_thru: SSAValue,
    ):
        super().__init__(
            operands=[base, offsets, index_vec, mask, pass_thru], result_types=[pass_thru.type]
        )

    def verify_(self) -> None:
        _verify_indexed(self, self.result.type, (self.index_vec, self.mask))
        if self.pass_thru.type != self.result.type:
            raise VerifyException("expected pass_thru of same type as result type")


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """
    Stores elements at offsets plus a vector of indices, where the mask is true (MLIR:
    vector.scatter).
    """

    name = "vector.scatter"
    base = operand_def(MemRefType | TensorType)
    offsets = var_operand_def(IndexType)
    index_vec = operand_def(VectorType)
    mask = operand_def(VectorType)
    value_to_store = operand_def(VectorType)
    alignment = opt_prop_def(IntegerAttr)
    result = opt_result_def(TensorType)
    traits = traits_def(DestinationStyleEffects())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$base `[` $offsets `]` `[` $index_vec `]` `,` $mask `,` $value_to_store attr-dict `:` "
        "type($base) `,` type($index_vec) `,` type($mask) `,` type($value_to_store) "
        "(`->` type($result)^)?"
    )

    def __init__(
        self,
        base: SSAValue,
        offsets: Sequence[SSAValue],
        index_vec: SSAValue,
        mask: SSAValue,
        value: SSAValue,
    ):
        result = base.type if isinstance(base.type, TensorType) else None
        super().__init__(operands=[base, offsets, index_vec, mask, value], result_types=[result])

    def verify_(self) -> None:
        _verify_indexed(self, self.value_to_store.type, (self.index_vec, self.mask))


@irdl_op_definition
class InterleaveOp(IRDLOperation):
    """a0, b0, a1, b1, ... along the innermost dim (MLIR: vector.interleave)."""

    name = "vector.interleave"
    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        assert isinstance(lhs.type, VectorType)
        dims = lhs.type.get_shape()
        super().__init__(
            operands=[lhs, rhs],
            result_types=[VectorType(lhs.type.element_type, [*dims[:-1], 2 * dims[-1]])],
        )

    @classmethod
    def parse(cls, parser: Parser) -> InterleaveOp:
        start = parser.pos
        operands = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        parser.parse_type()
        op = cls(*parser.resolve_operands(operands, [type_, type_], start))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        dims = shape(self.lhs.type)
        if self.lhs.type != self.rhs.type or not dims:
            raise VerifyException(
                "expected both operands to be of the same type, of rank 1 or more"
            )
        if shape(self.result.type) != (*dims[:-1], 2 * dims[-1]):
            raise VerifyException(
                "expected the innermost dim of the result to be twice that of the operands"
            )


@irdl_op_definition
class DeinterleaveOp(IRDLOperation):
    """The even and the odd elements along the innermost dim (MLIR: vector.deinterleave)."""

    name = "vector.deinterleave"
    source = operand_def(VectorType)
    res1 = result_def(VectorType)
    res2 = result_def(VectorType)
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue | Operation):
        source = SSAValue.get(source)
        assert isinstance(source.type, VectorType)
        dims = source.type.get_shape()
        half = VectorType(source.type.element_type, [*dims[:-1], dims[-1] // 2])
        super().__init__(operands=[source], result_types=[half, half])

    @classmethod
    def parse(cls, parser: Parser) -> DeinterleaveOp:
        start = parser.pos
        source = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isinstance(type_, VectorType) or not shape(type_) or shape(type_)[-1] % 2:
            parser.raise_error("expected a vector whose innermost dim is even", start, parser.pos)
        parser.parse_punctuation("->")
        parser.parse_type()
        op = cls(parser.resolve_operand(source, type_))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.res1.type)


OPS = [
    ShapeCastOp,
    TransposeOp,
    ExtractStridedSliceOp,
    InsertStridedSliceOp,
    FromElementsOp,
    ToElementsOp,
    StepOp,
    ConstantMaskOp,
    GatherOp,
    ScatterOp,
    InterleaveOp,
    DeinterleaveOp,
]
