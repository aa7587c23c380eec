"""
`nvgpu`: what threads of an NVIDIA GPU do together with the tiles in shared memory.

Copies to shared memory that nobody waits for at once, of single threads and of whole boxes, loads
of the operands of matrix instructions, and products of four warps that read shared memory
themselves. MLIR: `mlir/include/mlir/Dialect/NVGPU/IR/NVGPUOps.td`.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from . import boxes, copies, warpgroups
from .boxes import (
    BOX_BYTES,
    LONGEST_BOX,
    MOST_DIMS,
    MBarrierArriveExpectTxOp,
    MBarrierCreateOp,
    MBarrierGroupType,
    MBarrierInitOp,
    MBarrierTryWaitParityOp,
    TensorMapDescriptorType,
    TmaAsyncLoadOp,
    TmaCreateDescriptorOp,
)
from .copies import (
    DeviceAsyncCopyOp,
    DeviceAsyncCreateGroupOp,
    DeviceAsyncTokenType,
    DeviceAsyncWaitOp,
    LdMatrixOp,
)
from .warpgroups import (
    WarpgroupAccumulatorType,
    WarpgroupGenerateDescriptorOp,
    WarpgroupMatrixDescriptorType,
    WarpgroupMmaInitAccumulatorOp,
    WarpgroupMmaOp,
    swizzled_bytes,
)

Nvgpu = Dialect(
    "nvgpu",
    [*copies.OPS, *boxes.OPS, *warpgroups.OPS],
    [
        DeviceAsyncTokenType,
        MBarrierGroupType,
        TensorMapDescriptorType,
        WarpgroupMatrixDescriptorType,
        WarpgroupAccumulatorType,
    ],
)

__all__ = [
    "BOX_BYTES",
    "LONGEST_BOX",
    "MOST_DIMS",
    "DeviceAsyncCopyOp",
    "DeviceAsyncCreateGroupOp",
    "DeviceAsyncTokenType",
    "DeviceAsyncWaitOp",
    "LdMatrixOp",
    "MBarrierArriveExpectTxOp",
    "MBarrierCreateOp",
    "MBarrierGroupType",
    "MBarrierInitOp",
    "MBarrierTryWaitParityOp",
    "Nvgpu",
    "TensorMapDescriptorType",
    "TmaAsyncLoadOp",
    "TmaCreateDescriptorOp",
    "WarpgroupAccumulatorType",
    "WarpgroupGenerateDescriptorOp",
    "WarpgroupMatrixDescriptorType",
    "WarpgroupMmaInitAccumulatorOp",
    "WarpgroupMmaOp",
    "swizzled_bytes",
]
