"""
The `flow` dialect: the host program as dispatches on tensors. Names and syntax are IREE's
(`compiler/src/iree/compiler/Dialect/Flow/IR`).
"""

from __future__ import annotations

from xdsl.ir import Dialect

from . import dispatch, tensors
from .dispatch import DispatchOp, DispatchRegionOp, ExecutableOp, ReturnOp
from .tensors import (
    TensorBarrierOp,
    TensorBitCastOp,
    TensorCloneOp,
    TensorConstantOp,
    TensorDynamicConstantOp,
    TensorEmptyOp,
    TensorLoadOp,
    TensorReshapeOp,
    TensorSliceOp,
    TensorSplatOp,
    TensorStoreOp,
    TensorTieShapeOp,
    TensorTraceOp,
    TensorTransferOp,
    TensorUpdateOp,
    storage_bits,
)

Flow = Dialect("flow", [*dispatch.OPS, *tensors.OPS], [])

__all__ = [
    "DispatchOp",
    "DispatchRegionOp",
    "ExecutableOp",
    "Flow",
    "ReturnOp",
    "TensorBarrierOp",
    "TensorBitCastOp",
    "TensorCloneOp",
    "TensorConstantOp",
    "TensorDynamicConstantOp",
    "TensorEmptyOp",
    "TensorLoadOp",
    "TensorReshapeOp",
    "TensorSliceOp",
    "TensorSplatOp",
    "TensorStoreOp",
    "TensorTieShapeOp",
    "TensorTraceOp",
    "TensorTransferOp",
    "TensorUpdateOp",
    "storage_bits",
]
