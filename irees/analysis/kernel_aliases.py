"""
Finds the buffers of a kernel whose pointers may be `__restrict__`.

A kernel is an `scf.forall` in an executable's function. Its buffers are the function's arguments,
bound by each dispatch of the host program, and the function's allocations. Compilers move loads by
a `__restrict__` pointer above stores to other buffers, and read unwritten buffers through a
non-coherent cache. So a buffer is exclusive if

* the kernel only reads it or only writes it: threads that communicate through memory need their
  accesses in order, and a barrier does not order accesses by `__restrict__` pointers;
* it aliases no other buffer of the kernel, if either of the two is written.

Two arguments do not alias if their operands do not at any dispatch. A buffer allocated by the host
program aliases no other allocation. Arena views in one dispatch are live together, so
`irees-plan-arena` assigned disjoint byte ranges; this is checked for constant offsets. Program
arguments and mutable globals may alias each other: callers may pass an array twice. An operand
updated in place (`tied_operands`) is one argument, which the kernel reads and writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from irees.analysis.element_sizes import item_bytes
from irees.dialects.irees import CountersOp
from irees.dialects.storage import is_allocation, is_dim, is_slot, is_view, loaded, root, stored
from irees.dialects.stream import CmdDispatchOp

READ, WRITE = frozenset({"read"}), frozenset({"write"})

_COPIES: Mapping[str, tuple[frozenset[str], ...]] = {
    "memref.copy": (READ, WRITE),
    "nvgpu.device_async_copy": (WRITE, READ),
}
"""Effects on each memref operand of ops that copy from one to the other."""


def _effects_on(op: Operation, buffers: Sequence[SSAValue]) -> Sequence[frozenset[str]]:
    """Returns the effects on each buffer among the operands; an unknown op has all on each."""
    if is_dim(op):
        return (frozenset(),)
    if loaded(op) is not None:
        return (READ,)
    if stored(op) is not None:
        return (WRITE,)
    return _COPIES.get(op.name, (READ | WRITE,) * len(buffers))


def effects_of(loop: Operation) -> dict[SSAValue, frozenset[str]]:
    """Returns the effects of a kernel on each buffer allocated outside, by root of its views."""
    found: dict[SSAValue, frozenset[str]] = {}
    for op in loop.walk():
        if is_view(op):
            continue
        buffers = [v for v in op.operands if isinstance(v.type, MemRefType)]
        known = _effects_on(op, buffers)
        for buffer, effect in zip(buffers, known, strict=True):
            source = root(buffer)
            if not (is_allocation(source.owner) and loop.is_ancestor(source.owner)):
                found[source] = found.get(source, frozenset()) | effect
    return found


def exclusive_buffers(loop: Operation, dispatches: Sequence[CmdDispatchOp]) -> set[SSAValue]:
    """Returns the roots of exclusive buffers; `dispatches` are all dispatches of the function."""
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
    """Returns the dispatches in a module's functions, by executable name."""
    found: defaultdict[str, list[CmdDispatchOp]] = defaultdict(list)
    for function in (op for op in module.body.block.ops if isinstance(op, func.FuncOp)):
        for op in function.walk():
            if isinstance(op, CmdDispatchOp):
                found[op.entry_point.root_reference.data].append(op)
    return found


def _are_apart(a: SSAValue, b: SSAValue, dispatches: Sequence[CmdDispatchOp]) -> bool:
    """Whether two buffers of a function never alias."""
    if not (_is_known(a) and _is_known(b)):
        return False
    if not (isinstance(a, BlockArgument) and isinstance(b, BlockArgument)):
        return True
    return bool(dispatches) and all(
        _operands_are_apart(op.arguments[a.index], op.arguments[b.index]) for op in dispatches
    )


def _is_known(buffer: SSAValue) -> bool:
    """Whether a buffer is an argument or an allocation of the executable's function."""
    if isinstance(buffer, BlockArgument):
        return isinstance(buffer.block.parent_op(), func.FuncOp)
    return is_allocation(buffer.owner) or isinstance(buffer.owner, CountersOp)


def _operands_are_apart(a: SSAValue, b: SSAValue) -> bool:
    """Whether two operands of a dispatch never alias."""
    a, b = (_placed(v) for v in (a, b))
    if root(a) is root(b):
        slots = a is not b and is_slot(a.owner)
        return slots and is_slot(b.owner) and _ranges_are_apart(a.owner, b.owner)
    allocated = any(is_allocation(v.owner) or is_slot(v.owner) for v in (a, b))
    return allocated and _is_fixed(a) and _is_fixed(b)


def _placed(buffer: SSAValue) -> SSAValue:
    """Returns the arena view, allocation or argument that a chain of views is based on."""
    while is_view(buffer.owner) and not is_slot(buffer.owner):
        buffer = buffer.owner.operands[0]
    return buffer


def _is_fixed(buffer: SSAValue) -> bool:
    """Whether the origin of a buffer is known; loop-carried buffers may be any."""
    if isinstance(buffer, BlockArgument):
        return isinstance(buffer.block.parent_op(), func.FuncOp)
    made = buffer.owner
    return is_allocation(made) or is_slot(made) or isinstance(made, memref.GetGlobalOp)


def _ranges_are_apart(a: memref.ViewOp, b: memref.ViewOp) -> bool:
    """Whether two arena views are disjoint; trusts the plan if a range is not constant."""
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
