"""
The ABI of a program: tensors passed from and to callers.

An affinity on one of these ops pins the value to a device. Without one the op does not constrain
the placement.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    IRDLOperation,
    RangeOf,
    RangeVarConstraint,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
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

from .._shaped import EncodedType, size_count
from .devices import Affinity, BufferType, BufferViewType, FenceType

_ON = "(`on` `(` $affinity^ `)`)? "
_WAIT = "(`wait` `(` $wait_fence^ `)` `=` `` `>`)? "


def _check_dims(type: Attribute, given: int) -> None:
    if size_count(type) != given:
        raise VerifyException(f"{type} has {size_count(type)} dynamic dims, but {given} are given")


@irdl_op_definition
class TensorImportOp(IRDLOperation):
    """Imports a caller's buffer as a tensor, without a copy (IREE: `hal.tensor.import`)."""

    name = "hal.tensor.import"

    source = operand_def(BufferType | BufferViewType)
    target_dims = var_operand_def(IndexType)
    wait_fence = opt_operand_def(FenceType)
    byte_offset = opt_operand_def(IndexType)
    target_encoding = prop_def(Attribute)
    consume = opt_prop_def(UnitAttr)
    label = opt_prop_def(StringAttr, prop_name="name")
    affinity = opt_prop_def(Affinity)
    target = result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (EncodedType,)
    assembly_format = (
        _ON + _WAIT + "(`consume` $consume^)? $source (`offset` `(` $byte_offset^ `)`)? ($name^)? "
        "`:` type($source) `->` custom<EncodedType>($target_encoding, type($target)) "
        "(`{` $target_dims^ `}`)? attr-dict"
    )
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.target.type, len(self.target_dims))


@irdl_op_definition
class TensorExportOp(IRDLOperation):
    """Exports a tensor as a buffer to the caller, without a copy (IREE: `hal.tensor.export`)."""

    name = "hal.tensor.export"

    source = operand_def(TensorType)
    source_dims = var_operand_def(IndexType)
    source_encoding = prop_def(Attribute)
    label = opt_prop_def(StringAttr, prop_name="name")
    affinity = opt_prop_def(Affinity)
    target = result_def(BufferType | BufferViewType)

    custom_directives = (EncodedType,)
    assembly_format = (
        _ON + "$source ($name^)? `:` custom<EncodedType>($source_encoding, type($source)) "
        "(`{` $source_dims^ `}`)? `->` type($target) attr-dict"
    )
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.source.type, len(self.source_dims))


@irdl_op_definition
class TensorAliasOp(IRDLOperation):
    """Stores a tensor in a caller's buffer (IREE: `hal.tensor.alias`)."""

    name = "hal.tensor.alias"
    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))

    source = operand_def(T)
    source_dims = var_operand_def(IndexType)
    storage = operand_def(BufferType | BufferViewType)
    wait_fence = opt_operand_def(FenceType)
    affinity = opt_prop_def(Affinity)
    result = result_def(T)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        _ON + _WAIT + "$source `:` type($source) (`{` $source_dims^ `}`)? "
        "`to` $storage `:` type($storage) attr-dict"
    )
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.source.type, len(self.source_dims))


@irdl_op_definition
class TensorTransientsOp(IRDLOperation):
    """Stores the temporaries of a tensor in a caller's buffer (IREE: `hal.tensor.transients`)."""

    name = "hal.tensor.transients"
    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))

    source = operand_def(T)
    source_dims = var_operand_def(IndexType)
    storage = operand_def(BufferType | BufferViewType)
    affinity = opt_prop_def(Affinity)
    result = result_def(T)

    assembly_format = (
        _ON + "$source `:` type($source) (`{` $source_dims^ `}`)? "
        "`from` $storage `:` type($storage) attr-dict"
    )
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.source.type, len(self.source_dims))


@irdl_op_definition
class TensorBarrierOp(IRDLOperation):
    """Signals a fence when all operands are available (IREE: `hal.tensor.barrier`)."""

    name = "hal.tensor.barrier"

    T: ClassVar = RangeVarConstraint("T", RangeOf(BaseAttr(TensorType)))

    sources = var_operand_def(T)
    signal_fence = operand_def(FenceType)
    res = var_result_def(T)

    assembly_format = (
        "`join` `` `(` $sources `:` type($sources) `)` `=` `` `>` "
        "$signal_fence `:` type($signal_fence) attr-dict-with-keyword"
    )


class _BufferViewQuery(IRDLOperation):
    """Base of buffer view queries: op<%view : !hal.buffer_view>[index] : type."""

    buffer_view = operand_def(BufferViewType)
    result = result_def(IndexType | IntegerType)

    @classmethod
    def parse(cls, parser: Parser):
        with parser.in_angle_brackets():
            view = parser.parse_unresolved_operand()
            parser.parse_punctuation(":")
            view = parser.resolve_operand(view, parser.parse_type())
        properties = cls.parse_index(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.build(
            operands=[view],
            properties=properties,
            attributes=attributes,
            result_types=[parser.parse_type()],
        )

    @classmethod
    def parse_index(cls, parser: Parser) -> dict[str, Attribute]:
        """Parses the optional index after the view."""
        return {}

    def print(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_ssa_value(self.buffer_view)
            printer.print_string(" : ")
            printer.print_attribute(self.buffer_view.type)
        self.print_index(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def print_index(self, printer: Printer) -> None:
        """Prints the optional index after the view."""


@irdl_op_definition
class BufferViewDimOp(_BufferViewQuery):
    """Returns a dim of a buffer view (IREE: `hal.buffer_view.dim`)."""

    name = "hal.buffer_view.dim"

    index = prop_def(IntegerAttr[IndexType])
    traits = traits_def(Pure())

    @classmethod
    def parse_index(cls, parser: Parser) -> dict[str, Attribute]:
        with parser.in_square_brackets():
            return {"index": IntegerAttr.from_index_int_value(parser.parse_integer())}

    def print_index(self, printer: Printer) -> None:
        printer.print_string(f"[{self.index.value.data}]")


@irdl_op_definition
class BufferViewRankOp(_BufferViewQuery):
    """Returns the rank of a buffer view (IREE: `hal.buffer_view.rank`)."""

    name = "hal.buffer_view.rank"

    traits = traits_def(Pure())


OPS: list[type[Operation]] = [
    BufferViewDimOp,
    BufferViewRankOp,
    TensorImportOp,
    TensorExportOp,
    TensorAliasOp,
    TensorTransientsOp,
    TensorBarrierOp,
]
