"""
The buffers of a kernel whose pointers may be `__restrict__`: no other reaches their bytes.

A kernel is an `scf.forall` of an executable's function. It sees buffers of the function: arguments,
which each dispatch of the host program binds, and what the function allocates. A compiler that is
told that a pointer is `__restrict__` moves its loads above stores to other buffers, and keeps what
nobody writes in a cache that is not coherent. So a buffer is exclusive if

* all threads only read it, or only write it: what they tell each other through memory must stay in
  order, and a barrier orders no accesses by pointers that are exclusive;
* it shares no byte with any other buffer of the kernel, if one of the two is written.

Two arguments share no byte if at every dispatch their operands do not. A buffer that the host
program allocates is not part of any other; views of the arena at one dispatch are alive at the same
time, so `irees-plan-arena` gave them different bytes, which is checked where offsets are constants.
Arguments of the program and mutable globals may share bytes with each other: callers may pass an
array twice. What is updated in place (`tied_operands`) is one argument that is read and written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from irees.analysis.distribution import VIEWS, root
from irees.analysis.element_sizes import item_bytes
from irees.dialects.irees import CountersOp
from irees.dialects.stream import CmdDispatchOp

OWN = memref.AllocOp | memref.AllocaOp

READ, WRITE = frozenset({"read"}), frozenset({"write"})

_OPERANDS: Mapping[str, tuple[frozenset[str], ...]] = {
    "memref.load": (READ,),
    "vector.load": (READ,),
    "memref.store": (WRITE,),
    "vector.store": (WRITE,),
    "memref.dim": (frozenset(),),
    "memref.copy": (READ, WRITE),
    "nvgpu.device_async_copy": (WRITE, READ),
}
"""What ops do with their operands that are memrefs, in order; others do both with all."""


def effects_of(loop: Operation) -> dict[SSAValue, frozenset[str]]:
    """What a kernel does with each buffer that it does not allocate, by the root of its views."""
    found: dict[SSAValue, frozenset[str]] = {}
    for op in loop.walk():
        if isinstance(op, VIEWS):
            continue
        buffers = [v for v in op.operands if isinstance(v.type, MemRefType)]
        known = _OPERANDS.get(op.name, (READ | WRITE,) * len(buffers))
        for buffer, effect in zip(buffers, known, strict=True):
            source = root(buffer)
            if not (isinstance(source.owner, OWN) and loop.is_ancestor(source.owner)):
                found[source] = found.get(source, frozenset()) | effect
    return found


def exclusive_buffers(loop: Operation, dispatches: Sequence[CmdDispatchOp]) -> set[SSAValue]:
    """The roots of those buffers of a kernel; `dispatches` are all that run its function."""
    effects = effects_of(loop)
    found: set[SSAValue] = set()
    for buffer, effect in effects.items():
        if len(effect) == 1 and all(
            other is buffer
            or not (effect | theirs) & WRITE
            or _are_apart(buffer, other, dispatches)
            for other, theirs in effects.items()
        ):
            found.add(buffer)
    return found


def dispatches_of(module: ModuleOp) -> dict[str, list[CmdDispatchOp]]:
    """The dispatches of a module's functions, by the name of the executable."""
    found: defaultdict[str, list[CmdDispatchOp]] = defaultdict(list)
    for function in (op for op in module.body.block.ops if isinstance(op, func.FuncOp)):
        for op in function.walk():
            if isinstance(op, CmdDispatchOp):
                found[op.entry_point.root_reference.data].append(op)
    return found


def _are_apart(a: SSAValue, b: SSAValue, dispatches: Sequence[CmdDispatchOp]) -> bool:
    """Whether two buffers of a function share no byte."""
    if not (_is_known(a) and _is_known(b)):
        return False
    if not (isinstance(a, BlockArgument) and isinstance(b, BlockArgument)):
        return True
    return bool(dispatches) and all(
        _operands_are_apart(op.arguments[a.index], op.arguments[b.index]) for op in dispatches
    )


def _is_known(buffer: SSAValue) -> bool:
    """Whether a buffer is an argument of the executable's function, or memory of its own."""
    if isinstance(buffer, BlockArgument):
        return isinstance(buffer.block.parent_op(), func.FuncOp)
    return isinstance(buffer.owner, memref.AllocOp | CountersOp)


def _operands_are_apart(a: SSAValue, b: SSAValue) -> bool:
    """Whether two operands of a dispatch share no byte."""
    a, b = (_placed(v) for v in (a, b))
    if root(a) is root(b):
        views = a is not b and isinstance(a.owner, memref.ViewOp)
        return views and isinstance(b.owner, memref.ViewOp) and _ranges_are_apart(a.owner, b.owner)
    allocated = any(isinstance(v.owner, memref.AllocOp | memref.ViewOp) for v in (a, b))
    return allocated and _is_fixed(a) and _is_fixed(b)


def _placed(buffer: SSAValue) -> SSAValue:
    """The view of the arena, the allocation or the argument that a chain of views looks at."""
    while isinstance(buffer.owner, VIEWS) and not isinstance(buffer.owner, memref.ViewOp):
        buffer = buffer.owner.operands[0]
    return buffer


def _is_fixed(buffer: SSAValue) -> bool:
    """Whether it is known where a buffer comes from: what a loop carries may be any."""
    if isinstance(buffer, BlockArgument):
        return isinstance(buffer.block.parent_op(), func.FuncOp)
    return isinstance(buffer.owner, memref.AllocOp | memref.ViewOp | memref.GetGlobalOp)


def _ranges_are_apart(a: memref.ViewOp, b: memref.ViewOp) -> bool:
    """Whether two views of the arena share no byte; what is not constant is as it was planned."""
    ranges: list[tuple[int, int]] = []
    for view in (a, b):
        kind, offset = view.results[0].type, view.byte_shift.owner
        assert isinstance(kind, MemRefType)
        if DYNAMIC_INDEX in kind.get_shape() or not isinstance(offset, arith.ConstantOp):
            return True
        assert isinstance(offset.value, IntegerAttr)
        first = offset.value.value.data
        ranges.append((first, first + prod(kind.get_shape()) * item_bytes(kind.element_type)))
    (a_first, a_end), (b_first, b_end) = ranges
    return a_end <= b_first or b_end <= a_first
