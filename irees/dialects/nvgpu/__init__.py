"""
`nvgpu`: copies to shared memory and matrix instructions of NVIDIA GPUs.

Asynchronous copies to shared memory, per thread (`cp.async`) and in bulk (TMA), loads of matrix
fragments (`ldmatrix`), and warpgroup matrix multiplies from shared memory (`wgmma`).
MLIR: `mlir/include/mlir/Dialect/NVGPU/IR/NVGPUOps.td`.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from . import boxes, copies, warpgroups
from .boxes import (
    BOX_BYTES,
    LONGEST_BOX,
    MOST_DIMS,
    MBarrierArriveExpectTxOp,
    MBarrierArriveOp,
    MBarrierCreateOp,
    MBarrierGroupType,
    MBarrierInitOp,
    MBarrierTokenType,
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
    product_shape,
    swizzled_bytes,
)

Nvgpu = Dialect(
    "nvgpu",
    [*copies.OPS, *boxes.OPS, *warpgroups.OPS],
    [
        DeviceAsyncTokenType,
        MBarrierGroupType,
        MBarrierTokenType,
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
    "MBarrierArriveOp",
    "MBarrierCreateOp",
    "MBarrierGroupType",
    "MBarrierInitOp",
    "MBarrierTokenType",
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
    "product_shape",
    "swizzled_bytes",
]
