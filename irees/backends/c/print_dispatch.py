"""C of parallel loops at the top of a kernel, and of dispatches from the host."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Operation, SSAValue

from irees.backends.c.print_memory import mixed
from irees.backends.c.printer import Printer, handles, is_literal, plus, times
from irees.backends.c.types import scalar
from irees.dialects.stream import CmdDispatchOp, CmdTraceOp


def _upper_operands(op: Operation) -> Sequence[SSAValue]:
    lower, upper, *_ = op.properties["operandSegmentSizes"].get_values()
    return op.operands[lower : lower + upper]


@handles("scf.forall")
def _forall(p: Printer, op: Operation) -> None:
    """A parallel loop at the top of a kernel: its body becomes a workgroup function."""
    uppers = mixed(p, op.properties["staticUpperBound"].get_values(), _upper_operands(op))
    body = op.regions[0].block
    inner = Printer(p.unit, p.expressions, p)
    inner.counter = p.counter
    number = sum("_w" in f.split("(")[0] for f in p.functions)
    function = f"{p.prefix}_w{number}"
    places: list[str] = []
    counts = [inner.capture_scalar(u, None) for u in uppers]
    rest = "workgroup"
    for position in reversed(range(len(uppers))):
        place = inner.fresh("i")
        value = rest if position == 0 else f"{rest} % {counts[position]}"
        inner.line(f"const int64_t {place} = {value};")
        if position:
            following = inner.fresh("i")
            inner.line(f"const int64_t {following} = {rest} / {counts[position]};")
            rest = following
        places.append(place)
    for argument, place in zip(body.args, reversed(places), strict=False):
        inner.names[argument] = place
    inner.block(body)
    p.counter = inner.counter
    offset = "0"
    for name, size in inner.scratch:
        inner.captured_scalars.append((offset, "int64_t", name))
        offset = p.hold(
            plus(
                [
                    offset,
                    f"(({size}) + 63) / 64 * 64"
                    if not is_literal(size)
                    else str((int(size) + 63) // 64 * 64),
                ]
            )
        )
    prologue = [
        f"  {t} *const {name} = ({t} *)d->buffers[{i}];"
        for i, (_, t, name) in enumerate(inner.captured_pointers)
    ]
    for i, (_, t, name) in enumerate(inner.captured_scalars):
        prologue.append("  " + unpack_scalar(t, name, f"d->scalars[{i}]"))
    p.functions.append(
        f"static void {function}(const irees_dispatch *d, int64_t workgroup, void *scratch) {{\n"
        + "\n".join([*prologue, *inner.lines, *(["  IREES_FENCE();"] if inner.streams else [])])
        + "\n}\n"
    )
    p.line("{")
    p.depth += 1
    pointers = ", ".join(f"(void *){o}" for o, _, _ in inner.captured_pointers)
    numbers = ", ".join(_pack_scalar(t, o) for o, t, _ in inner.captured_scalars)
    p.line(f"void *buffers_[] = {{{pointers or 'NULL'}}};")
    p.line(f"int64_t scalars_[] = {{{numbers or '0'}}};")
    p.line("const irees_dispatch d_ = {buffers_, scalars_, trap};")
    count = "1"
    for upper in uppers:
        count = times(count, upper)
    p.line(f"rt->parallel(rt->pool, {function}, &d_, {count}, {offset});")
    p.line("if (*trap) { status = *trap; goto done; }")
    p.close()


def _pack_scalar(c_type: str, text: str) -> str:
    if c_type in ("float", "double", "_Float16", "float _Complex"):
        return (
            f"__extension__({{ int64_t b_ = 0; {c_type} f_ = {text}; "
            "memcpy(&b_, &f_, sizeof f_); b_; })"
        )
    return text


def unpack_scalar(c_type: str, name: str, source: str) -> str:
    """C that declares a scalar operand from the 64 bits that carry it."""
    if c_type in ("float", "double", "_Float16", "float _Complex"):
        return f"{c_type} {name}; memcpy(&{name}, &{source}, sizeof {name});"
    return f"const {c_type} {name} = ({c_type}){source};"


@handles("stream.cmd.dispatch")
def _dispatch(p: Printer, op: Operation) -> None:
    assert isinstance(op, CmdDispatchOp)
    pointers: list[str] = []
    scalars: list[str] = []
    for argument in op.arguments:
        if isinstance(argument.type, MemRefType):
            base = p.buffer(argument)
            pointers.append(f"(void *){base.pointer}")
            shape = argument.type.get_shape()
            scalars += [s for s, n in zip(base.sizes, shape, strict=True) if n == DYNAMIC_INDEX]
        else:
            scalars.append(_pack_scalar(scalar(argument.type), p.name(argument)))
    function = p.unit.kernels[op.entry_point.root_reference.data]
    p.line("{")
    p.depth += 1
    p.line(f"void *buffers_[] = {{{', '.join(pointers) or 'NULL'}}};")
    p.line(f"int64_t scalars_[] = {{{', '.join(scalars) or '0'}}};")
    p.line(f"status = {function}(rt, buffers_, scalars_, trap);")
    p.line("if (status) goto done;")
    p.close()


@handles("stream.cmd.trace")
def _trace(p: Printer, op: Operation) -> None:
    """The caller gets the buffers and all their sizes, and knows the rest from the manifest."""
    assert isinstance(op, CmdTraceOp)
    p.unit.traces.append(op)
    buffers = [p.buffer(value) for value in op.values]
    pointers = ", ".join(f"(void *){base.pointer}" for base in buffers) or "NULL"
    sizes = ", ".join(size for base in buffers for size in base.sizes) or "0"
    number = len(p.unit.traces) - 1
    p.line("{")
    p.depth += 1
    p.line(f"void *const values_[] = {{{pointers}}};")
    p.line(f"const int64_t sizes_[] = {{{sizes}}};")
    p.line(f"call->trace({number}, values_, sizes_);")
    p.close()
