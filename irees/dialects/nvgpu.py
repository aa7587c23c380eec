"""
`nvgpu`: what threads of an NVIDIA GPU do together with the tiles in shared memory.

Copies to shared memory that nobody waits for at once, loads of the operands of matrix
instructions, and products of four warps that read shared memory themselves. MLIR:
`mlir/include/mlir/Dialect/NVGPU/IR/NVGPUOps.td`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    BoolAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    UnitAttr,
    VectorType,
    f32,
    i32,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
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
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class DeviceAsyncTokenType(ParametrizedAttribute, TypeAttribute):
    """`!nvgpu.device.async.token`: copies that may not have arrived yet."""

    name = "nvgpu.device.async.token"


TOKEN = DeviceAsyncTokenType()


def _parse_place(parser: Parser) -> tuple:
    """%buffer[%i, %j]"""
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
    Begins to copy `dst_elements` neighbours to shared memory: `cp.async` of PTX, of 4, 8 or 16
    bytes. Of them the first `src_elements` are read, the others become 0.
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
        """How many are copied."""
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
    """Makes one group of the copies that the thread began since the last one."""

    name = "nvgpu.device_async_create_group"

    copies = var_operand_def(DeviceAsyncTokenType)
    token = result_def(DeviceAsyncTokenType)
    assembly_format = "$copies attr-dict"

    def __init__(self, copies: Sequence[SSAValue]):
        super().__init__(operands=[copies], result_types=[TOKEN])


@irdl_op_definition
class DeviceAsyncWaitOp(IRDLOperation):
    """Waits until all but the thread's last `numGroups` groups of copies have arrived."""

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

    Lane l names row l mod 8 of matrix l / 8. Of each matrix it gets the word l mod 4 of row l / 4;
    with `transpose` elements 2 * (l mod 4) and the next of column l / 4. A row is 16 bytes.
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
        if width not in (8, 16, 32) or (self.transpose.value.data and width != 16):
            raise VerifyException(f"no matrices of {self.src.type.element_type}")
        shape = self.result.type.get_shape()
        if self.count.value.data != 4 or tuple(shape) != (4, 32 // width):
            raise VerifyException("four matrices give four words of 32 bits")


class _NamedType(ParametrizedAttribute, TypeAttribute):
    """A type of one parameter that has a name: `<tensor = memref<64x64xf16>>`."""

    PARAMETER: ClassVar[str]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_characters(cls.PARAMETER)
            parser.parse_punctuation("=")
            return [parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.PARAMETER} = ")
            printer.print_attribute(self.parameters[0])


@irdl_attr_definition
class WarpgroupMatrixDescriptorType(_NamedType):
    """`!nvgpu.warpgroup.descriptor<tensor = ...>`: where and how a matrix lies in shared memory."""

    name = "nvgpu.warpgroup.descriptor"
    PARAMETER = "tensor"
    tensor: MemRefType[Attribute]


@irdl_attr_definition
class WarpgroupAccumulatorType(_NamedType):
    """`!nvgpu.warpgroup.accumulator<fragmented = ...>`: a matrix in the registers of four warps."""

    name = "nvgpu.warpgroup.accumulator"
    PARAMETER = "fragmented"
    fragmented: VectorType[Attribute]


SWIZZLES = (32, 64, 128)
"""Bytes of a row in shared memory, whose pieces of 16 bytes change places."""


def swizzled_bytes(kind: MemRefType[Attribute]) -> int:
    """Bytes of a row of a matrix that a descriptor tells of."""
    return kind.get_shape()[-1] * getattr(kind.element_type, "bitwidth", 0) // 8


@irdl_op_definition
class WarpgroupGenerateDescriptorOp(IRDLOperation):
    """
    Says where a matrix lies in shared memory, for `nvgpu.warpgroup.mma`.

    Its rows have 128, 64 or 32 bytes, and 8 of them begin at a multiple of 8 rows. They are
    swizzled by as much: of the n pieces of 16 bytes in a row, number p is at the place
    p xor (row / (8 / n) mod n). Rows are points of the matrix, along the reduction, in two dims; or
    they are steps of the reduction, then there are three dims, blocks x steps x 64. MLIR's reads
    the swizzle off a tensor map, which is an operand more.
    """

    name = "nvgpu.warpgroup.generate.descriptor"

    tensor = operand_def(MemRefType)
    descriptor = result_def(WarpgroupMatrixDescriptorType)
    assembly_format = "$tensor attr-dict `:` type($tensor) `->` type($descriptor)"

    def __init__(self, tensor: SSAValue):
        part = cast("MemRefType[Attribute]", tensor.type)
        kind = MemRefType(part.element_type, part.shape, memory_space=part.memory_space)
        super().__init__(operands=[tensor], result_types=[WarpgroupMatrixDescriptorType(kind)])

    def verify_(self) -> None:
        kind = cast("MemRefType[Attribute]", self.tensor.type)
        if str(kind.element_type) not in ("f16", "bf16"):
            raise VerifyException(f"no matrices of {kind.element_type}")
        if kind.get_num_dims() not in (2, 3) or swizzled_bytes(kind) not in SWIZZLES:
            raise VerifyException("rows of a matrix have 32, 64 or 128 bytes")
        if kind.get_num_dims() == 3 and swizzled_bytes(kind) != 128:
            raise VerifyException("rows of steps have 128 bytes")


@irdl_op_definition
class WarpgroupMmaInitAccumulatorOp(IRDLOperation):
    """Zeros."""

    name = "nvgpu.warpgroup.mma.init.accumulator"

    matrix_c = result_def(WarpgroupAccumulatorType)
    assembly_format = "attr-dict `->` type($matrix_c)"

    def __init__(self, rows: int, columns: int):
        kind = WarpgroupAccumulatorType(VectorType(f32, [rows, columns]))
        super().__init__(result_types=[kind])


@irdl_op_definition
class WarpgroupMmaOp(IRDLOperation):
    """
    Begins sums of a warpgroup plus a 64 x K times a K x N matrix, all four warps together: a fence,
    `wgmma.mma_async` for each 16 of K, a commit, and a wait for all but the last `waitGroup` such
    groups. What is not waited for must be left alone, the operands in shared memory too.

    A is 64 x K, or with `transposeA` 1 x K x 64; B is N x K, or with `transposeB` N / 64 x K x 64.
    (MLIR calls B K x N in both cases, and has more rows of A.) The accumulator has no other user.
    """

    name = "nvgpu.warpgroup.mma"

    descriptor_a = operand_def(WarpgroupMatrixDescriptorType)
    descriptor_b = operand_def(WarpgroupMatrixDescriptorType)
    matrix_c = operand_def(WarpgroupAccumulatorType)
    wait_group = opt_prop_def(IntegerAttr, prop_name="waitGroup")
    transpose_a = opt_prop_def(UnitAttr, prop_name="transposeA")
    transpose_b = opt_prop_def(UnitAttr, prop_name="transposeB")
    matrix_d = result_def(WarpgroupAccumulatorType)
    assembly_format = (
        "$descriptor_a `,` $descriptor_b `,` $matrix_c attr-dict `:` type($descriptor_a) `,`"
        " type($descriptor_b) `,` type($matrix_c) `->` type($matrix_d)"
    )

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self, a: SSAValue, b: SSAValue, c: SSAValue, *, wait: int, turned: tuple[bool, bool]
    ):
        super().__init__(
            operands=[a, b, c],
            result_types=[c.type],
            properties={
                "waitGroup": IntegerAttr(wait, i32),
                "transposeA": UnitAttr() if turned[0] else None,
                "transposeB": UnitAttr() if turned[1] else None,
            },
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and steps of the reduction."""
        assert isinstance(self.descriptor_b.type, WarpgroupMatrixDescriptorType)
        b = self.descriptor_b.type.tensor.get_shape()
        if self.transpose_b is not None:
            return 64, b[0] * b[2], b[1]
        return 64, b[0], b[1]

    def verify_(self) -> None:
        assert isinstance(self.descriptor_a.type, WarpgroupMatrixDescriptorType)
        assert isinstance(self.descriptor_b.type, WarpgroupMatrixDescriptorType)
        assert isinstance(self.matrix_c.type, WarpgroupAccumulatorType)
        a, b = self.descriptor_a.type.tensor, self.descriptor_b.type.tensor
        dims = [2 if turned is None else 3 for turned in (self.transpose_a, self.transpose_b)]
        if [a.get_num_dims(), b.get_num_dims()] != dims or a.element_type != b.element_type:
            raise VerifyException(f"no product of {a} and {b}")
        rows, columns, steps = self.shape
        wanted = (1, steps, 64) if self.transpose_a is not None else (rows, steps)
        if a.get_shape() != wanted or steps % 16:
            raise VerifyException(f"no product of {a} and {b}")
        sums = VectorType(f32, [rows, columns])
        if columns not in (64, 128, 256) or self.matrix_c.type.fragmented != sums:
            raise VerifyException(f"no sums of 64 x {columns} in {self.matrix_c.type.fragmented}")
        if len(list(self.matrix_c.uses)) != 1:
            raise VerifyException("an accumulator that is added to has no other user")


Nvgpu = Dialect(
    "nvgpu",
    [
        DeviceAsyncCopyOp,
        DeviceAsyncCreateGroupOp,
        DeviceAsyncWaitOp,
        LdMatrixOp,
        WarpgroupGenerateDescriptorOp,
        WarpgroupMmaInitAccumulatorOp,
        WarpgroupMmaOp,
    ],
    [DeviceAsyncTokenType, WarpgroupMatrixDescriptorType, WarpgroupAccumulatorType],
)
