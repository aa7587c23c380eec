"""
The `iree_tensor_ext` dialect: access of a dispatch to the host's tensors.

A dispatch function takes each host tensor as a `!iree_tensor_ext.dispatch.tensor`, a reference with
an access mode. It loads and stores slices with `dispatch.tensor.load` and `dispatch.tensor.store`.
Names and syntax are IREE's (`compiler/src/iree/compiler/Dialect/TensorExt/IR`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class DispatchTensorType(ParametrizedAttribute, TypeAttribute):
    """Reference to a host tensor inside a dispatch: `readonly`, `writeonly` or `readwrite`."""

    name = "iree_tensor_ext.dispatch.tensor"

    access: StringAttr
    bound_type: TensorType

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            access = parser.parse_identifier()
            parser.parse_punctuation(":")
            bound = parser.parse_type()
        return (StringAttr(access), bound)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.access.data)
            printer.print_string(":")
            printer.print_attribute(self.bound_type)


def _print_mixed(printer: Printer, static: Sequence[int], dynamic: Sequence[SSAValue]) -> None:
    values = iter(dynamic)
    with printer.in_square_brackets():
        for position, size in enumerate(static):
            if position:
                printer.print_string(", ")
            if size == DYNAMIC_INDEX:
                printer.print_ssa_value(next(values))
            else:
                printer.print_string(str(size))


def _parse_index(parser: Parser) -> SSAValue:
    return parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())


def _parse_mixed(parser: Parser) -> tuple[list[int], list[SSAValue]]:
    static: list[int] = []
    dynamic: list[SSAValue] = []

    def one() -> None:
        number = parser.parse_optional_integer(allow_boolean=False)
        if number is not None:
            static.append(number)
            return
        static.append(DYNAMIC_INDEX)
        dynamic.append(_parse_index(parser))

    parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, one)
    return static, dynamic


def _print_dims(printer: Printer, dims: Sequence[SSAValue]) -> None:
    if dims:
        with printer.in_braces():
            printer.print_list(dims, printer.print_ssa_value)


def _parse_dims(parser: Parser) -> list[SSAValue]:
    return (
        parser.parse_optional_comma_separated_list(
            Parser.Delimiter.BRACES, lambda: _parse_index(parser)
        )
        or []
    )


class _SliceOp(IRDLOperation):
    """Base of load and store: a slice, static or dynamic, of a dispatch tensor."""

    def full(self) -> bool:
        """Whether the slice is the whole tensor: equal static sizes and equal SSA values."""
        bound = self.dispatch_tensor.type
        assert isinstance(bound, DispatchTensorType)
        static = self.static_offsets.get_values(), self.static_strides.get_values()
        if any(o != 0 for o in static[0]) or any(s != 1 for s in static[1]):
            return False
        sizes = self.static_sizes.get_values()
        return tuple(sizes) == bound.bound_type.get_shape() and tuple(self.sizes) == tuple(
            self.dims
        )


@irdl_op_definition
class DispatchTensorLoadOp(_SliceOp):
    """Reads a slice of a dispatch tensor (IREE: `iree_tensor_ext.dispatch.tensor.load`)."""

    name = "iree_tensor_ext.dispatch.tensor.load"

    source = operand_def(DispatchTensorType)
    source_dims = var_operand_def(IndexType)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_offsets = prop_def(DenseArrayBase)
    static_sizes = prop_def(DenseArrayBase)
    static_strides = prop_def(DenseArrayBase)
    result = result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())

    @property
    def dispatch_tensor(self) -> SSAValue:
        """The sliced tensor."""
        return self.source

    @property
    def dims(self) -> Sequence[SSAValue]:
        """The dynamic dims of the sliced tensor."""
        return self.source_dims

    @staticmethod
    def whole(source: SSAValue, dims: Sequence[SSAValue]) -> DispatchTensorLoadOp:
        """Returns a load of all of `source`, whose dynamic dims are `dims`."""
        assert isinstance(source.type, DispatchTensorType)
        bound = source.type.bound_type
        shape = bound.get_shape()
        return DispatchTensorLoadOp(
            operands=[source, dims, [], dims, []],
            properties={
                "static_offsets": DenseArrayBase.from_list(i64, [0] * len(shape)),
                "static_sizes": DenseArrayBase.from_list(i64, shape),
                "static_strides": DenseArrayBase.from_list(i64, [1] * len(shape)),
            },
            result_types=[bound],
        )

    def verify_(self) -> None:
        assert isinstance(self.source.type, DispatchTensorType)
        if self.source.type.access.data == "writeonly":
            raise VerifyException("cannot load from a writeonly dispatch tensor")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(", offsets = ")
        _print_mixed(printer, self.static_offsets.get_values(), self.offsets)
        printer.print_string(", sizes = ")
        _print_mixed(printer, self.static_sizes.get_values(), self.sizes)
        printer.print_string(", strides = ")
        _print_mixed(printer, self.static_strides.get_values(), self.strides)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        _print_dims(printer, self.source_dims)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> DispatchTensorLoadOp:
        source = parser.parse_unresolved_operand()
        offsets, sizes, strides = _parse_slice(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        dims = _parse_dims(parser)
        parser.parse_punctuation("->")
        result_type = parser.parse_type()
        return cls(
            operands=[
                parser.resolve_operand(source, source_type),
                dims,
                offsets[1],
                sizes[1],
                strides[1],
            ],
            properties=_slice_properties(offsets[0], sizes[0], strides[0]),
            attributes=attributes,
            result_types=[result_type],
        )


@irdl_op_definition
class DispatchTensorStoreOp(_SliceOp):
    """Writes a slice of a dispatch tensor (IREE: `iree_tensor_ext.dispatch.tensor.store`)."""

    name = "iree_tensor_ext.dispatch.tensor.store"

    value = operand_def(TensorType)
    target = operand_def(DispatchTensorType)
    target_dims = var_operand_def(IndexType)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_offsets = prop_def(DenseArrayBase)
    static_sizes = prop_def(DenseArrayBase)
    static_strides = prop_def(DenseArrayBase)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())

    @property
    def dispatch_tensor(self) -> SSAValue:
        """The sliced tensor."""
        return self.target

    @property
    def dims(self) -> Sequence[SSAValue]:
        """The dynamic dims of the sliced tensor."""
        return self.target_dims

    @staticmethod
    def whole(value: SSAValue, target: SSAValue, dims: Sequence[SSAValue]) -> DispatchTensorStoreOp:
        """Returns a store of `value` to all of `target`, whose dynamic dims are `dims`."""
        assert isinstance(target.type, DispatchTensorType)
        shape = target.type.bound_type.get_shape()
        return DispatchTensorStoreOp(
            operands=[value, target, dims, [], dims, []],
            properties=_slice_properties([0] * len(shape), shape, [1] * len(shape)),
        )

    def verify_(self) -> None:
        assert isinstance(self.target.type, DispatchTensorType)
        if self.target.type.access.data == "readonly":
            raise VerifyException("cannot store to a readonly dispatch tensor")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        printer.print_ssa_value(self.target)
        printer.print_string(", offsets = ")
        _print_mixed(printer, self.static_offsets.get_values(), self.offsets)
        printer.print_string(", sizes = ")
        _print_mixed(printer, self.static_sizes.get_values(), self.sizes)
        printer.print_string(", strides = ")
        _print_mixed(printer, self.static_strides.get_values(), self.strides)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.target.type)
        _print_dims(printer, self.target_dims)

    @classmethod
    def parse(cls, parser: Parser) -> DispatchTensorStoreOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        target = parser.parse_unresolved_operand()
        offsets, sizes, strides = _parse_slice(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value_type = parser.parse_type()
        parser.parse_punctuation("->")
        target_type = parser.parse_type()
        dims = _parse_dims(parser)
        return cls(
            operands=[
                parser.resolve_operand(value, value_type),
                parser.resolve_operand(target, target_type),
                dims,
                offsets[1],
                sizes[1],
                strides[1],
            ],
            properties=_slice_properties(offsets[0], sizes[0], strides[0]),
            attributes=attributes,
        )


_Mixed = tuple[list[int], list[SSAValue]]


def _parse_slice(parser: Parser) -> tuple[_Mixed, _Mixed, _Mixed]:
    parts: list[_Mixed] = []
    for keyword in ("offsets", "sizes", "strides"):
        parser.parse_punctuation(",")
        parser.parse_keyword(keyword)
        parser.parse_punctuation("=")
        parts.append(_parse_mixed(parser))
    return parts[0], parts[1], parts[2]


def _slice_properties(
    offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> dict[str, Attribute]:
    return {
        "static_offsets": DenseArrayBase.from_list(i64, list(offsets)),
        "static_sizes": DenseArrayBase.from_list(i64, list(sizes)),
        "static_strides": DenseArrayBase.from_list(i64, list(strides)),
    }


@irdl_op_definition
class BitCastOp(IRDLOperation):
    """
    Reinterprets a tensor's bytes as another element type; dims may change with the element width
    (IREE: `iree_tensor_ext.bitcast`).
    """

    name = "iree_tensor_ext.bitcast"

    source = operand_def(TensorType)
    source_dims = var_operand_def(IndexType)
    result_dims = var_operand_def(IndexType)
    result = result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        source: SSAValue,
        source_dims: Sequence[SSAValue],
        result_dims: Sequence[SSAValue],
        type: TensorType,
    ):
        super().__init__(operands=[source, source_dims, result_dims], result_types=[type])

    def verify_(self) -> None:
        pairs = ((self.source.type, self.source_dims), (self.result.type, self.result_dims))
        for type_, dims in pairs:
            assert isinstance(type_, TensorType)
            if type_.get_shape().count(DYNAMIC_INDEX) != len(dims):
                raise VerifyException("expected one value for each dynamic dim")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        _print_dims(printer, self.source_dims)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
        _print_dims(printer, self.result_dims)

    @classmethod
    def parse(cls, parser: Parser) -> BitCastOp:
        source = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        source_dims = _parse_dims(parser)
        parser.parse_punctuation("->")
        result_type = parser.parse_type()
        result_dims = _parse_dims(parser)
        op = cls.build(
            operands=[parser.resolve_operand(source, source_type), source_dims, result_dims],
            attributes=attributes,
            result_types=[result_type],
        )
        return op


OPS: list[type[Operation]] = [DispatchTensorLoadOp, DispatchTensorStoreOp, BitCastOp]

IreeTensorExt = Dialect("iree_tensor_ext", OPS, [DispatchTensorType])
