"""Prints the host's dispatches as C, and how they pass scalar operands."""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Operation

from irees.backends.common.printer import Printer, handles
from irees.backends.common.types import scalar
from irees.dialects.stream import CmdDispatchOp, CmdTraceOp

BY_BITS = ("float", "double", "irees_f16", "irees_c64")
"""Non-integer C types that fit into the 64 bits of a scalar operand: passed by bit pattern."""

BY_ADDRESS = ("irees_c128",)
"""C types that do not fit into 64 bits: passed by address, valid until the callee returns."""


def pack_scalar(c_type: str, text: str) -> str:
    """The C expression that packs a scalar operand into 64 bits, in the block of the call."""
    if c_type in BY_ADDRESS:
        return f"(int64_t)(intptr_t)&({c_type}){{{text}}}"
    if c_type in BY_BITS:
        return (
            f"__extension__({{ int64_t b_ = 0; {c_type} f_ = {text}; "
            "memcpy(&b_, &f_, sizeof f_); b_; })"
        )
    return text


def unpack_scalar(c_type: str, name: str, source: str) -> str:
    """The C statement that unpacks a scalar operand from its 64 bits."""
    if c_type in BY_BITS:
        return f"{c_type} {name}; memcpy(&{name}, &{source}, sizeof {name});"
    if c_type in BY_ADDRESS:
        return f"const {c_type} {name} = *(const {c_type} *)(intptr_t){source};"
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
            scalars.append(pack_scalar(scalar(argument.type), p.name(argument)))
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
    """Passes the buffers and all their sizes to the caller; types are in the manifest."""
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
