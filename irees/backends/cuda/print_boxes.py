"""Prints tensor maps as C for the host, and TMA copies and mbarriers as CUDA C++ for kernels."""

from __future__ import annotations

from xdsl.ir import Operation

from irees.backends.common.printer import Handler, Printer, handles, is_literal, times
from irees.backends.common.types import size_of
from irees.dialects.nvgpu import (
    MBarrierArriveExpectTxOp,
    MBarrierArriveOp,
    MBarrierCreateOp,
    MBarrierInitOp,
    MBarrierTryWaitParityOp,
    TmaAsyncLoadOp,
    TmaCreateDescriptorOp,
    swizzled_bytes,
)

MAPS: dict[str, Handler] = {}
"""Printers for the host program."""

BOXES: dict[str, Handler] = {}

BARRIER_BYTES = 8


@handles("nvgpu.tma.create.descriptor", table=MAPS)
def _create_map(p: Printer, op: Operation) -> None:
    """Prints a tensor map; dims are in reverse order and strides in bytes, as CUDA expects."""
    assert isinstance(op, TmaCreateDescriptorOp)
    kind = op.tensor_map.type.tensor  # type: ignore[attr-defined]
    buffer, size = p.buffer(op.tensor), size_of(kind.element_type)
    name = p.fresh("m")
    strides = [times(stride, str(size)) for stride in buffer.strides]
    lists = ", ".join(
        f"{{{', '.join(reversed(each))}}}"
        for each in (buffer.sizes, strides, [p.name(b) for b in op.box])
    )
    p.line(f"irees_tensor_map {name};")
    p.line("{")
    p.line(
        f"  const irees_tensor tensor_ = {{{buffer.pointer}, {len(buffer.sizes)}, {size}, "
        f"{swizzled_bytes(kind)}, {lists}}};"
    )
    p.line(f"  status = IREES_ENCODE_TENSOR_MAP(&{name}, &tensor_);")
    p.line("  if (status) goto done;")
    p.line("}")
    p.names[op.tensor_map] = name


@handles("nvgpu.mbarrier.create", table=BOXES)
def _create(p: Printer, op: Operation) -> None:
    assert isinstance(op, MBarrierCreateOp)
    offset = p.share(op.barriers.type.bytes, BARRIER_BYTES)  # type: ignore[attr-defined]
    name = p.fresh("b")
    p.line(f"uint64_t *const {name} = (uint64_t *)(shared + {offset});")
    p.names[op.barriers] = name


def _barrier(p: Printer, op: Operation) -> str:
    """The C of the address of the mbarrier that an op uses."""
    first, number = p.name(op.barriers), p.name(op.number)  # type: ignore[attr-defined]
    return first if is_literal(number) and int(number) == 0 else f"{first} + {number}"


@handles("nvgpu.mbarrier.init", table=BOXES)
def _init(p: Printer, op: Operation) -> None:
    assert isinstance(op, MBarrierInitOp)
    p.line(f"irees_mbarrier_init({_barrier(p, op)}, {p.name(op.count)});")


@handles("nvvm.fence.mbarrier.init", table=BOXES)
def _fence(p: Printer, op: Operation) -> None:
    p.line("irees_mbarrier_fence();")


@handles("nvgpu.mbarrier.arrive", table=BOXES)
def _arrive(p: Printer, op: Operation) -> None:
    assert isinstance(op, MBarrierArriveOp)
    p.line(f"irees_mbarrier_arrive({_barrier(p, op)});")


@handles("nvgpu.mbarrier.arrive.expect_tx", table=BOXES)
def _expect(p: Printer, op: Operation) -> None:
    assert isinstance(op, MBarrierArriveExpectTxOp)
    p.line(f"irees_mbarrier_expect({_barrier(p, op)}, {p.name(op.txcount)});")


@handles("nvgpu.mbarrier.try_wait.parity", table=BOXES)
def _wait(p: Printer, op: Operation) -> None:
    assert isinstance(op, MBarrierTryWaitParityOp)
    p.waits = True  # type: ignore[attr-defined]
    arguments = f"{_barrier(p, op)}, {p.name(op.parity)}, {p.name(op.ticks)}"
    p.line(f"irees_mbarrier_wait({arguments});")


@handles("nvgpu.tma.async.load", table=BOXES)
def _load(p: Printer, op: Operation) -> None:
    """Prints a TMA copy; coordinates are in reverse order, like the dims of the tensor map."""
    assert isinstance(op, TmaAsyncLoadOp)
    tensor_map = p.tensor_map(op.tensor_map)  # type: ignore[attr-defined]
    places = ", ".join(f"(int32_t){_factor(p.name(c))}" for c in reversed(op.coordinates))
    to = p.buffer(op.dst).pointer
    p.line(f"irees_copy_box({to}, &{tensor_map}, {_barrier(p, op)}, {places});")


def _factor(text: str) -> str:
    """The expression, in parentheses where a cast would bind tighter."""
    return text if text.isidentifier() or is_literal(text) else f"({text})"
