"""Prints counters as C for the host, and the atomics on them as CUDA C++ for kernels."""

from __future__ import annotations

from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, i32
from xdsl.ir import Operation

from irees.backends.common.printer import OK_OR_FAIL, Handler, Printer, handles
from irees.backends.common.types import size_of
from irees.dialects.irees import CountersOp
from irees.dialects.upstream.memref import ATOMIC_KINDS
from irees.errors import UnsupportedError

COUNTERS: dict[str, Handler] = {}
"""Printers for the host program."""

ATOMICS: dict[str, Handler] = {}

_FUNCTIONS = {"addi": "atomicAdd", "assign": "atomicExch"}


@handles("irees.counters", table=COUNTERS)
def _counters(p: Printer, op: Operation) -> None:
    """Allocates counters, freed with the launcher's buffers; launches that use them are checked."""
    assert isinstance(op, CountersOp)
    kind = op.counters.type
    assert isinstance(kind, MemRefType)
    shape = kind.get_shape()
    pointer, size = p.fresh("p"), prod(shape) * size_of(kind.element_type)
    p.line(f"int32_t *const {pointer} = IREES_COUNTERS({size});")
    p.line(f"if (!{pointer}) {{ status = {OK_OR_FAIL}; goto done; }}")
    p.line(f"owned[{p.allocations}] = {pointer};")
    p.scopes[-1].append((pointer, p.allocations))
    p.allocations += 1
    p.counters[pointer] = size  # type: ignore[attr-defined]
    p.bind_buffer(op.counters, pointer, [str(size) for size in shape])


@handles("memref.atomic_rmw", table=ATOMICS)
def _atomic(p: Printer, op: Operation) -> None:
    """Supports i32 only: float atomics would add in a different order in each run."""
    assert isinstance(op, memref.AtomicRMWOp)
    function = _FUNCTIONS.get(ATOMIC_KINDS[op.kind.value.data])
    if function is None or op.value.type != i32:
        raise UnsupportedError("only i32 atomics are supported: add and exchange", op=op.name)
    place = p.address(p.buffer(op.memref), [p.name(i) for i in op.indices])
    p.define(op.result, f"{function}({place}, {p.name(op.value)})")


@handles("nvvm.memory.barrier", table=ATOMICS)
def _fence(p: Printer, op: Operation) -> None:
    p.line("__threadfence();")
