"""
Prints the host program and the launchers of kernels as C.

Each op becomes about one line; the printer makes no optimization decisions. A memref is printed
as a pointer and the C expressions of its sizes and strides. A top-level `scf.forall` of a kernel
becomes a separate function, printed by each backend, and the kernel around it becomes the
launcher that passes the captured values. No name, string or location of the program reaches the
text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import SSAValue

from irees.backends.common import print_control, print_memory, print_vector  # noqa: F401
from irees.backends.common.print_dispatch import unpack_scalar
from irees.backends.common.printer import Buffer, Printer
from irees.backends.common.types import scalar


def _take_buffer(p: Printer, argument: SSAValue, source: str, sizes: Iterator[str]) -> None:
    """Names a buffer argument and its dynamic sizes."""
    kind = argument.type
    assert isinstance(kind, MemRefType)
    pointer, element = p.fresh("a"), scalar(kind.element_type)
    p.line(f"{element} *const {pointer} = ({element} *){source};")
    known = [
        p.hold(next(sizes)) if size == DYNAMIC_INDEX else str(size) for size in kind.get_shape()
    ]
    p.buffers[argument] = Buffer(pointer, known, p.contiguous_strides(known))


def _numbered(name: str) -> Iterator[str]:
    return (f"{name}[{number}]" for number in count())


def launcher(p: Printer, function: func.FuncOp, name: str) -> str:
    """Prints the C of an executable's function; its parallel loops are in `p.functions`."""
    p.prefix = name
    scalars, pointers = _numbered("scalars"), _numbered("buffers")
    for argument in function.body.block.args:
        if isinstance(argument.type, MemRefType):
            _take_buffer(p, argument, next(pointers), scalars)
        else:
            value = p.fresh("a")
            p.line(unpack_scalar(scalar(argument.type), value, next(scalars)))
            p.names[argument] = value
    p.block(function.body.block)
    text = [
        f"int32_t {name}(const irees_runtime *rt, void *const *buffers, "
        "const int64_t *scalars, int32_t *trap) {",
        "  int32_t status = 0;",
        *_owned(p),
        *p.lines,
        "  goto done;",
        "done:",
        *_release(p, []),
        "  (void)buffers; (void)scalars; (void)trap; (void)rt;",
        "  return status;",
        "}",
    ]
    return "\n".join(text) + "\n"


def _owned(p: Printer) -> list[str]:
    return [f"  void *owned[{p.allocations}] = {{0}};"] if p.allocations else []


def entry(p: Printer, function: func.FuncOp, number: int) -> str:
    """Prints the C entry of a public function of the host program."""
    sizes = _numbered("call->arg_dims")
    for argument, source in zip(function.body.block.args, _numbered("call->args"), strict=False):
        if isinstance(argument.type, MemRefType):
            _take_buffer(p, argument, source, sizes)
        else:
            value = p.fresh("a")
            kind = scalar(argument.type)
            p.line(f"const {kind} {value} = *(const {kind} *){source};")
            p.names[argument] = value
    p.block(function.body.block)
    terminator = function.body.block.last_op
    assert isinstance(terminator, func.ReturnOp)
    begin, trapped = p.trap_word()
    # A failed call must not set results: the caller would free them a second time.
    for line in [*trapped, "if (status) goto done;"] if trapped else ():
        p.line(line)
    position = 0
    returned = 0
    for index, value in enumerate(terminator.operands):
        if isinstance(value.type, MemRefType):
            base = p.buffer(value)
            p.line(f"result_{returned} = call->results[{index}] = {base.pointer};")
            returned += 1
            for size in base.sizes:
                p.line(f"call->result_dims[{position}] = {size};")
                position += 1
        else:
            kind = scalar(value.type)
            p.line(
                f"memcpy(&call->result_scalars[{2 * index}], "
                f"&({kind}){{{p.name(value)}}}, sizeof({kind}));"
            )
            p.line(f"call->results[{index}] = &call->result_scalars[{2 * index}];")
    keep = [f"result_{i}" for i in range(returned)]
    text = [
        '__attribute__((visibility("default")))',
        f"int32_t irees_entry_{number}(const irees_call *call) {{",
        "  const irees_runtime *const rt = call->rt;",
        "  int32_t status = 0;",
        *(f"  void *{k} = NULL;" for k in keep),
        *_owned(p),
        *begin,
        *p.lines,
        "  goto done;",
        "done:",
        *(f"  {line}" for line in trapped),
        *_release(p, keep),
        "  (void)rt; (void)trap;",
        "  return status;",
        "}",
    ]
    return "\n".join(text) + "\n"


def _release(p: Printer, kept: Sequence[str]) -> list[str]:
    if not p.allocations:
        return []
    others = " && ".join(f"owned[i_] != {k}" for k in kept) or "1"
    return [
        f"  for (int i_ = 0; i_ < {p.allocations}; i_++)",
        f"    if (owned[i_] && (status || ({others}))) rt->free(owned[i_]);",
    ]
