"""Prints memory ops as C: allocation, views, loads and stores, copies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr
from xdsl.ir import Operation, SSAValue

from irees.backends.common.printer import OK_OR_FAIL, Buffer, Printer, handles, is_literal, times
from irees.backends.common.types import is_bool, scalar, size_of
from irees.dialects.upstream.memref import PrefetchOp
from irees.transforms.utils.shapes import constant_value


@handles("memref.load")
def _load(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.LoadOp)
    base = p.buffer(op.memref)
    text = p.load_element(base, [p.name(i) for i in op.indices])
    p.define(op.res, f"{text} != 0" if is_bool(op.res.type) else text)


@handles("memref.store")
def _store(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.StoreOp)
    base = p.buffer(op.memref)
    p.line(f"{p.load_element(base, [p.name(i) for i in op.indices])} = {p.name(op.value)};")


@handles("memref.prefetch")
def _prefetch(p: Printer, op: Operation) -> None:
    assert isinstance(op, PrefetchOp)
    if op.isDataCache.value.data:
        place = p.address(p.buffer(op.memref), [p.name(i) for i in op.indices])
        hints = f"{int(bool(op.isWrite.value.data))}, {op.localityHint.value.data}"
        p.line(f"IREES_PREFETCH({place}, {hints});")


@handles("memref.dim")
def _dim(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.DimOp)
    index = p.name(op.index)
    p.names[op.result] = p.buffer(op.source).sizes[int(index)]


def _sizes(p: Printer, kind: MemRefType, dynamic: Sequence[SSAValue]) -> list[str]:
    # The launcher computes scratch sizes, but constants of the workgroup have no name there.
    known = (constant_value(size) for size in dynamic)
    values = (p.name(v) if n is None else str(n) for v, n in zip(dynamic, known, strict=True))
    return [next(values) if s == DYNAMIC_INDEX else str(s) for s in kind.get_shape()]


def buffer_bytes(p: Printer, kind: MemRefType, sizes: Sequence[str]) -> str:
    """The C expression of the size in bytes of a buffer with these dims."""
    literals = [s for s in sizes if is_literal(s)]
    total = str(prod(map(int, literals)) * size_of(kind.element_type))
    for size in sizes:
        if not is_literal(size):
            total = f"irees_bytes({total}, {size})"
    return total


def place_scratch(p: Printer, parts: Sequence[tuple[str, str]], line: int) -> list[str]:
    """
    Returns the C of the offset of each part of scratch memory, followed by the total size.

    `parts` are names and sizes in bytes; each size is rounded up to a multiple of `line`. The
    total saturates at 2^60, which no allocation satisfies.
    """
    places = ["0"]
    for _, size in parts:
        if is_literal(places[-1]) and is_literal(size):
            places.append(str(int(places[-1]) + (int(size) + line - 1) // line * line))
        else:
            places.append(p.hold(f"irees_after({places[-1]}, {size}, {line})"))
    return places


def scratch_buffer(p: Printer, op: memref.AllocOp) -> None:
    """Binds an allocation to a part of the workgroup's scratch memory, sized by the launcher."""
    kind, outer = op.memref.type, p.outer
    assert isinstance(kind, MemRefType)
    assert outer is not None
    element_type = scalar(kind.element_type)
    sizes = _sizes(p, kind, op.dynamic_sizes)
    pointer, offset = p.fresh("p"), p.fresh("s")
    p.scratch.append((offset, buffer_bytes(outer, kind, _sizes(outer, kind, op.dynamic_sizes))))
    p.line(f"{element_type} *const {pointer} = ({element_type} *)((char *)scratch + {offset});")
    p.bind_buffer(op.memref, pointer, sizes)


@handles("memref.alloc")
def _alloc(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.AllocOp)
    if p.in_workgroup:
        scratch_buffer(p, op)
        return
    kind = op.memref.type
    assert isinstance(kind, MemRefType)
    sizes = _sizes(p, kind, op.dynamic_sizes)
    pointer = p.fresh("p")
    p.line(
        f"{scalar(kind.element_type)} *const {pointer} = rt->alloc({buffer_bytes(p, kind, sizes)});"
    )
    p.line(f"if (!{pointer}) {{ status = {OK_OR_FAIL}; goto done; }}")
    p.line(f"owned[{p.allocations}] = {pointer};")
    p.scopes[-1].append((pointer, p.allocations))
    p.allocations += 1
    p.bind_buffer(op.memref, pointer, sizes)


@handles("memref.alloca")
def _alloca(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.AllocaOp)
    kind = op.memref.type
    assert isinstance(kind, MemRefType)
    sizes = [str(s) for s in kind.get_shape()]
    count = "1"
    for size in sizes:
        count = times(count, size)
    pointer = p.fresh("p")
    p.line(f"{scalar(kind.element_type)} {pointer}[{count}] __attribute__((aligned(64)));")
    p.buffers[op.memref] = Buffer(pointer, sizes, p.contiguous_strides(sizes))


@handles("memref.dealloc")
def _dealloc(p: Printer, op: Operation) -> None:
    """Prints nothing: the function frees all its allocations at its end."""


@handles("memref.get_global")
def _get_global(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.GetGlobalOp)
    kind = op.memref.type
    assert isinstance(kind, MemRefType)
    number = p.unit.constants[op.name_.string_value()]
    pointer = p.fresh("p")
    element_type = scalar(kind.element_type)
    p.line(f"{element_type} *const {pointer} = ({element_type} *)call->constants[{number}];")
    sizes = [str(s) for s in kind.get_shape()]
    p.buffers[op.memref] = Buffer(pointer, sizes, p.contiguous_strides(sizes))


def mixed(p: Printer, static: Sequence[int], dynamic: Sequence[SSAValue]) -> list[str]:
    """The C of mixed sizes: literals for static ones, names for dynamic ones."""
    values = iter(dynamic)
    return [p.name(next(values)) if s == DYNAMIC_INDEX else str(s) for s in static]


def upper_operands(op: Operation) -> Sequence[SSAValue]:
    """The dynamic upper bounds of an `scf.forall`."""
    lower, upper, *_ = op.properties["operandSegmentSizes"].get_values()
    return op.operands[lower : lower + upper]


@handles("memref.subview")
def _subview(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.SubviewOp)
    base = p.buffer(op.source)
    offsets = mixed(p, op.static_offsets.get_values(), op.offsets)
    sizes = mixed(p, op.static_sizes.get_values(), op.sizes)
    strides = mixed(p, op.static_strides.get_values(), op.strides)
    kind = op.result.type
    assert isinstance(kind, MemRefType)
    kept = _kept(op, kind)
    p.buffers[op.result] = Buffer(
        _pointer(p, kind, p.address(base, offsets)),
        [sizes[d] for d in kept],
        [p.hold(times(base.strides[d], strides[d])) for d in kept],
    )


def _pointer(p: Printer, kind: MemRefType, text: str) -> str:
    if text.isidentifier():
        return text
    pointer = p.fresh("p")
    p.line(f"{scalar(kind.element_type)} *const {pointer} = {text};")
    return pointer


def _kept(op: memref.SubviewOp, kind: MemRefType) -> list[int]:
    """Source dims that survive rank reduction; unit dims are matched by size, first fit."""
    sizes = list(op.static_sizes.get_values())
    shape = list(kind.get_shape())
    missing = len(sizes) - len(shape)
    kept: list[int] = []
    for position, size in enumerate(sizes):
        wanted = shape[len(kept)] if len(kept) < len(shape) else None
        if missing and size == 1 and (wanted != 1 or wanted is None):
            missing -= 1
            continue
        if wanted is None:
            missing -= 1
            continue
        if missing and size == 1 and len(sizes) - position > len(shape) - len(kept):
            missing -= 1
            continue
        kept.append(position)
    return kept


@handles("memref.reinterpret_cast")
def _reinterpret(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.ReinterpretCastOp)
    base = p.buffer(op.source)
    offsets = mixed(p, op.static_offsets.get_values(), op.offsets)
    kind = op.result.type
    assert isinstance(kind, MemRefType)
    text = base.pointer if offsets[0] == "0" else f"{base.pointer} + {offsets[0]}"
    p.buffers[op.result] = Buffer(
        _pointer(p, kind, text),
        mixed(p, op.static_sizes.get_values(), op.sizes),
        mixed(p, op.static_strides.get_values(), op.strides),
    )


@handles("memref.collapse_shape")
def _collapse(p: Printer, op: Operation) -> None:
    """The dims of a group are contiguous, so the last one has the stride of all."""
    assert isinstance(op, memref.CollapseShapeOp)
    base = p.buffer(op.src)
    groups = [[int(d.value.data) for d in group] for group in op.reassociation]
    p.buffers[op.result] = Buffer(
        base.pointer,
        [reduce(times, (base.sizes[d] for d in group)) for group in groups],
        [base.strides[group[-1]] for group in groups],
    )


@handles("memref.extract_strided_metadata")
def _metadata(p: Printer, op: Operation) -> None:
    """The C pointer already includes the offset, so the offset result is 0."""
    base = p.buffer(op.operands[0])
    rank = len(base.sizes)
    p.buffers[op.results[0]] = Buffer(base.pointer, [], [])
    p.names[op.results[1]] = "0"
    for result, text in zip(op.results[2:], [*base.sizes, *base.strides], strict=True):
        p.names[result] = text
    assert rank == len(base.strides)


@handles("memref.extract_aligned_pointer_as_index")
def _address(p: Printer, op: Operation) -> None:
    """The address of the view's first element: the C pointer already includes the offset."""
    p.define(op.results[0], f"(int64_t)({p.buffer(op.operands[0]).pointer})")


@handles("memref.view")
def _view(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.ViewOp)
    base = p.buffer(op.operands[0])
    kind = op.results[0].type
    assert isinstance(kind, MemRefType)
    element_type = scalar(kind.element_type)
    pointer = p.fresh("p")
    p.line(
        f"{element_type} *const {pointer} = "
        f"({element_type} *)({base.pointer} + {p.name(op.operands[1])});"
    )
    sizes = _sizes(p, kind, op.operands[2:])
    p.buffers[op.results[0]] = Buffer(pointer, sizes, p.contiguous_strides(sizes))


@handles("irees.view_bytes")
def _bytes(p: Printer, op: Operation) -> None:
    kind = op.results[0].type
    assert isinstance(kind, MemRefType)
    base = p.buffer(op.operands[0])
    pointer = _pointer(p, kind, f"({scalar(kind.element_type)} *)({base.pointer})")
    p.buffers[op.results[0]] = Buffer(pointer, base.sizes, base.strides)


@handles("irees.view_parts")
def _parts(p: Printer, op: Operation) -> None:
    """The same address: the C types of complex numbers are pairs of their parts."""
    kind = op.results[0].type
    assert isinstance(kind, MemRefType)
    base = p.buffer(op.operands[0])
    sizes = [*base.sizes, "2"][: kind.get_num_dims()]
    pointer = _pointer(p, kind, f"({scalar(kind.element_type)} *)({base.pointer})")
    p.buffers[op.results[0]] = Buffer(pointer, sizes, p.contiguous_strides(sizes))


@handles("memref.cast")
def _cast(p: Printer, op: Operation) -> None:
    p.buffers[op.results[0]] = p.buffer(op.operands[0])


@handles("memref.copy")
def _copy(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.CopyOp)
    source, target = p.buffer(op.source), p.buffer(op.destination)
    kind = op.source.type
    assert isinstance(kind, MemRefType)
    if isinstance(kind.layout, NoneAttr) and isinstance(op.destination.type.layout, NoneAttr):
        p.line(
            f"memcpy({target.pointer}, {source.pointer}, "
            f"(size_t)({buffer_bytes(p, kind, source.sizes)}));"
        )
        return
    counters = [p.fresh("i") for _ in source.sizes]
    for counter, size in zip(counters, source.sizes, strict=True):
        p.line(f"for (int64_t {counter} = 0; {counter} < {size}; {counter}++)")
    p.line(f"  {p.load_element(target, counters)} = {p.load_element(source, counters)};")
