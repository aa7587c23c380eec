"""Prints vector ops as C: loads, stores, broadcasts, lanes, reductions."""

from __future__ import annotations

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType, i8, i32
from xdsl.ir import Operation

from irees.backends.common.emit_ops import element, lanes
from irees.backends.common.print_memory import mixed
from irees.backends.common.printer import Printer, handles
from irees.backends.common.types import (
    is_bool,
    is_float,
    scalar,
    short,
    size_of,
    vector_name,
    widths_between,
)
from irees.dialects.irees import LookupOp

STREAMED = (16, 32, 64)
"""Vector sizes in bytes that have a non-temporal store on some target."""

MASK_STEPS = widths_between(i8, i32)
"""Widths between a mask in memory and one in registers."""


def _lane_name(p: Printer, kind: VectorType) -> str:
    """The C vector type of the in-memory form; masks are bytes in memory."""
    if is_bool(kind.element_type):
        return p.expressions.vector(f"v{lanes(kind)}i8")
    return p.expressions.type(kind)


@handles("vector.load")
def _vector_load(p: Printer, op: Operation) -> None:
    assert isinstance(op, vector.LoadOp)
    kind = op.result.type
    assert isinstance(kind, VectorType)
    place = p.address(p.buffer(op.base), [p.name(i) for i in op.indices])
    text = f"{_lane_name(p, kind)}_load({place})"
    if is_bool(kind.element_type):
        text = f"({text} != {_lane_name(p, kind)}_splat(0))"
        text = p.expressions.widened(text, (8, *MASK_STEPS, 32), lanes(kind))
    p.define(op.result, text)


@handles("vector.store")
def _vector_store(p: Printer, op: Operation) -> None:
    assert isinstance(op, vector.StoreOp)
    kind = op.vector.type
    assert isinstance(kind, VectorType)
    value = p.name(op.vector)
    lane = _lane_name(p, kind)
    if is_bool(kind.element_type):
        value = p.expressions.converted(f"-{value}", MASK_STEPS, lanes(kind))
        value = f"IREES_CONVERT({lane}, {value})"
    place = p.address(p.buffer(op.base), [p.name(i) for i in op.indices])
    count = lanes(kind) * (1 if is_bool(kind.element_type) else size_of(kind.element_type))
    streamed = op.nontemporal is not None and bool(op.nontemporal.value.data)
    if streamed and p.expressions.streams and count in STREAMED:
        p.line(f"IREES_STREAM_{count}({lane}, {place}, {value});")
        return
    p.line(f"{lane}_store({place}, {value});")


@handles("vector.broadcast")
def _broadcast(p: Printer, op: Operation) -> None:
    assert isinstance(op, vector.BroadcastOp)
    kind = op.results[0].type
    source = p.name(op.operands[0])
    if is_bool(element(kind)):
        source = f"-(int32_t){source}"
    p.define(op.results[0], f"{p.expressions.type(kind)}_splat({source})")


@handles("vector.step")
def _step(p: Printer, op: Operation) -> None:
    p.define(op.results[0], f"{p.expressions.type(op.results[0].type)}_step()")


@handles("vector.fma")
def _fma(p: Printer, op: Operation) -> None:
    a, b, c = (p.name(o) for o in op.operands)
    p.define(op.results[0], f"{a} * {b} + {c}")


@handles("irees.lookup")
def _lookup(p: Printer, op: Operation) -> None:
    assert isinstance(op, LookupOp)
    table, number = p.name(op.table), p.name(op.number)
    kind = op.result.type
    if not isinstance(kind, VectorType):
        # An array, so that the C compiler can vectorize the loop.
        array = p.fresh()
        lanes_of_table = ", ".join(f"{table}[{i}]" for i in range(16))
        p.line(f"const float {array}[] = {{{lanes_of_table}}};")
        p.define(op.result, f"{array}[(uint32_t){number} & 15]")
        return
    macro = "IREES_LOOKUP_16(" if lanes(kind) == 16 else f"IREES_LOOKUP({lanes(kind)}, "
    p.define(op.result, f"{macro}{p.expressions.type(kind)}, {table}, {number})")


@handles("irees.dot", "x86vector.avx512.dot")
def _dot(p: Printer, op: Operation) -> None:
    names = [p.name(o) for o in op.operands]
    kinds = [p.expressions.type(o.type) for o in op.operands]
    p.expressions.dots = True
    p.define(op.results[0], f"irees_dot_{kinds[1]}({', '.join(names)})")


@handles("vector.bitcast")
def _bitcast(p: Printer, op: Operation) -> None:
    p.define(op.results[0], f"({p.expressions.type(op.results[0].type)}){p.name(op.operands[0])}")


@handles("vector.extract")
def _extract(p: Printer, op: Operation) -> None:
    assert isinstance(op, vector.ExtractOp)
    position = mixed(p, op.static_position.get_values(), op.dynamic_position)
    lane = f"{p.name(op.vector)}[{position[0]}]"
    p.define(op.result, f"{lane} & 1" if is_bool(element(op.vector.type)) else lane)


@handles("vector.insert")
def _insert(p: Printer, op: Operation) -> None:
    assert isinstance(op, vector.InsertOp)
    position = mixed(p, op.static_position.get_values(), op.dynamic_position)
    name = p.fresh()
    p.line(f"{p.expressions.type(op.result.type)} {name} = {p.name(op.dest)};")
    minus = "-" if is_bool(element(op.dest.type)) else ""
    p.line(f"{name}[{position[0]}] = {minus}{p.name(op.source)};")
    p.names[op.result] = name


@handles("vector.shuffle")
def _shuffle(p: Printer, op: Operation) -> None:
    assert isinstance(op, vector.ShuffleOp)
    kind = op.result.type
    assert isinstance(kind, VectorType)
    a, b, mask = p.name(op.v1), p.name(op.v2), op.mask.get_values()
    count = lanes(op.v1.type)
    if not count == lanes(op.v2.type) == len(mask):
        parts = ", ".join(f"{a}[{m}]" if m < count else f"{b}[{m - count}]" for m in mask)
        p.define(op.result, f"IREES_LITERAL({p.expressions.type(kind)}, {parts})")
        return
    bits = 32 if is_bool(kind.element_type) else 8 * size_of(kind.element_type)
    indices = p.expressions.vector(vector_name(f"i{bits}", count))
    p.define(op.result, f"IREES_SHUFFLE({indices}, {a}, {b}, {', '.join(map(str, mask))})")


REDUCTIONS = {
    "add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor",
    "maxsi": "max", "minsi": "min", "maxui": "max", "minui": "min",
}  # fmt: skip

TESTS = {"and": "IREES_ALL", "or": "IREES_ANY"}
"""Reductions of masks that are one test of all lanes."""


@handles("vector.reduction")
def _reduction(p: Printer, op: Operation) -> None:
    kind = op.operands[0].type
    assert isinstance(kind, VectorType)
    flag = str(op.properties["kind"].data.value)
    lane = kind.element_type
    c_type = scalar(lane)
    source = p.name(op.operands[0])
    if is_bool(lane) and flag in TESTS:
        p.define(op.results[0], f"{TESTS[flag]}({lanes(kind)}, {source})")
        return
    if is_float(lane) and flag in ("maximumf", "minimumf", "maxnumf", "minnumf"):
        function = f"irees_{flag[:-1]}_{short(lane)}"
    else:
        function = f"IREES_OP_{REDUCTIONS[flag]}"
        if flag in ("maxui", "minui"):
            c_type = f"u{c_type}"
    if is_bool(lane):
        # A set lane is -1: right for the signed reductions, negated to 1 for the others.
        source, c_type = source if flag in ("maxsi", "minsi") else f"(-{source})", "int32_t"
    text = f"IREES_TREE({c_type}, {lanes(kind)}, {function}, {source})"
    p.define(op.results[0], f"{text} & 1" if is_bool(lane) else text)
