"""
The `stream` dialect: tensors as resources on devices, and the host program on buffers.

irees' own pipeline lowers `flow` to `stream.cmd.dispatch` on memrefs; the ops on resources are for
placement decisions. Names and syntax are IREE's (`compiler/src/iree/compiler/Dialect/Stream/IR`).
"""

from __future__ import annotations

from xdsl.ir import Dialect

from . import commands, regions, tensors, transfers, types
from .commands import CmdDispatchOp, CmdTraceOp
from .regions import AsyncDispatchOp, AsyncExecuteOp, YieldOp
from .tensors import TensorExportOp, TensorImportOp
from .transfers import AsyncTransferOp
from .types import ResourceType, TimepointType

Stream = Dialect("stream", [*commands.OPS, *tensors.OPS, *transfers.OPS, *regions.OPS], types.ATTRS)

__all__ = [
    "AsyncDispatchOp",
    "AsyncExecuteOp",
    "AsyncTransferOp",
    "CmdDispatchOp",
    "CmdTraceOp",
    "ResourceType",
    "Stream",
    "TensorExportOp",
    "TensorImportOp",
    "TimepointType",
    "YieldOp",
]
