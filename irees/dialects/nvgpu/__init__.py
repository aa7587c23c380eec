"""
`nvgpu`: what threads of an NVIDIA GPU do together with the tiles in shared memory.

Copies to shared memory that nobody waits for at once, loads of the operands of matrix
instructions, and products of four warps that read shared memory themselves. MLIR:
`mlir/include/mlir/Dialect/NVGPU/IR/NVGPUOps.td`.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from . import copies, warpgroups
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
    [*copies.OPS, *warpgroups.OPS],
    [
        DeviceAsyncTokenType,
        WarpgroupMatrixDescriptorType,
        WarpgroupAccumulatorType,
    ],
)

__all__ = [
    "DeviceAsyncCopyOp",
    "DeviceAsyncCreateGroupOp",
    "DeviceAsyncTokenType",
    "DeviceAsyncWaitOp",
    "LdMatrixOp",
    "Nvgpu",
    "WarpgroupAccumulatorType",
    "WarpgroupGenerateDescriptorOp",
    "WarpgroupMatrixDescriptorType",
    "WarpgroupMmaInitAccumulatorOp",
    "WarpgroupMmaOp",
    "swizzled_bytes",
]
