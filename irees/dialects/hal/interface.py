"""
The bindings and constants of a dispatch.

A dispatch function of IREE takes no arguments. It gets its buffers by binding number
(`hal.interface.binding.subspan`) and its dynamic dims by ordinal (`hal.interface.constant.load`).
irees' own pipeline passes both as arguments. Passes on dispatches support both forms.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StringAttr,
    i32,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from irees.dialects.iree_tensor_ext import DispatchTensorType

DESCRIPTOR_FLAGS = {"ReadOnly": 1, "Indirect": 2}
"""Bit values of `flags(...)`."""


def _print_flags(printer: Printer, text: str) -> None:
    if text.isidentifier():
        printer.print_string(text)
    else:
        printer.print_string_literal(text)


def _parse_flags(parser: AttrParser) -> str:
    text = parser.parse_optional_str_literal()
    return parser.parse_identifier() if text is None else text


@irdl_attr_definition
class PipelineBindingAttr(ParametrizedAttribute):
    """The buffer type of a binding, with its flags."""

    name = "hal.pipeline.binding"

    type: StringAttr
    flags: StringAttr | NoneAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            kind = StringAttr(parser.parse_identifier())
            flags: Attribute = NoneAttr()
            if parser.parse_optional_punctuation(","):
                flags = StringAttr(_parse_flags(parser))
        return (kind, flags)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.type.data)
            if isinstance(self.flags, StringAttr):
                printer.print_string(", ")
                _print_flags(printer, self.flags.data)


@irdl_attr_definition
class PipelineLayoutAttr(ParametrizedAttribute):
    """The bindings of a dispatch, and its number of 32-bit constants."""

    name = "hal.pipeline.layout"

    constants: IntAttr
    bindings: ArrayAttr[PipelineBindingAttr]
    flags: StringAttr | NoneAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        constants, flags = 0, NoneAttr()
        bindings: Attribute = ArrayAttr([])
        with parser.in_angle_brackets():
            while True:
                key = parser.parse_identifier()
                parser.parse_punctuation("=")
                if key == "constants":
                    constants = parser.parse_integer(allow_boolean=False)
                elif key == "bindings":
                    bindings = parser.parse_attribute()
                elif key == "flags":
                    flags = StringAttr(_parse_flags(parser))
                else:
                    parser.raise_error(f"no {key!r} in a pipeline layout")
                if not parser.parse_optional_punctuation(","):
                    break
        return (IntAttr(constants), bindings, flags)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            if self.constants.data:
                printer.print_string(f"constants = {self.constants.data}, ")
            printer.print_string("bindings = ")
            printer.print_attribute(self.bindings)
            if isinstance(self.flags, StringAttr):
                printer.print_string(", flags = ")
                _print_flags(printer, self.flags.data)


def _parse_layout(parser: Parser) -> PipelineLayoutAttr:
    parser.parse_keyword("layout")
    with parser.in_parens():
        if (found := parser.parse_optional_attribute()) is not None:
            if not isinstance(found, PipelineLayoutAttr):
                parser.raise_error("expected a #hal.pipeline.layout")
            return found
        return PipelineLayoutAttr(*PipelineLayoutAttr.parse_parameters(parser))


def _print_layout(printer: Printer, layout: PipelineLayoutAttr) -> None:
    printer.print_string(" layout(")
    layout.print_parameters(printer)
    printer.print_string(")")


def _parse_number(parser: Parser, keyword: str) -> IntegerAttr | None:
    if parser.parse_optional_keyword(keyword) is None:
        return None
    with parser.in_parens():
        return IntegerAttr.from_index_int_value(parser.parse_integer(allow_boolean=False))


@irdl_op_definition
class InterfaceConstantLoadOp(IRDLOperation):
    """Loads a constant that the host passes to a dispatch (IREE: `hal.interface.constant.load`)."""

    name = "hal.interface.constant.load"

    layout = prop_def(PipelineLayoutAttr)
    ordinal = prop_def(IntegerAttr)
    alignment = opt_prop_def(IntegerAttr)
    values = opt_prop_def(ArrayAttr)
    result = result_def()

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> InterfaceConstantLoadOp:
        properties: dict[str, Attribute | None] = {"layout": _parse_layout(parser)}
        properties["ordinal"] = _parse_number(parser, "ordinal")
        properties["alignment"] = _parse_number(parser, "alignment")
        if parser.parse_optional_keyword("values") is not None:
            with parser.in_parens():
                properties["values"] = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.build(
            properties=properties, attributes=attributes, result_types=[parser.parse_type()]
        )

    def print(self, printer: Printer) -> None:
        _print_layout(printer, self.layout)
        printer.print_string(f" ordinal({self.ordinal.value.data})")
        if self.alignment is not None:
            printer.print_string(f" alignment({self.alignment.value.data})")
        if self.values is not None:
            printer.print_string(" values(")
            printer.print_attribute(self.values)
            printer.print_string(")")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class InterfaceBindingSubspanOp(IRDLOperation):
    """
    Returns a binding from a byte offset on, as a dispatch tensor or as a memref.

    The binding is contiguous and row-major, so any shape with the same number of elements is valid
    (IREE: `hal.interface.binding.subspan`).
    """

    name = "hal.interface.binding.subspan"

    byte_offset = opt_operand_def(IndexType)
    dynamic_dims = var_operand_def(IndexType)
    layout = prop_def(PipelineLayoutAttr)
    binding = prop_def(IntegerAttr)
    alignment = opt_prop_def(IntegerAttr)
    descriptor_flags = opt_prop_def(IntegerAttr)
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def with_type(self, type: Attribute, dims: Sequence[SSAValue]) -> InterfaceBindingSubspanOp:
        """Returns the same subspan with another type, whose dynamic dims are `dims`."""
        offset = [] if self.byte_offset is None else [self.byte_offset]
        kept = {k: v for k, v in self.properties.items() if k != "operandSegmentSizes"}
        new = InterfaceBindingSubspanOp.build(
            operands=[offset, list(dims)], properties=kept, result_types=[type]
        )
        new.location = self.location
        return new

    def verify_(self) -> None:
        type_ = self.result.type
        bound = type_.bound_type if isinstance(type_, DispatchTensorType) else type_
        if not isinstance(bound, MemRefType) and not isinstance(type_, DispatchTensorType):
            raise VerifyException("expected a dispatch tensor or a memref")
        count = bound.get_shape().count(DYNAMIC_INDEX)
        if count != len(self.dynamic_dims):
            raise VerifyException(
                f"result type has {count} dynamic dims, but {len(self.dynamic_dims)} are given"
            )

    @classmethod
    def parse(cls, parser: Parser) -> InterfaceBindingSubspanOp:
        properties: dict[str, Attribute | None] = {"layout": _parse_layout(parser)}
        properties["binding"] = _parse_number(parser, "binding")
        properties["alignment"] = _parse_number(parser, "alignment")
        offset: list[SSAValue] = []
        if parser.parse_optional_keyword("offset") is not None:
            with parser.in_parens():
                found = parser.parse_unresolved_operand()
            offset = [parser.resolve_operand(found, IndexType())]
        if parser.parse_optional_keyword("flags") is not None:
            with parser.in_parens():
                names = _parse_flags(parser).split("|")
            bits = sum(DESCRIPTOR_FLAGS.get(name, 0) for name in names)
            properties["descriptor_flags"] = IntegerAttr(bits, i32)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        dims = parser.parse_optional_comma_separated_list(
            Parser.Delimiter.BRACES, parser.parse_unresolved_operand
        )
        return cls.build(
            operands=[offset, [parser.resolve_operand(d, IndexType()) for d in dims or ()]],
            properties=properties,
            attributes=attributes,
            result_types=[type_],
        )

    def print(self, printer: Printer) -> None:
        _print_layout(printer, self.layout)
        printer.print_string(f" binding({self.binding.value.data})")
        if self.alignment is not None:
            printer.print_string(f" alignment({self.alignment.value.data})")
        if self.byte_offset is not None:
            printer.print_string(" offset(")
            printer.print_ssa_value(self.byte_offset)
            printer.print_string(")")
        if self.descriptor_flags is not None:
            bits = self.descriptor_flags.value.data
            names = [name for name, bit in DESCRIPTOR_FLAGS.items() if bits & bit]
            printer.print_string(" flags(")
            _print_flags(printer, "|".join(names) or "None")
            printer.print_string(")")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)
        if self.dynamic_dims:
            with printer.in_braces():
                printer.print_list(self.dynamic_dims, printer.print_ssa_value)


OPS: list[type[Operation]] = [InterfaceConstantLoadOp, InterfaceBindingSubspanOp]

ATTRS: list[type[Attribute]] = [PipelineBindingAttr, PipelineLayoutAttr]
