"""
Additions to xDSL's gpu: address spaces, loop mapping attributes, shuffles, barrier syntax.

MLIR: `mlir/include/mlir/Dialect/GPU/IR/GPUOps.td`.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import StringAttr, i1, i32
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum


class AddressSpace(StrEnum):
    """Memory spaces: device memory, workgroup (shared) memory, private to a thread, constant."""

    GLOBAL = "global"
    WORKGROUP = "workgroup"
    PRIVATE = "private"
    CONSTANT = "constant"


@irdl_attr_definition
class AddressSpaceAttr(EnumAttribute[AddressSpace]):
    """`#gpu.address_space<workgroup>` (MLIR: GPUBase.td)."""

    name = "gpu.address_space"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AddressSpace:
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            super().print_parameter(printer)


_DIMS = ("x", "y", "z", *(f"linear_dim_{i}" for i in range(10)))


class _MappingAttr(ParametrizedAttribute):
    """Base of the attributes for the grid or block dim that a loop is mapped to."""

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[StringAttr]:
        with parser.in_angle_brackets():
            dim = parser.parse_identifier()
            if dim not in _DIMS:
                parser.raise_error("expected x, y, z or linear_dim_<n>")
        return (StringAttr(dim),)

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.dim.data}>")  # type: ignore[attr-defined]


@irdl_attr_definition
class BlockMappingAttr(_MappingAttr):
    """`#gpu.block<x>`: the loop runs over workgroups (MLIR: GPUDeviceMappingAttr.td)."""

    name = "gpu.block"
    dim: StringAttr


@irdl_attr_definition
class ThreadMappingAttr(_MappingAttr):
    """`#gpu.thread<x>`: the loop runs over threads (MLIR: GPUDeviceMappingAttr.td)."""

    name = "gpu.thread"
    dim: StringAttr


@irdl_attr_definition
class WarpMappingAttr(_MappingAttr):
    """`#gpu.warp<x>`: the loop runs over warps (MLIR: GPUDeviceMappingAttr.td)."""

    name = "gpu.warp"
    dim: StringAttr


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Barrier for all threads of the workgroup; makes their prior writes visible to each other."""

    name = "gpu.barrier"
    assembly_format = "attr-dict"


class ShuffleMode(StrEnum):
    """How the source lane of a shuffle is computed."""

    XOR = "xor"
    DOWN = "down"
    UP = "up"
    IDX = "idx"


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[ShuffleMode]):
    """`#gpu<shuffle_mode xor>`"""

    name = "gpu.shuffle_mode"


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """
    Exchanges values between the lanes of a subgroup. With `xor`, a lane receives the value of lane
    number xor `offset`.
    """

    name = "gpu.shuffle"

    T: ClassVar = VarConstraint("T", AnyAttr())
    value = operand_def(T)
    offset = operand_def(i32)
    width = operand_def(i32)
    mode = prop_def(ShuffleModeAttr)
    shuffle_result = result_def(T)
    valid = result_def(i1)

    def __init__(self, value: SSAValue, offset: SSAValue, width: SSAValue):
        super().__init__(
            operands=[value, offset, width],
            result_types=[value.type, i1],
            properties={"mode": ShuffleModeAttr(ShuffleMode.XOR)},
        )

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleOp:
        mode = ShuffleModeAttr(parser.parse_str_enum(ShuffleMode))
        names = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        if len(names) != 3:
            parser.raise_error("expected a value, an offset and a width")
        operands = parser.resolve_operands(names, [kind, i32, i32], parser.pos)
        return cls.build(operands=operands, result_types=[kind, i1], properties={"mode": mode})

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.mode.data.value} ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)


OPS: list = [BarrierOp, ShuffleOp]
REPLACES = frozenset(("gpu.barrier",))
"""Ops that replace xDSL's: its `gpu.barrier` has no custom syntax."""
ATTRS = [ShuffleModeAttr, AddressSpaceAttr, BlockMappingAttr, ThreadMappingAttr, WarpMappingAttr]


def patch() -> None:
    """Nothing to patch."""
