"""
Tensor ops of the host between dispatches: constants, copies, views, transfers, traces.

Dynamic dims follow their type: `tensor<?x4xf32>{%d}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, StringAttr, TensorType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from .._shaped import (
    TiedResult,
    parse_keyed_values,
    parse_sizes,
    parse_workload,
    print_keyed_values,
    print_sized_type,
    print_workload,
    size_count,
)
from ..iree_encoding import PackedStorageAttr

BYTE = 8
"""Bits per byte."""


def _check_dims(type: Attribute, given: Sequence[SSAValue]) -> None:
    if size_count(type) != len(given):
        raise VerifyException(
            f"{type} has {size_count(type)} dynamic dims, but {len(given)} are given"
        )


def _check_indices(type: Attribute, indices: Sequence[SSAValue]) -> None:
    assert isa(type, TensorType)
    if len(indices) != type.get_num_dims():
        raise VerifyException(
            f"expected {type.get_num_dims()} indices into {type}, got {len(indices)}"
        )


def _element(type: Attribute) -> Attribute:
    assert isa(type, TensorType)
    return type.element_type


@irdl_op_definition
class TensorConstantOp(IRDLOperation):
    """A constant tensor (IREE: `flow.tensor.constant`)."""

    name = "flow.tensor.constant"

    value = prop_def(Attribute)
    result = result_def(TensorType)

    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, value: Attribute):
        super().__init__(properties={"value": value}, result_types=[_type_of(value)])

    def verify_(self) -> None:
        if _type_of(self.value) != self.result.type:
            raise VerifyException("expected the value to have the type of the result")

    @classmethod
    def parse(cls, parser: Parser) -> TensorConstantOp:
        attributes = parser.parse_optional_attr_dict()
        value = parser.parse_attribute()
        if not isinstance(_type_of(value), TensorType):
            parser.raise_error("expected a constant tensor")
        op = cls(value)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_attribute(self.value)


def _type_of(value: Attribute) -> Attribute | None:
    get_type = getattr(value, "get_type", None)
    return getattr(value, "type", None) if get_type is None else get_type()


@irdl_op_definition
class TensorDynamicConstantOp(IRDLOperation):
    """
    A constant tensor whose result type hides some static dims from the compiler (IREE:
    `flow.tensor.dynamic_constant`).
    """

    name = "flow.tensor.dynamic_constant"

    value = prop_def(Attribute)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        kind = _type_of(self.value)
        if not isa(kind, TensorType) or not isa(self.result.type, TensorType):
            raise VerifyException("expected a constant tensor")
        given, found = kind.get_shape(), self.result.type.get_shape()
        if len(given) != len(found) or any(
            m not in (n, DYNAMIC_INDEX) for n, m in zip(given, found)
        ):
            raise VerifyException("the result type must be compatible with the value")
        if _element(kind) != _element(self.result.type):
            raise VerifyException("expected one element type")

    @classmethod
    def parse(cls, parser: Parser) -> TensorDynamicConstantOp:
        attributes = parser.parse_optional_attr_dict()
        value = parser.parse_attribute()
        parser.parse_punctuation("->")
        return cls.create(
            properties={"value": value}, attributes=attributes, result_types=[parser.parse_type()]
        )

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_attribute(self.value)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class TensorTieShapeOp(IRDLOperation):
    """Associates a tensor with its dynamic dims (IREE: `flow.tensor.tie_shape`)."""

    name = "flow.tensor.tie_shape"
    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))

    operand = operand_def(T)
    dynamic_dims = var_operand_def(IndexType)
    result = result_def(T)

    assembly_format = "$operand attr-dict `:` type($result) (`{` $dynamic_dims^ `}`)?"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.operand.type, self.dynamic_dims)


@irdl_op_definition
class TensorSplatOp(IRDLOperation):
    """Fills a tensor with a scalar (IREE: `flow.tensor.splat`)."""

    name = "flow.tensor.splat"

    value = operand_def()
    result_dims = var_operand_def(IndexType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.result.type, self.result_dims)
        if self.value.type != _element(self.result.type):
            raise VerifyException("expected a scalar of the element type")

    @classmethod
    def parse(cls, parser: Parser) -> TensorSplatOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isa(type_, TensorType):
            parser.raise_error("expected a tensor type")
        dims = parse_sizes(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        return cls.build(
            operands=[parser.resolve_operand(value, type_.element_type), dims],
            attributes=attributes.data if attributes else {},
            result_types=[type_],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(" : ")
        print_sized_type(printer, self.result.type, iter(self.result_dims))
        printer.print_op_attributes(self.attributes, print_keyword=True)


@irdl_op_definition
class TensorEmptyOp(IRDLOperation):
    """A tensor with undefined contents (IREE: `flow.tensor.empty`)."""

    name = "flow.tensor.empty"

    result_dims = var_operand_def(IndexType)
    result = result_def(TensorType)

    assembly_format = "`:` type($result) (`{` $result_dims^ `}`)? attr-dict-with-keyword"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.result.type, self.result_dims)


@irdl_op_definition
class TensorCloneOp(IRDLOperation):
    """Copies a tensor (IREE: `flow.tensor.clone`)."""

    name = "flow.tensor.clone"
    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))

    operand = operand_def(T)
    operand_dims = var_operand_def(IndexType)
    result = result_def(T)

    assembly_format = "$operand `:` type($result) (`{` $operand_dims^ `}`)? attr-dict-with-keyword"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.operand.type, self.operand_dims)


@irdl_op_definition
class TensorTransferOp(IRDLOperation):
    """Transfers a tensor to a target; no copy if it is there (IREE: `flow.tensor.transfer`)."""

    name = "flow.tensor.transfer"
    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))

    operand = operand_def(T)
    operand_dims = var_operand_def(IndexType)
    target = prop_def(Attribute)
    result = result_def(T)

    assembly_format = (
        "$operand `:` type($result) (`{` $operand_dims^ `}`)? `to` $target attr-dict-with-keyword"
    )
    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue, dims: Sequence[SSAValue], target: Attribute):
        super().__init__(
            operands=[operand, dims], properties={"target": target}, result_types=[operand.type]
        )

    def verify_(self) -> None:
        _check_dims(self.operand.type, self.operand_dims)


@irdl_op_definition
class TensorBarrierOp(IRDLOperation):
    """Requires a tensor to be on a target, without a copy (IREE: `flow.tensor.barrier`)."""

    name = "flow.tensor.barrier"
    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))

    operand = operand_def(T)
    operand_dims = var_operand_def(IndexType)
    target = prop_def(Attribute)
    result = result_def(T)

    assembly_format = (
        "$operand `:` type($result) (`{` $operand_dims^ `}`)? `on` $target attr-dict-with-keyword"
    )
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.operand.type, self.operand_dims)


class _Recast(IRDLOperation):
    """Base of reshape and bitcast: the same storage with another type."""

    source = operand_def(TensorType)
    source_dims = var_operand_def(IndexType)
    result_dims = var_operand_def(IndexType)
    result = result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$source `:` type($source) (`{` $source_dims^ `}`)? `->` "
        "type($result) (`{` $result_dims^ `}`)? attr-dict-with-keyword"
    )
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.source.type, self.source_dims)
        _check_dims(self.result.type, self.result_dims)


@irdl_op_definition
class TensorReshapeOp(_Recast):
    """Reshapes a tensor without a copy (IREE: `flow.tensor.reshape`)."""

    name = "flow.tensor.reshape"

    def verify_(self) -> None:
        super().verify_()
        if _element(self.source.type) != _element(self.result.type):
            raise VerifyException("expected one element type")
        kinds = (self.source.type, self.result.type)
        counts = [prod(k.get_shape()) for k in kinds if isa(k, TensorType) and k.has_static_shape()]
        if len(set(counts)) > 1:
            raise VerifyException(f"cannot reshape {counts[0]} elements to {counts[1]}")


def storage_bits(kind: Attribute) -> int | None:
    """
    Returns the storage bits per element, as in IREE, or None if elements do not pack into bytes.

    An i1 takes 8 bits, or 1 with the encoding `packed_storage`.
    """
    assert isa(kind, TensorType)
    element = kind.element_type
    if element == i1:
        return 1 if isinstance(kind.encoding, PackedStorageAttr) else BYTE
    bits = getattr(element, "bitwidth", None)
    return bits if bits is not None and (bits % BYTE == 0 or BYTE % bits == 0) else None


@irdl_op_definition
class TensorBitCastOp(_Recast):
    """Reinterprets bits as another element type or shape (IREE: `flow.tensor.bitcast`)."""

    name = "flow.tensor.bitcast"

    def verify_(self) -> None:
        super().verify_()
        sizes: list[int] = []
        for kind in (self.source.type, self.result.type):
            assert isa(kind, TensorType)
            if (bits := storage_bits(kind)) is None:
                raise VerifyException(f"{kind} has no dense form")
            if kind.has_static_shape():
                sizes.append(prod(kind.get_shape()) * bits)
        if len(set(sizes)) > 1:
            raise VerifyException(f"cannot cast {sizes[0]} bits to {sizes[1]}")


@irdl_op_definition
class TensorLoadOp(IRDLOperation):
    """Loads one element on the host (IREE: `flow.tensor.load`)."""

    name = "flow.tensor.load"

    source = operand_def(TensorType)
    source_dims = var_operand_def(IndexType)
    indices = var_operand_def(IndexType)
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.source.type, self.source_dims)
        _check_indices(self.source.type, self.indices)
        if self.result.type != _element(self.source.type):
            raise VerifyException("expected a result of the element type")

    @classmethod
    def parse(cls, parser: Parser) -> TensorLoadOp:
        source = parser.parse_unresolved_operand()
        indices = parse_workload(parser)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isa(type_, TensorType):
            parser.raise_error("expected a tensor type")
        dims = parse_sizes(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        return cls.build(
            operands=[parser.resolve_operand(source, type_), dims, indices],
            attributes=attributes.data if attributes else {},
            result_types=[type_.element_type],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        print_workload(printer, self.indices)
        printer.print_string(" : ")
        print_sized_type(printer, self.source.type, iter(self.source_dims))
        printer.print_op_attributes(self.attributes, print_keyword=True)


@irdl_op_definition
class TensorStoreOp(IRDLOperation):
    """Overwrites one element of a tensor on the host (IREE: `flow.tensor.store`)."""

    name = "flow.tensor.store"
    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))

    value = operand_def()
    target = operand_def(T)
    target_dims = var_operand_def(IndexType)
    indices = var_operand_def(IndexType)
    result = result_def(T)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.target.type, self.target_dims)
        _check_indices(self.target.type, self.indices)
        if self.value.type != _element(self.target.type):
            raise VerifyException("expected a value of the element type")

    @classmethod
    def parse(cls, parser: Parser) -> TensorStoreOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        target = parser.parse_unresolved_operand()
        indices = parse_workload(parser)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isa(type_, TensorType):
            parser.raise_error("expected a tensor type")
        dims = parse_sizes(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        operands = [
            parser.resolve_operand(value, type_.element_type),
            parser.resolve_operand(target, type_),
        ]
        return cls.build(
            operands=[*operands, dims, indices],
            attributes=attributes.data if attributes else {},
            result_types=[type_],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.value, self.target), printer.print_ssa_value)
        print_workload(printer, self.indices)
        printer.print_string(" : ")
        print_sized_type(printer, self.target.type, iter(self.target_dims))
        printer.print_op_attributes(self.attributes, print_keyword=True)


@irdl_op_definition
class TensorSliceOp(IRDLOperation):
    """Copies a contiguous subregion of a tensor (IREE: `flow.tensor.slice`)."""

    name = "flow.tensor.slice"

    source = operand_def(TensorType)
    source_dims = var_operand_def(IndexType)
    start_indices = var_operand_def(IndexType)
    lengths = var_operand_def(IndexType)
    result_dims = var_operand_def(IndexType)
    result = result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$source `[` $start_indices `for` $lengths `]` `:` "
        "type($source) (`{` $source_dims^ `}`)? `->` "
        "type($result) (`{` $result_dims^ `}`)? attr-dict-with-keyword"
    )
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.source.type, self.source_dims)
        _check_dims(self.result.type, self.result_dims)
        if _element(self.source.type) != _element(self.result.type):
            raise VerifyException("expected one element type")


@irdl_op_definition
class TensorUpdateOp(IRDLOperation):
    """Overwrites a subregion of a tensor in place (IREE: `flow.tensor.update`)."""

    name = "flow.tensor.update"
    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))

    target = operand_def(T)
    target_dims = var_operand_def(IndexType)
    start_indices = var_operand_def(IndexType)
    update = operand_def(TensorType)
    update_dims = var_operand_def(IndexType)
    result = result_def(T)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (TiedResult,)
    assembly_format = (
        "$update `,` $target `[` $start_indices `]` `:` type($update) (`{` $update_dims^ `}`)? "
        "`->` custom<TiedResult>(type($target), $target_dims) attr-dict-with-keyword"
    )
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.target.type, self.target_dims)
        _check_dims(self.update.type, self.update_dims)


@irdl_op_definition
class TensorTraceOp(IRDLOperation):
    """Traces tensors at run time under a key (IREE: `flow.tensor.trace`)."""

    name = "flow.tensor.trace"

    key = prop_def(StringAttr)
    values = var_operand_def(TensorType)
    value_dims = var_operand_def(IndexType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, key: str, values: Sequence[SSAValue], value_dims: Sequence[SSAValue]):
        super().__init__(operands=[values, value_dims], properties={"key": StringAttr(key)})

    def verify_(self) -> None:
        expected = sum(size_count(value.type) for value in self.values)
        if expected != len(self.value_dims):
            raise VerifyException(
                f"the values have {expected} dynamic dims, but {len(self.value_dims)} are given"
            )

    @classmethod
    def parse(cls, parser: Parser) -> TensorTraceOp:
        op = cls(*parse_keyed_values(parser))
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op.attributes |= attributes.data if attributes else {}
        return op

    def print(self, printer: Printer) -> None:
        print_keyed_values(printer, self.key, self.values, self.value_dims)
        printer.print_op_attributes(self.attributes, print_keyword=True)


OPS: list[type[Operation]] = [
    TensorConstantOp,
    TensorDynamicConstantOp,
    TensorTieShapeOp,
    TensorSplatOp,
    TensorEmptyOp,
    TensorCloneOp,
    TensorTransferOp,
    TensorBarrierOp,
    TensorReshapeOp,
    TensorBitCastOp,
    TensorLoadOp,
    TensorStoreOp,
    TensorSliceOp,
    TensorUpdateOp,
    TensorTraceOp,
]
