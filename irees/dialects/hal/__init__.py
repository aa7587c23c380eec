"""
The `hal` dialect: dispatch interfaces, the program's ABI, and device attributes. Names and syntax
are IREE's (`compiler/src/iree/compiler/Dialect/HAL/IR`).
"""

from __future__ import annotations

from xdsl.ir import Dialect

from . import devices, interface, tensors
from .devices import (
    Affinity,
    BufferType,
    BufferViewType,
    DeviceAffinityAttr,
    DeviceOptimalAttr,
    DevicePromiseAttr,
    FenceType,
)
from .interface import (
    InterfaceBindingSubspanOp,
    InterfaceConstantLoadOp,
    PipelineBindingAttr,
    PipelineLayoutAttr,
)
from .tensors import (
    BufferViewDimOp,
    TensorAliasOp,
    TensorBarrierOp,
    TensorExportOp,
    TensorImportOp,
    TensorTransientsOp,
)

Hal = Dialect("hal", [*interface.OPS, *tensors.OPS], [*interface.ATTRS, *devices.ATTRS])

__all__ = [
    "Affinity",
    "BufferType",
    "BufferViewDimOp",
    "BufferViewType",
    "DeviceAffinityAttr",
    "DeviceOptimalAttr",
    "DevicePromiseAttr",
    "FenceType",
    "Hal",
    "InterfaceBindingSubspanOp",
    "InterfaceConstantLoadOp",
    "PipelineBindingAttr",
    "PipelineLayoutAttr",
    "TensorAliasOp",
    "TensorBarrierOp",
    "TensorExportOp",
    "TensorImportOp",
    "TensorTransientsOp",
]
