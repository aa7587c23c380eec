"""
Prints kernels and the host program as C.

One op, one line or so; nothing is decided here. A memref is printed as a pointer and the
C expressions of its sizes and strides; an `scf.forall` at the top of a kernel becomes a
workgroup function of its own, and the kernel around it a launcher that hands it what it
captures. No name, string or location of the program reaches the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import cf, func, memref, scf, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    MemRefType,
    NoneAttr,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from irees.backends.c.emit_ops import Expressions, element, lanes
from irees.backends.c.types import is_bool, is_float, scalar, short, size_of
from irees.dialects.stream import CmdDispatchOp
from irees.errors import UnsupportedError

OK_OR_FAIL = "IREES_OUT_OF_MEMORY"


@dataclass
class Buffer:
    """A memref in C: the pointer to its first element, its sizes and strides in elements."""

    pointer: str
    sizes: list[str]
    strides: list[str]


@dataclass
class Trap:
    """A failed `cf.assert`: what is said, and the op."""

    message: str
    op: Operation


@dataclass
class Unit:
    """What all functions of a program share."""

    traps: list[Trap] = field(default_factory=list)
    constants: dict[str, int] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)
    """Executable name => C name of its launcher."""

    def trap(self, op: cf.AssertOp) -> int:
        """The number (from 1) that a failure of this op returns."""
        self.traps.append(Trap(op.msg.data, op))
        return len(self.traps)


def is_literal(text: str) -> bool:
    """Whether a C expression is a number."""
    return text.lstrip("-").isdigit()


def times(a: str, b: str) -> str:
    """C product, with literals folded."""
    if is_literal(a) and is_literal(b):
        return str(int(a) * int(b))
    if a == "1":
        return b
    if b == "1":
        return a
    return "0" if "0" in (a, b) else f"({a} * {b})"


def plus(terms: Sequence[str]) -> str:
    """C sum, with literals folded."""
    number = sum(int(t) for t in terms if is_literal(t))
    rest = [t for t in terms if not is_literal(t)]
    if number or not rest:
        rest.append(str(number))
    return " + ".join(rest)


class Printer:
    """Prints the ops of one C function; a nested workgroup function gets its own."""

    def __init__(self, unit: Unit, expressions: Expressions, outer: Printer | None = None):
        self.unit = unit
        self.expressions = expressions
        self.outer = outer
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[SSAValue, str] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.counter = 0
        self.captured_scalars: list[tuple[str, str, str]] = []
        self.captured_pointers: list[tuple[str, str, str]] = []
        self.functions: list[str] = outer.functions if outer else []
        self.prefix = outer.prefix if outer else "k"
        self.scratch: list[tuple[str, str]] = []
        self.in_workgroup = outer is not None
        self.allocations = 0
        self.scopes: list[list[tuple[str, int]]] = [[]]
        """Allocations of each open block, innermost last: freed where the block ends."""

    # --- text --------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """One line of the body."""
        self.lines.append("  " * self.depth + text)

    def fresh(self, letter: str = "v") -> str:
        """A new C name."""
        self.counter += 1
        return f"{letter}{self.counter}"

    # --- values ------------------------------------------------------------------------

    def name(self, value: SSAValue) -> str:
        """The C expression of a scalar or vector value; captures what comes from outside."""
        found = self.names.get(value)
        if found is not None:
            return found
        if self.outer is None:
            raise UnsupportedError(f"value of type {value.type} has no C name")
        outside = self.outer.name(value)
        if is_literal(outside):
            return outside
        inside = self.capture_scalar(outside, value.type)
        self.names[value] = inside
        return inside

    def capture_scalar(self, outside: str, kind: Attribute | None) -> str:
        """Passes a scalar of the launcher to the workgroup; returns its name there."""
        if is_literal(outside):
            return outside
        for text, c_type, inside in self.captured_scalars:
            if text == outside:
                return inside
        inside = self.fresh("c")
        self.captured_scalars.append((outside, "int64_t" if kind is None else scalar(kind), inside))
        return inside

    def buffer(self, value: SSAValue) -> Buffer:
        """The C form of a memref value."""
        found = self.buffers.get(value)
        if found is not None:
            return found
        if self.outer is None:
            raise UnsupportedError(f"memref {value.type} has no C name")
        outside = self.outer.buffer(value)
        assert isinstance(value.type, MemRefType)
        pointer = self.fresh("p")
        self.captured_pointers.append((outside.pointer, scalar(value.type.element_type), pointer))
        result = Buffer(
            pointer,
            [self.capture_scalar(s, None) for s in outside.sizes],
            [self.capture_scalar(s, None) for s in outside.strides],
        )
        self.buffers[value] = result
        return result

    def define(self, value: SSAValue, expression: str) -> None:
        """const T vN = expression;"""
        name = self.fresh()
        self.line(f"const {self.expressions.type(value.type)} {name} = {expression};")
        self.names[value] = name

    def hold(self, text: str) -> str:
        """A name for an int64_t expression, or the literal itself."""
        if is_literal(text) or text.isidentifier():
            return text
        name = self.fresh("n")
        self.line(f"const int64_t {name} = {text};")
        return name

    def address(self, base: Buffer, indices: Sequence[str]) -> str:
        """&base[indices]"""
        offset = plus([times(i, s) for i, s in zip(indices, base.strides, strict=True)] or ["0"])
        return base.pointer if offset == "0" else f"{base.pointer} + {offset}"

    # --- ops ---------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """All ops of a block but its terminator."""
        for op in block.ops:
            if op is block.last_op and op.name in ("scf.yield", "func.return", "scf.forall.in_parallel", "scf.reduce", "scf.condition"):
                return
            self.op(op)

    def op(self, op: Operation) -> None:
        """One op."""
        handler = HANDLERS.get(op.name)
        if handler is not None:
            handler(self, op)
            return
        if len(op.results) == 1 and not op.regions:
            text = self.expressions.print(op, [self.name(o) for o in op.operands])
            if text is not None:
                if is_literal(text):
                    self.names[op.results[0]] = text
                else:
                    self.define(op.results[0], text)
                return
        raise UnsupportedError("no C for this op", op=op.name, location=str(op.location))

    def load_element(self, base: Buffer, indices: Sequence[str]) -> str:
        """base[indices]"""
        offset = plus([times(i, s) for i, s in zip(indices, base.strides, strict=True)] or ["0"])
        return f"{base.pointer}[{offset}]"

    def carried(self, results: Sequence[SSAValue], inits: Sequence[SSAValue]) -> list[str]:
        """Declares variables that hold loop-carried values, set to their start."""
        names: list[str] = []
        for result, init in zip(results, inits, strict=True):
            name = self.fresh("x")
            self.line(f"{self.expressions.type(result.type)} {name} = {self.name(init)};")
            names.append(name)
        return names

    def assign(self, names: Sequence[str], values: Sequence[SSAValue]) -> None:
        """names = values, all at once."""
        texts = [self.name(v) for v in values]
        pairs = [(n, t, v) for n, t, v in zip(names, texts, values, strict=True) if n != t]
        if any(t in names for _, t, _ in pairs):
            temps: list[str] = []
            for _, text, value in pairs:
                temp = self.fresh("t")
                self.line(f"const {self.expressions.type(value.type)} {temp} = {text};")
                temps.append(temp)
            pairs = [(n, t, v) for (n, _, v), t in zip(pairs, temps, strict=True)]
        for name, text, _ in pairs:
            self.line(f"{name} = {text};")

    def nested(self, region: Region, opening: str) -> None:
        """{ block }"""
        self.line(opening + " {")
        self.depth += 1
        self.scopes.append([])
        self.block(region.block)

    def close(self) -> None:
        """}"""
        self.depth -= 1
        self.line("}")

    def release(self) -> None:
        """Frees what the innermost block allocated."""
        for pointer, number in self.scopes.pop():
            self.line(f"rt->free({pointer}); owned[{number}] = NULL;")

    def contiguous_strides(self, sizes: Sequence[str]) -> list[str]:
        """Row-major strides of sizes."""
        strides: list[str] = []
        step = "1"
        for size in reversed(sizes):
            strides.append(step)
            step = self.hold(times(step, size))
        return strides[::-1]

    def fail(self, condition: str, number: int | str) -> None:
        """Leaves with a trap when the condition holds (a workgroup only notes it)."""
        if self.in_workgroup:
            self.line(f"if ({condition}) *d->trap = {number};")
        else:
            self.line(f"if ({condition}) {{ status = {number}; goto done; }}")


Handler = Callable[[Printer, Operation], None]
HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Registers the printer of ops by name."""

    def register(function: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


@handles("scf.for")
def _for(p: Printer, op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    names = p.carried(op.results, op.iter_args)
    iv, *arguments = op.body.block.args
    counter = p.fresh("i")
    p.names[iv] = counter
    for argument, name in zip(arguments, names, strict=True):
        p.names[argument] = name
    kind = scalar(iv.type)
    lower, upper, step = p.name(op.lb), p.name(op.ub), p.name(op.step)
    p.nested(op.body, f"for ({kind} {counter} = {lower}; {counter} < {upper}; {counter} += {step})")
    terminator = op.body.block.last_op
    assert terminator is not None
    p.assign(names, terminator.operands)
    p.release()
    p.close()
    for result, name in zip(op.results, names, strict=True):
        p.names[result] = name


@handles("scf.if")
def _if(p: Printer, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    names: list[str] = []
    for result in op.results:
        name = p.fresh("x")
        p.line(f"{p.expressions.type(result.type)} {name};")
        names.append(name)
    condition = p.name(op.cond)
    for region, opening in ((op.true_region, f"if ({condition})"), (op.false_region, "else")):
        if not region.blocks:
            continue
        p.nested(region, opening)
        terminator = region.block.last_op
        if terminator is not None and names:
            p.assign(names, terminator.operands)
        p.release()
        p.close()
    for result, name in zip(op.results, names, strict=True):
        p.names[result] = name


@handles("scf.while")
def _while(p: Printer, op: Operation) -> None:
    assert isinstance(op, scf.WhileOp)
    before, after = op.before_region.block, op.after_region.block
    names = p.carried(before.args, op.arguments)
    for argument, name in zip(before.args, names, strict=True):
        p.names[argument] = name
    results: list[str] = []
    for result in op.results:
        name = p.fresh("x")
        p.line(f"{p.expressions.type(result.type)} {name};")
        results.append(name)
    p.line("for (;;) {")
    p.depth += 1
    p.scopes.append([])
    p.block(before)
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    p.assign(results, condition.operands[1:])
    leave = f"if (!{p.name(condition.operands[0])})"
    frees = " ".join(f"rt->free({q}); owned[{n}] = NULL;" for q, n in p.scopes[-1])
    p.line(f"{leave} {{ {frees} break; }}" if frees else f"{leave} break;")
    for argument, name in zip(after.args, results, strict=True):
        p.names[argument] = name
    p.block(after)
    terminator = after.last_op
    assert terminator is not None
    p.assign(names, terminator.operands)
    p.release()
    p.close()
    for result, name in zip(op.results, results, strict=True):
        p.names[result] = name


@handles("cf.assert")
def _assert(p: Printer, op: Operation) -> None:
    assert isinstance(op, cf.AssertOp)
    p.fail(f"!{p.name(op.arg)}", p.unit.trap(op))


# --- memory ----------------------------------------------------------------------------


@handles("memref.load")
def _load(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.LoadOp)
    base = p.buffer(op.memref)
    p.define(op.res, p.load_element(base, [p.name(i) for i in op.indices]))


@handles("memref.store")
def _store(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.StoreOp)
    base = p.buffer(op.memref)
    p.line(f"{p.load_element(base, [p.name(i) for i in op.indices])} = {p.name(op.value)};")


@handles("memref.dim")
def _dim(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.DimOp)
    index = p.name(op.index)
    p.names[op.result] = p.buffer(op.source).sizes[int(index)]


def _sizes(p: Printer, kind: MemRefType, dynamic: Sequence[SSAValue]) -> list[str]:
    values = iter(dynamic)
    return [p.name(next(values)) if s == DYNAMIC_INDEX else str(s) for s in kind.get_shape()]


def _bytes(p: Printer, kind: MemRefType, sizes: Sequence[str]) -> str:
    total = str(size_of(kind.element_type))
    for size in sizes:
        total = times(total, size)
    return total


@handles("memref.alloc")
def _alloc(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.AllocOp)
    kind = op.memref.type
    assert isinstance(kind, MemRefType)
    element_type = scalar(kind.element_type)
    sizes = _sizes(p, kind, op.dynamic_sizes)
    pointer = p.fresh("p")
    if p.in_workgroup:
        offset = p.fresh("s")
        outer = p.outer
        assert outer is not None
        outside = [s if s == DYNAMIC_INDEX else str(s) for s in kind.get_shape()]
        values = iter(op.dynamic_sizes)
        outside = [outer.name(next(values)) if s == DYNAMIC_INDEX else s for s in outside]
        p.scratch.append((offset, _bytes(outer, kind, outside)))
        p.line(f"{element_type} *const {pointer} = ({element_type} *)((char *)scratch + {offset});")
    else:
        p.line(f"{element_type} *const {pointer} = rt->alloc({_bytes(p, kind, sizes)});")
        p.line(f"if (!{pointer}) {{ status = {OK_OR_FAIL}; goto done; }}")
        p.line(f"owned[{p.allocations}] = {pointer};")
        p.scopes[-1].append((pointer, p.allocations))
        p.allocations += 1
    p.buffers[op.memref] = Buffer(pointer, sizes, p.contiguous_strides(sizes))


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
    """Everything is freed when the function ends."""


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


def _mixed(p: Printer, static: Sequence[int], dynamic: Sequence[SSAValue]) -> list[str]:
    values = iter(dynamic)
    return [p.name(next(values)) if s == DYNAMIC_INDEX else str(s) for s in static]


@handles("memref.subview")
def _subview(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.SubviewOp)
    base = p.buffer(op.source)
    offsets = _mixed(p, op.static_offsets.get_values(), op.offsets)
    sizes = _mixed(p, op.static_sizes.get_values(), op.sizes)
    strides = _mixed(p, op.static_strides.get_values(), op.strides)
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
    """Source dims that survive rank reduction: by strides where sizes leave a choice."""
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
    offsets = _mixed(p, op.static_offsets.get_values(), op.offsets)
    kind = op.result.type
    assert isinstance(kind, MemRefType)
    text = base.pointer if offsets[0] == "0" else f"{base.pointer} + {offsets[0]}"
    p.buffers[op.result] = Buffer(
        _pointer(p, kind, text),
        _mixed(p, op.static_sizes.get_values(), op.sizes),
        _mixed(p, op.static_strides.get_values(), op.strides),
    )


@handles("memref.extract_strided_metadata")
def _metadata(p: Printer, op: Operation) -> None:
    """A pointer in C already includes the offset, so the offset beside it is 0."""
    base = p.buffer(op.operands[0])
    rank = len(base.sizes)
    p.buffers[op.results[0]] = Buffer(base.pointer, [], [])
    p.names[op.results[1]] = "0"
    for result, text in zip(op.results[2:], [*base.sizes, *base.strides], strict=True):
        p.names[result] = text
    assert rank == len(base.strides)


@handles("memref.view")
def _view(p: Printer, op: Operation) -> None:
    assert isinstance(op, memref.ViewOp)
    base = p.buffer(op.operands[0])
    kind = op.results[0].type
    assert isinstance(kind, MemRefType)
    element_type = scalar(kind.element_type)
    pointer = p.fresh("p")
    p.line(f"{element_type} *const {pointer} = ({element_type} *)({base.pointer} + {p.name(op.operands[1])});")
    sizes = _sizes(p, kind, op.operands[2:])
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
    if isinstance(kind.layout, NoneAttr) and isinstance(op.destination.type.layout, NoneAttr):  # pyright: ignore
        p.line(f"memcpy({target.pointer}, {source.pointer}, (size_t)({_bytes(p, kind, source.sizes)}));")
        return
    counters = [p.fresh("i") for _ in source.sizes]
    for counter, size in zip(counters, source.sizes, strict=True):
        p.line(f"for (int64_t {counter} = 0; {counter} < {size}; {counter}++)")
    p.line(f"  {p.load_element(target, counters)} = {p.load_element(source, counters)};")


# --- vectors ---------------------------------------------------------------------------


def _lane_name(p: Printer, kind: VectorType) -> str:
    """The vector type as it lies in memory; masks are bytes there."""
    if is_bool(kind.element_type):
        return p.expressions.vector(f"v{lanes(kind)}i8")
    return p.expressions.type(kind)


@handles("vector.load")
def _vector_load(p: Printer, op: Operation) -> None:
    assert isinstance(op, vector.LoadOp)
    kind = op.result.type
    assert isinstance(kind, VectorType)
    text = f"{_lane_name(p, kind)}_load({p.address(p.buffer(op.base), [p.name(i) for i in op.indices])})"
    if is_bool(kind.element_type):
        text = f"-__builtin_convertvector({text}, {p.expressions.type(kind)})"
    p.define(op.result, text)


@handles("vector.store")
def _vector_store(p: Printer, op: Operation) -> None:
    assert isinstance(op, vector.StoreOp)
    kind = op.vector.type
    assert isinstance(kind, VectorType)
    value = p.name(op.vector)
    lane = _lane_name(p, kind)
    if is_bool(kind.element_type):
        value = f"__builtin_convertvector(-{value}, {lane})"
    p.line(f"{lane}_store({p.address(p.buffer(op.base), [p.name(i) for i in op.indices])}, {value});")


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


@handles("vector.extract")
def _extract(p: Printer, op: Operation) -> None:
    assert isinstance(op, vector.ExtractOp)
    position = _mixed(p, op.static_position.get_values(), op.dynamic_position)
    p.define(op.result, f"{p.name(op.vector)}[{position[0]}]")


@handles("vector.insert")
def _insert(p: Printer, op: Operation) -> None:
    assert isinstance(op, vector.InsertOp)
    position = _mixed(p, op.static_position.get_values(), op.dynamic_position)
    name = p.fresh()
    p.line(f"{p.expressions.type(op.result.type)} {name} = {p.name(op.dest)};")
    p.line(f"{name}[{position[0]}] = {p.name(op.source)};")
    p.names[op.result] = name


REDUCTIONS = {
    "add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor",
    "maxsi": "max", "minsi": "min", "maxui": "max", "minui": "min",
}  # fmt: skip


@handles("vector.reduction")
def _reduction(p: Printer, op: Operation) -> None:
    kind = op.operands[0].type
    assert isinstance(kind, VectorType)
    flag = str(op.properties["kind"].data.value)  # pyright: ignore
    lane = kind.element_type
    c_type = scalar(lane)
    source = p.name(op.operands[0])
    if is_float(lane) and flag in ("maximumf", "minimumf", "maxnumf", "minnumf"):
        function = f"irees_{flag[:-1]}_{short(lane)}"
    else:
        function = f"IREES_OP_{REDUCTIONS[flag]}"
        if flag in ("maxui", "minui"):
            c_type = f"u{c_type}"
    if is_bool(lane):
        source, c_type = f"(-{source})", "int32_t"
    p.define(op.results[0], f"IREES_TREE({c_type}, {lanes(kind)}, {function}, {source})")


# --- workgroups and dispatches ----------------------------------------------------------


def _upper_operands(op: Operation) -> Sequence[SSAValue]:
    lower, upper, *_ = op.properties["operandSegmentSizes"].get_values()  # pyright: ignore
    return op.operands[lower : lower + upper]


@handles("scf.forall")
def _forall(p: Printer, op: Operation) -> None:
    """A parallel loop at the top of a kernel: its body becomes a workgroup function."""
    uppers = _mixed(p, op.properties["staticUpperBound"].get_values(), _upper_operands(op))
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
        offset = p.hold(plus([offset, f"(({size}) + 63) / 64 * 64" if not is_literal(size) else str((int(size) + 63) // 64 * 64)]))
    prologue = [
        f"  {t} *const {name} = ({t} *)d->buffers[{i}];"
        for i, (_, t, name) in enumerate(inner.captured_pointers)
    ]
    for i, (_, t, name) in enumerate(inner.captured_scalars):
        prologue.append("  " + _unpack_scalar(t, name, f"d->scalars[{i}]"))
    p.functions.append(
        f"static void {function}(const irees_dispatch *d, int64_t workgroup, void *scratch) {{\n"
        + "\n".join([*prologue, *inner.lines])
        + "\n}\n"
    )
    p.line("{")
    p.depth += 1
    p.line(f"void *buffers_[] = {{{', '.join(f'(void *){o}' for o, _, _ in inner.captured_pointers) or 'NULL'}}};")
    p.line(f"int64_t scalars_[] = {{{', '.join(_pack_scalar(t, o) for o, t, _ in inner.captured_scalars) or '0'}}};")
    p.line("const irees_dispatch d_ = {buffers_, scalars_, trap};")
    count = "1"
    for upper in uppers:
        count = times(count, upper)
    p.line(f"rt->parallel(rt->pool, {function}, &d_, {count}, {offset});")
    p.line("if (*trap) { status = *trap; goto done; }")
    p.close()


def _pack_scalar(c_type: str, text: str) -> str:
    if c_type in ("float", "double", "_Float16", "float _Complex"):
        return f"__extension__({{ int64_t b_ = 0; {c_type} f_ = {text}; memcpy(&b_, &f_, sizeof f_); b_; }})"
    return text


def _unpack_scalar(c_type: str, name: str, source: str) -> str:
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


def kernel(function: func.FuncOp, name: str, unit: Unit) -> tuple[str, Expressions]:
    """The C text of one executable's function, and the vector types it needs."""
    expressions = Expressions()
    p = Printer(unit, expressions)
    p.prefix = name
    scalars = 0
    pointers = 0
    for argument in function.body.block.args:
        if isinstance(argument.type, MemRefType):
            pointer = p.fresh("a")
            element_type = scalar(argument.type.element_type)
            p.line(f"{element_type} *const {pointer} = ({element_type} *)buffers[{pointers}];")
            pointers += 1
            sizes: list[str] = []
            for size in argument.type.get_shape():
                if size != DYNAMIC_INDEX:
                    sizes.append(str(size))
                    continue
                sizes.append(p.hold(f"scalars[{scalars}]"))
                scalars += 1
            p.buffers[argument] = Buffer(pointer, sizes, p.contiguous_strides(sizes))
        else:
            value = p.fresh("a")
            p.line(_unpack_scalar(scalar(argument.type), value, f"scalars[{scalars}]"))
            p.names[argument] = value
            scalars += 1
    p.block(function.body.block)
    text = [
        *p.functions,
        f"int32_t {name}(const irees_runtime *rt, void *const *buffers, const int64_t *scalars, int32_t *trap) {{",
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
    return "\n".join(text) + "\n", expressions


def _owned(p: Printer) -> list[str]:
    return [f"  void *owned[{p.allocations}] = {{0}};"] if p.allocations else []


def entry(function: func.FuncOp, number: int, unit: Unit) -> tuple[str, Expressions]:
    """The C text of a public function of the host program."""
    expressions = Expressions()
    p = Printer(unit, expressions)
    dynamic = 0
    for index, argument in enumerate(function.body.block.args):
        if isinstance(argument.type, MemRefType):
            pointer = p.fresh("a")
            element_type = scalar(argument.type.element_type)
            p.line(f"{element_type} *const {pointer} = ({element_type} *)call->args[{index}];")
            sizes: list[str] = []
            for size in argument.type.get_shape():
                if size != DYNAMIC_INDEX:
                    sizes.append(str(size))
                    continue
                sizes.append(p.hold(f"call->arg_dims[{dynamic}]"))
                dynamic += 1
            p.buffers[argument] = Buffer(pointer, sizes, p.contiguous_strides(sizes))
        else:
            value = p.fresh("a")
            kind = scalar(argument.type)
            p.line(f"const {kind} {value} = *(const {kind} *)call->args[{index}];")
            p.names[argument] = value
    p.block(function.body.block)
    terminator = function.body.block.last_op
    assert isinstance(terminator, func.ReturnOp)
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
            p.line(f"memcpy(&call->result_scalars[{2 * index}], &({scalar(value.type)}){{{p.name(value)}}}, sizeof({scalar(value.type)}));")
            p.line(f"call->results[{index}] = &call->result_scalars[{2 * index}];")
    keep = [f"result_{i}" for i in range(returned)]
    text = [
        f"__attribute__((visibility(\"default\"))) int32_t irees_entry_{number}(const irees_call *call) {{",
        "  const irees_runtime *const rt = call->rt;",
        "  int32_t status = 0, failed = 0, *const trap = &failed;",
        *(f"  void *{k} = NULL;" for k in keep),
        *_owned(p),
        *p.lines,
        "  goto done;",
        "done:",
        *_release(p, keep),
        "  (void)rt; (void)trap;",
        "  return status;",
        "}",
    ]
    return "\n".join(text) + "\n", expressions


def _release(p: Printer, kept: Sequence[str]) -> list[str]:
    if not p.allocations:
        return []
    others = " && ".join(f"owned[i_] != {k}" for k in kept) or "1"
    return [
        f"  for (int i_ = 0; i_ < {p.allocations}; i_++)",
        f"    if (owned[i_] && (status || ({others}))) rt->free(owned[i_]);",
    ]

