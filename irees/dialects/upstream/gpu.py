"""Attributes of gpu that xDSL lacks: address spaces, and what a loop is mapped to."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum


class AddressSpace(StrEnum):
    """Where a memref is: in the device's memory, a workgroup's, or a thread's own."""

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
    """A dim of the grid or block that a loop is mapped to."""

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


OPS: list = []
ATTRS = [AddressSpaceAttr, BlockMappingAttr, ThreadMappingAttr, WarpMappingAttr]


def patch() -> None:
    """Nothing to repair."""
