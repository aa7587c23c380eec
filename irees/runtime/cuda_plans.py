"""
Planned calls: calls with PyTorch tensors on the device, at the cost of a few PyTorch operators.

The first call of a function with some shapes takes the general path, which logs the entry's
allocations. They become a plan. Later calls with such tensors allocate all memory before they run
the entry, results as tensors of their final shape, so no service of the call is in Python.

A plan makes every check of the general path, but has no copies and error messages: arguments that
fail a check, and calls that request other memory than planned, take the general path. Repeating a
call there is safe, because the kernels of a planned call write only to memory of that call.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from irees.runtime.arguments import DEVICE_ALIGNMENT, Scratchpad, TensorSpec
from irees.runtime.cuda_queue import maker, stream_of
from irees.runtime.dtypes import torch_dtype, torch_dtypes
from irees.runtime.services import CallStruct
from irees.runtime.torch_tensors import plain_types

if TYPE_CHECKING:
    from irees.runtime.cuda import CudaDevice
    from irees.runtime.graphs import GraphCalls
    from irees.runtime.program import Function

MOST_PLANS = 64
"""Maximum plans per function: each is for one tuple of argument shapes."""

MOST_FAILURES = 4
"""Maximum calls that deviate from their plan before planning is disabled for the function."""

SLACK_BYTES = 1 << 20
"""Maximum bytes by which a planned call may exceed the peak memory of a general one."""

ALIGNMENT = 512
"""Alignment in bytes of temporaries, which share one allocation, as in PyTorch's allocator."""

_pointer = ctypes.c_void_p

_plain: tuple[type, ...] = ()


class _PlanStruct(ctypes.Structure):
    """`irees_cuda_plan` of runtime.c."""

    _fields_ = [
        ("entry", _pointer), ("call", _pointer), ("results", ctypes.c_int64),
        ("program", _pointer), ("blocks", _pointer), ("count", ctypes.c_int64),
        ("places", _pointer), ("dims", _pointer), ("rank", ctypes.c_int64),
    ]  # fmt: skip


class _Memory:
    """The allocations of an entry: `slots` has the memory of each, `sizes` their bytes."""

    def __init__(self) -> None:
        self.slots: list[int] = []
        self.sizes: list[int] = []
        self.live: dict[int, int] = {}
        """Address => slot, for live memory except the trap word."""
        self.trap: int | None = None
        """The slot of the trap word."""

    @staticmethod
    def of(log: Sequence[tuple[int | None, int]], trap: tuple[int, Any] | None) -> _Memory | None:
        """
        Replays a log of allocations, one of which may be the trap word; None if planned calls
        would need much more memory.
        """
        found = _Memory()
        unused: dict[int, list[int]] = {}
        now = peak = 0
        for size, pointer in log:
            if size is None:
                slot = found.live.pop(pointer, None)
                if slot is None:
                    return None
                now -= abs(found.sizes[slot])
                unused.setdefault(found.sizes[slot], []).append(slot)
                continue
            if not size:
                return None
            if free := unused.get(size):
                slot = free.pop()
            else:
                slot = len(found.sizes)
                found.sizes.append(size)
            found.slots.append(slot)
            found.live[pointer] = slot
            now += abs(size)
            peak = max(peak, now)
        if trap is not None:
            found.trap = found.live.pop(trap[0], None)
        return found if sum(map(abs, found.sizes)) <= peak + SLACK_BYTES else None

    def blocks(self, slot: int) -> list[int]:
        """Indices of a slot's block addresses in the flat list of (bytes, address) pairs."""
        return [2 * number + 1 for number, used in enumerate(self.slots) if used == slot]

    def last_block(self, slot: int) -> int:
        """The number of the last allocation in a slot."""
        return self.blocks(slot)[-1] // 2


class _Plan:
    """The plan of calls with some shapes."""

    def __init__(
        self, function: Function, device: int, shapes: Sequence[tuple[int, ...]],
        memory: _Memory, frame: Any,
    ):  # fmt: skip
        self.function, self.device, self.memory = function, device, memory
        specs = list(enumerate(function.arguments))
        self.tensors = [
            (
                i,
                shapes[i],
                prod(shapes[i]) * spec.dtype.itemsize,
                _dtypes(spec.accepted),
                spec.is_complex,
            )
            for i, spec in specs
            if isinstance(spec, TensorSpec)
        ]
        self.scalars = [(i, spec) for i, spec in specs if not spec.is_tensor]
        self.dims = list(frame.dims)
        self.result_dims = (ctypes.c_int64 * len(frame.result_dims))(*frame.result_dims)
        slots = [memory.live[frame.results[i]] for i in range(len(function.results))]
        blocks = (ctypes.c_int64 * max(1, len(slots)))(*map(memory.last_block, slots))
        self.result_blocks = blocks
        self.results = [(*self._form(i, slot), memory.blocks(slot)) for i, slot in enumerate(slots)]
        """Shape, strides, dtype and blocks of each result."""
        others = [slot for slot in range(len(memory.sizes)) if slot not in slots]
        self.counters = [
            (-memory.sizes[slot], memory.blocks(slot), slot == memory.trap)
            for slot in others
            if memory.sizes[slot] < 0
        ]
        """Bytes and blocks of all zeroed memory, and whether it is the trap word."""
        self.temporaries: list[tuple[int, list[int]]] = []
        """Offset in the memory of all temporaries, and blocks, of each."""
        self.room = 0
        for slot in others:
            if memory.sizes[slot] > 0:
                self.temporaries.append((self.room, memory.blocks(slot)))
                self.room += -(-memory.sizes[slot] // ALIGNMENT) * ALIGNMENT
        self.frames: list[_Frame] = []

    def _form(self, number: int, slot: int) -> tuple[Any, Any, Any]:
        """Shape, strides and dtype of a result."""
        spec = self.function.results[number]
        first = sum(len(other.shape) for other in self.function.results[:number])
        shape = tuple(self.result_dims[first : first + len(spec.shape)])
        if prod(shape) * spec.dtype.itemsize != self.memory.sizes[slot]:
            raise ValueError("the result is a part of its memory")
        strides = tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))
        return shape, strides, torch_dtype(spec.dtype)

    def addresses(self, arguments: Sequence[Any], args: Any) -> bool:
        """Fills in the addresses of tensors; returns False if one needs the general path."""
        device = self.device
        for number, shape, size, dtypes, is_complex in self.tensors:
            tensor = arguments[number]
            if (
                type(tensor) not in _plain
                or tensor.dtype not in dtypes
                or tensor.shape != shape
                or tensor.get_device() != device
                or not tensor.is_cuda
                or not tensor.is_contiguous()
                or tensor.is_neg()
                or (is_complex and tensor.is_conj())
            ):
                return False
            pointer, stored = tensor.data_ptr(), tensor.untyped_storage().nbytes()
            if stored != size and stored < size + tensor.storage_offset() * tensor.element_size():
                return False
            if not pointer or pointer % DEVICE_ALIGNMENT:
                return False
            args[number] = pointer
        return True


@cache
def _dtypes(accepted: frozenset[Any]) -> tuple[Any, ...]:
    """The PyTorch dtypes of numpy dtypes."""
    return tuple(theirs for theirs, dtype in torch_dtypes().items() if dtype in accepted)


class _Frame:
    """Everything that the native side of a planned call reads and writes, except arrays."""

    def __init__(self, plan: _Plan, device: CudaDevice):
        function, slots = plan.function, plan.memory.slots
        count = len(function.arguments)
        self.args = (ctypes.c_void_p * count)()
        self.pad = Scratchpad(count)
        self.dims = (ctypes.c_int64 * len(plan.dims))(*plan.dims)
        self.blocks = (ctypes.c_int64 * (2 * len(slots)))()
        for number, slot in enumerate(slots):
            self.blocks[2 * number] = plan.memory.sizes[slot]
        results = len(plan.results)
        self.results = (ctypes.c_void_p * results)()
        self.result_dims = (ctypes.c_int64 * len(plan.result_dims))()
        self.trap = (ctypes.c_int64 * 4)()
        at = ctypes.addressof
        self.call = CallStruct(
            device.planned_table, at(self.args), at(self.dims), at(function.constants),
            at(self.results), at(self.result_dims), None, at(self.trap), None,
        )  # fmt: skip
        self.plan = _PlanStruct(
            function.entry, at(self.call), results, device.program_address, at(self.blocks),
            len(slots), at(plan.result_blocks), at(plan.result_dims), function.result_rank,
        )  # fmt: skip
        self.address = at(self.plan)


class PlannedCalls:
    """The plans of one function, whose device is not None and whose results are all tensors."""

    def __init__(self, function: Function, device: CudaDevice, graphs: GraphCalls | None):
        self._function = function
        self._device = device
        self._graphs = graphs
        self._dynamic = sorted({i for i, _ in function.dynamic_dims})
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        self._seen: set[tuple[Any, ...]] = set()
        """Dynamic shapes that occurred once; they are planned at their second call."""
        self._failures = 0
        self._make: Callable[[Any, Any, Any], Any] | None = None
        self._byte: Any = None

    @staticmethod
    def suits(function: Function) -> bool:
        """Whether calls of a function can be planned."""
        return (
            function.tracer is None
            and not function.updates
            and any(spec.is_tensor for spec in function.arguments)
            and all(spec.is_tensor for spec in function.results)
        )

    def run(self, arguments: Sequence[Any]) -> list[Any] | None:
        """Returns the results of a call, None if the general path must run it."""
        if not self._plans:
            return None
        try:
            key = tuple([arguments[i].shape for i in self._dynamic]) if self._dynamic else ()
            if (plan := self._plans.get(key)) is None:
                return None
            frame = plan.frames.pop() if plan.frames else _Frame(plan, self._device)
            if not plan.addresses(arguments, frame.args):
                plan.frames.append(frame)
                return None
            for number, spec in plan.scalars:
                frame.args[number] = spec.bind(arguments[number], frame.pad)[0]
            return self._run(plan, frame)
        except Exception:
            # The general path fails in the same way, with a typed error.
            return None

    def _run(self, plan: _Plan, frame: _Frame) -> list[Any] | None:
        stream, graphs = stream_of(sys.modules["torch"], plan.device), self._graphs
        if graphs is not None and graphs.capturable:
            key = (stream, *frame.args)
            if not graphs.is_new(key):
                plan.frames.append(frame)
                return self._replay(plan, graphs, key)
        return self._launch(plan, frame, stream)

    def _replay(self, plan: _Plan, graphs: GraphCalls, key: tuple[int, ...]) -> list[Any] | None:
        """Replays the graph of a call; None if it must be recorded or is on another device."""
        if self._device.cupy.cuda.runtime.getDevice() != plan.device:
            return None
        return graphs.replay_planned(key, lambda: [self._make(*form) for *form, _ in plan.results])

    def _launch(self, plan: _Plan, frame: _Frame, stream: int) -> list[Any] | None:
        blocks = frame.blocks
        results, counters = [], []
        for shape, strides, dtype, places in plan.results:
            tensor = self._make(shape, strides, dtype)
            results.append(tensor)
            for place in places:
                blocks[place] = tensor.data_ptr()
        if plan.room:
            # Freed after the call; the stream reuses it for later work only.
            temporaries = self._make((plan.room,), (1,), self._byte)
            first = temporaries.data_ptr()
            for offset, places in plan.temporaries:
                for place in places:
                    blocks[place] = first + offset
        for size, places, is_trap in plan.counters:
            taken = self._zeroed(stream, size, is_trap)
            counters.append((stream, size, taken, is_trap))
            for place in places:
                blocks[place] = taken[0]
        status = self._device.call_planned(frame.address, stream)
        plan.frames.append(frame)
        if status:
            if status < 0:
                self._failed()
            return None
        for *key, taken, is_trap in counters:
            # The general path repeats a call that trapped, and raises the error.
            if is_trap and any(taken[1].tolist()):
                return None
            self._device.put_back((key[0], key[1]), taken)
        return results

    def _zeroed(self, stream: int, size: int, is_trap: bool) -> tuple[int, Any]:
        """
        Takes unused zeroed memory of a stream. Raises LookupError for missing counters, which the
        general path creates; creates a missing trap word.
        """
        try:
            return self._device.unused_counters(stream, size)
        except LookupError:
            if not is_trap:
                raise
        word = self._make((size,), (1,), self._byte).zero_()
        return word.data_ptr(), word

    def _failed(self) -> None:
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            self._plans = {}

    def learn(self, shapes: Sequence[tuple[int, ...]], frame: Any, log: Any) -> None:
        """Plans calls like this successful general one, whose results are not read yet."""
        key = tuple(shapes[i] for i in self._dynamic)
        if log is None or key in self._plans or self._failures >= MOST_FAILURES:
            return
        if self._dynamic and self._is_first(key):
            return
        memory = _Memory.of(log, self._device.trap)
        results = [frame.results[i] for i in range(len(self._function.results))]
        # All other live memory belongs to results, one allocation each.
        if memory is None or sorted(memory.live) != sorted(pointer or 0 for pointer in results):
            return
        self._prepare()
        try:
            plan = _Plan(self._function, self._device.number, shapes, memory, frame)
        except Exception:
            return
        if len(self._plans) >= MOST_PLANS:
            self._plans = {}
        self._plans[key] = plan

    def _is_first(self, key: tuple[Any, ...]) -> bool:
        if key in self._seen:
            return False
        if len(self._seen) >= MOST_PLANS:
            self._seen.clear()
        self._seen.add(key)
        return True

    def _prepare(self) -> None:
        """Looks up the PyTorch functions that planned calls use."""
        global _plain
        torch = sys.modules["torch"]
        if self._make is None:
            _plain, self._byte = plain_types(), torch.uint8
            self._make = maker(torch, self._device.number)
