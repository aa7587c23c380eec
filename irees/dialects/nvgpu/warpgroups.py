"""Warpgroup matrix multiplies, which read their operands from shared memory (`wgmma`)."""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects.builtin import IntegerAttr, MemRefType, UnitAttr, VectorType, f32, i32
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


class _NamedType(ParametrizedAttribute, TypeAttribute):
    """Base of types with one named parameter: `<tensor = memref<64x64xf16>>`."""

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
    """`!nvgpu.warpgroup.descriptor<tensor = ...>`: address and layout of a shared-memory matrix."""

    name = "nvgpu.warpgroup.descriptor"
    PARAMETER = "tensor"
    tensor: MemRefType[Attribute]


@irdl_attr_definition
class WarpgroupAccumulatorType(_NamedType):
    """`!nvgpu.warpgroup.accumulator<fragmented = ...>`: a matrix in a warpgroup's registers."""

    name = "nvgpu.warpgroup.accumulator"
    PARAMETER = "fragmented"
    fragmented: VectorType[Attribute]


SWIZZLES = (32, 64, 128)
"""Swizzle modes: row sizes, in bytes, within which 16-byte chunks are permuted."""


def swizzled_bytes(kind: MemRefType[Attribute]) -> int:
    """Returns the bytes of a matrix row, which is also the swizzle mode."""
    return kind.get_shape()[-1] * getattr(kind.element_type, "bitwidth", 0) // 8


@irdl_op_definition
class WarpgroupGenerateDescriptorOp(IRDLOperation):
    """
    Builds the descriptor of a matrix in shared memory, for `nvgpu.warpgroup.mma`.

    Rows have 128, 64 or 32 bytes, in groups of 8 that are aligned to 8 rows. The row size is also
    the swizzle mode: of the n 16-byte chunks of a row, chunk p is stored at position
    p xor (row / (8 / n) mod n).

    A 2-D memref is K-major: a row is contiguous along the reduction. A 3-D memref, blocks x K x 64,
    has one row per reduction step. MLIR's op reads the swizzle from a tensor map, an extra operand.
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
            raise VerifyException(f"unsupported element type {kind.element_type}")
        if kind.get_num_dims() not in (2, 3) or swizzled_bytes(kind) not in SWIZZLES:
            raise VerifyException("expected rows of 32, 64 or 128 bytes")
        if kind.get_num_dims() == 3 and swizzled_bytes(kind) != 128:
            raise VerifyException("expected rows of 128 bytes in a 3-D memref")


@irdl_op_definition
class WarpgroupMmaInitAccumulatorOp(IRDLOperation):
    """A zeroed accumulator."""

    name = "nvgpu.warpgroup.mma.init.accumulator"

    matrix_c = result_def(WarpgroupAccumulatorType)
    assembly_format = "attr-dict `->` type($matrix_c)"

    def __init__(self, rows: int, columns: int):
        kind = WarpgroupAccumulatorType(VectorType(f32, [rows, columns]))
        super().__init__(result_types=[kind])


def product_shape(b: Attribute, *, turned: bool) -> tuple[int, int, int]:
    """Returns M, N and K of a product with a descriptor: N x K, or N / 64 x K x 64 if `turned`."""
    assert isinstance(b, WarpgroupMatrixDescriptorType)
    shape = b.tensor.get_shape()
    return (64, shape[0] * shape[2], shape[1]) if turned else (64, shape[0], shape[1])


@irdl_op_definition
class WarpgroupMmaOp(IRDLOperation):
    """
    Starts D = C + A * B of a warpgroup, with A 64 x K and B K x N.

    Consists of a fence, one `wgmma.mma_async` per 16 steps of K, a commit, and a wait until at most
    `waitGroup` groups are pending. Accumulators and shared-memory operands of pending groups must
    not be accessed.

    A is 64 x K, or 1 x K x 64 with `transposeA`. B is N x K, or N / 64 x K x 64 with `transposeB`.
    MLIR's B is K x N in both cases, and its A may have more rows. The accumulator has no other use.
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
        """M, N and K of the product."""
        return product_shape(self.descriptor_b.type, turned=self.transpose_b is not None)

    def verify_(self) -> None:
        assert isinstance(self.descriptor_a.type, WarpgroupMatrixDescriptorType)
        assert isinstance(self.descriptor_b.type, WarpgroupMatrixDescriptorType)
        assert isinstance(self.matrix_c.type, WarpgroupAccumulatorType)
        a, b = self.descriptor_a.type.tensor, self.descriptor_b.type.tensor
        dims = [2 if turned is None else 3 for turned in (self.transpose_a, self.transpose_b)]
        if [a.get_num_dims(), b.get_num_dims()] != dims or a.element_type != b.element_type:
            raise VerifyException(f"unsupported product of {a} and {b}")
        rows, columns, steps = self.shape
        wanted = (1, steps, 64) if self.transpose_a is not None else (rows, steps)
        if a.get_shape() != wanted or steps % 16:
            raise VerifyException(f"unsupported product of {a} and {b}")
        sums = VectorType(f32, [rows, columns])
        if columns not in (64, 128, 256) or self.matrix_c.type.fragmented != sums:
            raise VerifyException(
                f"no accumulator of 64 x {columns}: {self.matrix_c.type.fragmented}"
            )
        if len(list(self.matrix_c.uses)) != 1:
            raise VerifyException("expected the accumulator to have no other use")


OPS = (WarpgroupGenerateDescriptorOp, WarpgroupMmaInitAccumulatorOp, WarpgroupMmaOp)
