"""Prints warp-level matrix ops as CUDA C++: mma.sync, ldmatrix and cp.async."""

from __future__ import annotations

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation

from irees.backends.common.printer import HANDLERS, Handler, Printer, handles
from irees.backends.common.types import short
from irees.dialects.irees import MmaSyncOp
from irees.dialects.nvgpu import DeviceAsyncCopyOp, DeviceAsyncWaitOp, LdMatrixOp

MATRICES: dict[str, Handler] = {}


@handles("irees.mma_sync", table=MATRICES)
def _mma_sync(p: Printer, op: Operation) -> None:
    assert isinstance(op, MmaSyncOp)
    p.waits = True  # type: ignore[attr-defined]
    kind = op.a0.type
    assert isinstance(kind, VectorType)
    p.expressions.type(op.result.type)
    operands = ", ".join(p.name(o) for o in op.operands)
    p.define(op.result, f"irees_mma_{short(kind.element_type)}({operands})")


@handles("nvgpu.ldmatrix", table=MATRICES)
def _ldmatrix(p: Printer, op: Operation) -> None:
    assert isinstance(op, LdMatrixOp)
    p.waits = True  # type: ignore[attr-defined]
    kind = op.result.type
    assert isinstance(kind, VectorType)
    word = p.expressions.type(VectorType(kind.element_type, kind.get_shape()[1:]))
    place = p.address(p.buffer(op.src), [p.name(i) for i in op.indices])
    name, turned = p.fresh(), "true" if op.transpose.value.data else "false"
    p.line(f"const auto {name} = irees_ldmatrix<{word}, {turned}>({place});")
    p.names[op.result] = name


@handles("vector.extract", table=MATRICES)
def _extract(p: Printer, op: Operation) -> None:
    """Extracts the words of one matrix from the result of an ldmatrix."""
    assert isinstance(op, vector.ExtractOp)
    if not isinstance(op.result.type, VectorType):
        HANDLERS["vector.extract"](p, op)
        return
    (position,) = op.static_position.get_values()
    p.names[op.result] = f"{p.name(op.vector)}.v[{position}]"


@handles("nvgpu.device_async_copy", table=MATRICES)
def _copy_async(p: Printer, op: Operation) -> None:
    assert isinstance(op, DeviceAsyncCopyOp)
    p.waits = True  # type: ignore[attr-defined]
    to = p.address(p.buffer(op.dst), [p.name(i) for i in op.dst_indices])
    source = p.address(p.buffer(op.src), [p.name(i) for i in op.src_indices])
    count, size = str(op.bytes), op.bytes // op.dst_elements.value.data
    if op.src_elements is not None:
        count = f"{size} * {p.name(op.src_elements)}"
    p.line(f"irees_copy_async<{op.bytes}>({to}, {source}, {count});")


@handles("nvgpu.device_async_create_group", table=MATRICES)
def _create_group(p: Printer, op: Operation) -> None:
    p.line("irees_copies_end();")


@handles("nvgpu.device_async_wait", table=MATRICES)
def _wait(p: Printer, op: Operation) -> None:
    assert isinstance(op, DeviceAsyncWaitOp)
    groups = 0 if op.groups is None else op.groups.value.data
    p.line(f"irees_copies_wait<{groups}>();")
