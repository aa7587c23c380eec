"""
The `iree_codegen` dialect: codegen decisions as attributes of a kernel's ops.

`#iree_codegen.lowering_config<{workgroup = [64, 0]}>` has the tile sizes of one op,
`#iree_codegen.translation_info<strategy>` the strategy of its function. Names are IREE's
(`compiler/src/iree/compiler/Codegen/Dialect/Codegen/IR`); keys are irees' own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntAttr,
    IntegerAttr,
    MemRefType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException


class EntriesSyntax:
    """Syntax of an attribute that is a dictionary: <{key = value}>."""

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (parser.parse_attribute(),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.entries)  # pyright: ignore


@irdl_attr_definition
class LoweringConfigAttr(EntriesSyntax, ParametrizedAttribute):
    """Integers and lists of integers by name: tile sizes per loop, register blocks, ..."""

    name = "iree_codegen.lowering_config"

    entries: DictionaryAttr

    @staticmethod
    def of(**entries: Sequence[int] | int) -> LoweringConfigAttr:
        """Returns a config with these entries."""

        def attr(value: Sequence[int] | int) -> Attribute:
            if isinstance(value, int):
                return IntegerAttr(value, i64)
            return ArrayAttr(IntegerAttr(v, i64) for v in value)

        return LoweringConfigAttr(DictionaryAttr({k: attr(v) for k, v in entries.items()}))

    @staticmethod
    def on(op: Operation) -> LoweringConfigAttr:
        """Returns the config of an op; empty if it has none."""
        found = op.attributes.get("lowering_config")
        return found if isinstance(found, LoweringConfigAttr) else LoweringConfigAttr.of()

    def ints(self, key: str) -> tuple[int, ...] | None:
        """Returns the list stored under `key`, or None."""
        value = self.entries.data.get(key)
        if not isinstance(value, ArrayAttr):
            return None
        return tuple(v.value.data for v in value.data if isinstance(v, IntegerAttr))

    def as_data(self) -> dict[str, Any]:
        """Returns the entries as ints and lists; inverse of `LoweringConfigAttr.of(**data)`."""
        found: dict[str, Any] = {}
        for key in self.entries.data:
            numbers = self.ints(key)
            found[key] = self.int(key) if numbers is None else list(numbers)
        return found

    def int(self, key: str) -> int | None:
        """Returns the integer stored under `key`, or None."""
        value = self.entries.data.get(key)
        return value.value.data if isinstance(value, IntegerAttr) else None


class KeyedSyntax:
    """
    Syntax of an attribute that is a list of entries: <key = value, key = name {...}>.

    Commas are optional. A bare name is the value of `BARE`, a bare dictionary that of `CONFIG`.
    """

    BARE: ClassVar[str] = "name"
    CONFIG: ClassVar[str] = "configuration"

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        entries: dict[str, Attribute] = {}
        parser.parse_punctuation("<")
        while parser.parse_optional_punctuation(">") is None:
            key = parser.parse_optional_identifier()
            if key is None:
                entries[cls.CONFIG] = parser.parse_attribute()
            elif parser.parse_optional_punctuation("=") is None:
                entries[cls.BARE] = StringAttr(key)
            else:
                value = parser.parse_optional_attribute()
                entries[key] = value or StringAttr(parser.parse_identifier())
            parser.parse_optional_punctuation(",")
        return (DictionaryAttr(entries),)

    def print_parameters(self, printer: Printer) -> None:
        def entry(pair: tuple[str, Attribute]) -> None:
            key, value = pair
            if key not in (self.BARE, self.CONFIG):
                printer.print_string(f"{key} = ")
            if isinstance(value, StringAttr) and value.data.isidentifier():
                printer.print_string(value.data)
            else:
                printer.print_attribute(value)

        with printer.in_angle_brackets():
            printer.print_list(self.entries.data.items(), entry)  # pyright: ignore


@irdl_attr_definition
class TranslationInfoAttr(KeyedSyntax, ParametrizedAttribute):
    """The strategy that a kernel's function follows (IREE: iree_codegen.translation_info)."""

    name = "iree_codegen.translation_info"

    entries: DictionaryAttr


@irdl_attr_definition
class CompilationInfoAttr(KeyedSyntax, ParametrizedAttribute):
    """The config of an op and the strategy of its kernel (IREE: iree_codegen.compilation_info)."""

    name = "iree_codegen.compilation_info"

    entries: DictionaryAttr


@irdl_attr_definition
class WorkgroupMappingAttr(ParametrizedAttribute):
    """Dim of the workgroup grid that a loop is mapped to: x, y, z, z:1, ..."""

    name = "iree_codegen.workgroup_mapping"

    dim: StringAttr
    level: IntAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            dim, level = parser.parse_identifier(), 0
            if parser.parse_optional_punctuation(":"):
                level = parser.parse_integer(allow_boolean=False)
        return (StringAttr(dim), IntAttr(level))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.dim.data)
            if self.level.data:
                printer.print_string(f":{self.level.data}")


def _verify_same_shape(tensor: TensorType, buffer: MemRefType) -> None:
    if tensor.element_type != buffer.element_type:
        raise VerifyException("expected tensor and buffer to have the same element type")
    if tensor.get_shape() != buffer.get_shape():
        raise VerifyException("expected tensor and buffer to have the same shape")


@irdl_op_definition
class LoadFromBufferOp(IRDLOperation):
    """Loads a buffer as a tensor (IREE: `iree_codegen.load_from_buffer`)."""

    name = "iree_codegen.load_from_buffer"

    buffer = operand_def(MemRefType)
    tensor = result_def(TensorType)

    traits = traits_def(MemoryReadEffect())
    assembly_format = "$buffer attr-dict `:` type($buffer) `->` type($tensor)"

    def __init__(self, buffer: SSAValue, type: TensorType):
        super().__init__(operands=[buffer], result_types=[type])

    def verify_(self) -> None:
        assert isinstance(self.buffer.type, MemRefType)
        _verify_same_shape(self.tensor.type, self.buffer.type)


@irdl_op_definition
class StoreToBufferOp(IRDLOperation):
    """Stores a tensor to a whole buffer (IREE: `iree_codegen.store_to_buffer`)."""

    name = "iree_codegen.store_to_buffer"

    tensor = operand_def(TensorType)
    buffer = operand_def(MemRefType)

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$tensor `,` $buffer attr-dict `:` type($tensor) `into` type($buffer)"

    def __init__(self, tensor: SSAValue, buffer: SSAValue):
        super().__init__(operands=[tensor, buffer])

    def verify_(self) -> None:
        assert isinstance(self.tensor.type, TensorType)
        assert isinstance(self.buffer.type, MemRefType)
        _verify_same_shape(self.tensor.type, self.buffer.type)


IreeCodegen = Dialect(
    "iree_codegen",
    [LoadFromBufferOp, StoreToBufferOp],
    [LoweringConfigAttr, TranslationInfoAttr, CompilationInfoAttr, WorkgroupMappingAttr],
)
