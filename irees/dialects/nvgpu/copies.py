"""Per-thread asynchronous copies to shared memory, and matrix loads from shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    BoolAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    UnitAttr,
    VectorType,
    i32,
)
from xdsl.ir import ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class DeviceAsyncTokenType(ParametrizedAttribute, TypeAttribute):
    """`!nvgpu.device.async.token`: copies that may still be in flight."""

    name = "nvgpu.device.async.token"


TOKEN = DeviceAsyncTokenType()


def _parse_place(parser: Parser) -> tuple:
    """Parses %buffer[%i, %j]."""
    buffer = parser.parse_unresolved_operand()
    indices = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, parser.parse_unresolved_operand
    )
    return buffer, indices


def _print_place(printer: Printer, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
    printer.print_ssa_value(buffer)
    with printer.in_square_brackets():
        printer.print_list(indices, printer.print_ssa_value)


@irdl_op_definition
class DeviceAsyncCopyOp(IRDLOperation):
    """
    Starts to copy `dst_elements` contiguous elements to shared memory (PTX `cp.async`).

    The copy has 4, 8 or 16 bytes. Only the first `src_elements` are read; the rest is zero-filled.
    """

    name = "nvgpu.device_async_copy"

    dst = operand_def(MemRefType)
    dst_indices = var_operand_def(IndexType)
    src = operand_def(MemRefType)
    src_indices = var_operand_def(IndexType)
    src_elements = opt_operand_def(IndexType)
    dst_elements = prop_def(IntegerAttr, prop_name="dstElements")
    bypass_l1 = opt_prop_def(UnitAttr, prop_name="bypassL1")
    token = result_def(DeviceAsyncTokenType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        src: SSAValue,
        src_indices: Sequence[SSAValue],
        dst: SSAValue,
        dst_indices: Sequence[SSAValue],
        count: int,
        src_elements: SSAValue | None = None,
    ):
        super().__init__(
            operands=[dst, dst_indices, src, src_indices, src_elements],
            result_types=[TOKEN],
            properties={"dstElements": IntegerAttr.from_index_int_value(count)},
        )

    @property
    def bytes(self) -> int:
        """The size of the copy in bytes."""
        assert isinstance(self.dst.type, MemRefType)
        width = getattr(self.dst.type.element_type, "bitwidth", 0)
        return self.dst_elements.value.data * width // 8

    @classmethod
    def parse(cls, parser: Parser) -> DeviceAsyncCopyOp:
        src, src_indices = _parse_place(parser)
        parser.parse_punctuation(",")
        dst, dst_indices = _parse_place(parser)
        parser.parse_punctuation(",")
        count = parser.parse_integer()
        elements = None
        if parser.parse_optional_punctuation(",") is not None:
            elements = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        src_type = parser.parse_type()
        parser.parse_characters("to")
        dst_type = parser.parse_type()
        index = IndexType()
        op = cls(
            parser.resolve_operand(src, src_type),
            [parser.resolve_operand(i, index) for i in src_indices],
            parser.resolve_operand(dst, dst_type),
            [parser.resolve_operand(i, index) for i in dst_indices],
            count,
            None if elements is None else parser.resolve_operand(elements, index),
        )
        if "bypassL1" in attributes:
            op.properties["bypassL1"] = attributes.pop("bypassL1")
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_place(printer, self.src, self.src_indices)
        printer.print_string(", ")
        _print_place(printer, self.dst, self.dst_indices)
        printer.print_string(f", {self.dst_elements.value.data}")
        if self.src_elements is not None:
            printer.print_string(", ")
            printer.print_ssa_value(self.src_elements)
        shown = dict(self.attributes)
        if self.bypass_l1 is not None:
            shown["bypassL1"] = self.bypass_l1
        printer.print_op_attributes(shown)
        printer.print_string(" : ")
        printer.print_attribute(self.src.type)
        printer.print_string(" to ")
        printer.print_attribute(self.dst.type)

    def verify_(self) -> None:
        if self.bytes not in (4, 8, 16):
            raise VerifyException(f"a copy takes 4, 8 or 16 bytes, not {self.bytes}")


@irdl_op_definition
class DeviceAsyncCreateGroupOp(IRDLOperation):
    """Commits the copies that the thread started since the last group as one group."""

    name = "nvgpu.device_async_create_group"

    copies = var_operand_def(DeviceAsyncTokenType)
    token = result_def(DeviceAsyncTokenType)
    assembly_format = "$copies attr-dict"

    def __init__(self, copies: Sequence[SSAValue]):
        super().__init__(operands=[copies], result_types=[TOKEN])


@irdl_op_definition
class DeviceAsyncWaitOp(IRDLOperation):
    """Waits until at most the thread's last `numGroups` copy groups are pending."""

    name = "nvgpu.device_async_wait"

    token = operand_def(DeviceAsyncTokenType)
    groups = opt_prop_def(IntegerAttr, prop_name="numGroups")
    assembly_format = "$token attr-dict"

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, token: SSAValue, groups: int):
        super().__init__(operands=[token], properties={"numGroups": IntegerAttr(groups, i32)})


@irdl_op_definition
class LdMatrixOp(IRDLOperation):
    """
    Loads four 8 x 8 matrices of 16 bits from shared memory for a warp: `ldmatrix` of PTX.

    Lane l passes the address of row l mod 8 of matrix l / 8. From each matrix it receives word
    l mod 4 of row l / 4; with `transpose`, elements 2 * (l mod 4) and the next one of column l / 4.
    A row is 16 bytes. Bytes are transposed in pairs: an element is two of them.
    """

    name = "nvgpu.ldmatrix"

    src = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    transpose = prop_def(BoolAttr)
    count = prop_def(IntegerAttr[IntegerType], prop_name="numTiles")
    result = result_def(VectorType)
    assembly_format = "$src `[` $indices `]` attr-dict `:` type($src) `->` type($result)"

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, src: SSAValue, indices: Sequence[SSAValue], *, transpose: bool):
        assert isinstance(src.type, MemRefType)
        element = src.type.element_type
        lanes = 32 // getattr(element, "bitwidth", 16)
        super().__init__(
            operands=[src, indices],
            result_types=[VectorType(element, [4, lanes])],
            properties={
                "transpose": BoolAttr.from_bool(transpose),
                "numTiles": IntegerAttr(4, i32),
            },
        )

    def verify_(self) -> None:
        assert isinstance(self.src.type, MemRefType)
        width = getattr(self.src.type.element_type, "bitwidth", 0)
        if width not in (8, 16, 32) or (self.transpose.value.data and width == 32):
            raise VerifyException(f"unsupported element type {self.src.type.element_type}")
        shape = self.result.type.get_shape()
        if self.count.value.data != 4 or tuple(shape) != (4, 32 // width):
            raise VerifyException("expected a result of four 32-bit words, one per matrix")


OPS = (DeviceAsyncCopyOp, DeviceAsyncCreateGroupOp, DeviceAsyncWaitOp, LdMatrixOp)
