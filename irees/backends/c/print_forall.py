"""Prints a kernel's top-level parallel loops as C: a workgroup function, and its call."""

from __future__ import annotations

from xdsl.ir import Operation

from irees.backends.common.print_dispatch import pack_scalar, unpack_scalar
from irees.backends.common.print_memory import mixed, place_scratch, upper_operands
from irees.backends.common.printer import Printer, handles, times

SCRATCH_LINE = 64
"""Alignment of a workgroup's scratch buffers in bytes: enough for the widest vectors."""


@handles("scf.forall")
def _forall(p: Printer, op: Operation) -> None:
    """Prints the body of a top-level parallel loop as a workgroup function, and calls it."""
    uppers = mixed(p, op.properties["staticUpperBound"].get_values(), upper_operands(op))
    body = op.regions[0].block
    inner = Printer(p.unit, p.expressions, p)
    inner.counter = p.counter
    number = sum("_w" in f.split("(")[0] for f in p.functions)
    function = f"{p.prefix}_w{number}"
    counts = [inner.capture_scalar(u, None) for u in uppers]
    places = inner.delinearize("workgroup", counts)
    inner.names.update(zip(body.args, places, strict=True))
    inner.block(body)
    p.counter = inner.counter
    *places, scratch_bytes = place_scratch(p, inner.scratch, SCRATCH_LINE)
    for (name, _), place in zip(inner.scratch, places, strict=True):
        inner.captured_scalars.append((place, "int64_t", name))
    prologue = [
        f"  {t} *const {name} = ({t} *)d->buffers[{i}];"
        for i, (_, t, name) in enumerate(inner.captured_pointers)
    ]
    for i, (_, t, name) in enumerate(inner.captured_scalars):
        prologue.append("  " + unpack_scalar(t, name, f"d->scalars[{i}]"))
    p.functions.append(
        f"static void {function}(const irees_dispatch *d, int64_t workgroup, void *scratch) {{\n"
        + "\n".join([*prologue, *inner.lines])
        + "\n}\n"
    )
    p.line("{")
    p.depth += 1
    pointers = ", ".join(f"(void *){o}" for o, _, _ in inner.captured_pointers)
    numbers = ", ".join(pack_scalar(t, o) for o, t, _ in inner.captured_scalars)
    p.line(f"void *buffers_[] = {{{pointers or 'NULL'}}};")
    p.line(f"int64_t scalars_[] = {{{numbers or '0'}}};")
    p.line("const irees_dispatch d_ = {buffers_, scalars_, trap};")
    count = "1"
    for upper in uppers:
        count = times(count, upper)
    p.line(f"rt->parallel(rt->pool, {function}, &d_, {count}, {scratch_bytes});")
    p.line("if (*trap) { status = *trap; goto done; }")
    p.close()
