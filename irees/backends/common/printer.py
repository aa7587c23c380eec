"""
The state of printing one C function: names, buffers, captures, and the table of op printers.

The printers themselves are in `print_control.py`, `print_memory.py`, `print_vector.py` and
`print_dispatch.py`, and in each backend's `print_forall.py`; expressions of values in
`emit_ops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import cf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from irees.backends.common.emit_ops import Expressions
from irees.backends.common.types import scalar
from irees.dialects.stream import CmdTraceOp
from irees.errors import UnsupportedError

OK_OR_FAIL = "IREES_OUT_OF_MEMORY"


@dataclass
class Buffer:
    """A memref in C: the pointer to its first element, its sizes and strides in elements."""

    pointer: str
    sizes: list[str]
    strides: list[str]


@dataclass
class Place:
    """
    The C variables of a value that regions yield: one of a scalar, pointer and `?`s of a buffer.

    A buffer that has been yielded belongs to the place, in `owned[slot]`.
    """

    variables: list[tuple[str, str]]
    """Name of each, and the C type as it stands before it."""
    slot: int | None = None


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
    traces: list[CmdTraceOp] = field(default_factory=list[CmdTraceOp])

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


Handler = Callable[["Printer", Operation], None]
HANDLERS: dict[str, Handler] = {}


class Printer:
    """Prints the ops of one C function; a nested workgroup function gets its own."""

    handlers: Mapping[str, Handler] = HANDLERS

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
        for text, _c_type, inside in self.captured_scalars:
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

    def bind_buffer(self, value: SSAValue, pointer: str, sizes: list[str]) -> None:
        """From here on the memref is a dense one at that pointer."""
        self.buffers[value] = Buffer(pointer, sizes, self.contiguous_strides(sizes))

    def delinearize(self, index: str, counts: Sequence[str]) -> list[str]:
        """The places along dims of `counts` points of the point with that number."""
        places: list[str] = []
        for position in reversed(range(len(counts))):
            place = self.fresh("i")
            value = index if position == 0 else f"{index} % {counts[position]}"
            self.line(f"const int64_t {place} = {value};")
            if position:
                following = self.fresh("i")
                self.line(f"const int64_t {following} = {index} / {counts[position]};")
                index = following
            places.append(place)
        return places[::-1]

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
            if op is block.last_op and op.name in (
                "scf.yield",
                "func.return",
                "scf.forall.in_parallel",
                "scf.reduce",
                "scf.condition",
            ):
                return
            self.op(op)

    def op(self, op: Operation) -> None:
        """One op."""
        handler = self.handlers.get(op.name)
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

    def place(self, kind: Attribute, init: SSAValue | None = None) -> Place:
        """Declares the variables of a value that regions yield; set to `init` if there is one."""
        if not isinstance(kind, MemRefType):
            place = Place([(self.fresh("x"), self.expressions.type(kind) + " ")])
        else:
            sizes = kind.get_shape().count(DYNAMIC_INDEX)
            pointer = (self.fresh("x"), f"{scalar(kind.element_type)} *")
            place = Place(
                [pointer, *((self.fresh("n"), "int64_t ") for _ in range(sizes))], self.allocations
            )
            self.scopes[-1].append((f"owned[{self.allocations}]", self.allocations))
            self.allocations += 1
        texts = self.texts(init) if init is not None else [""] * len(place.variables)
        for (name, c_type), text in zip(place.variables, texts, strict=True):
            self.line(f"{c_type}{name} = {text};" if text else f"{c_type}{name};")
        return place

    def texts(self, value: SSAValue) -> list[str]:
        """The C expressions for the variables of a place."""
        if not isinstance(value.type, MemRefType):
            return [self.name(value)]
        base = self.buffer(value)
        shape = value.type.get_shape()
        sizes = [t for t, n in zip(base.sizes, shape, strict=True) if n == DYNAMIC_INDEX]
        return [base.pointer, *sizes]

    def bind(self, value: SSAValue, place: Place) -> None:
        """From here on the value is what is in the place."""
        names = [name for name, _ in place.variables]
        if not isinstance(value.type, MemRefType):
            self.names[value] = names[0]
            return
        dynamic = iter(names[1:])
        sizes = [next(dynamic) if n == DYNAMIC_INDEX else str(n) for n in value.type.get_shape()]
        self.buffers[value] = Buffer(names[0], sizes, self.contiguous_strides(sizes))

    def assign(self, places: Sequence[Place], values: Sequence[SSAValue]) -> None:
        """
        places = values, all at once.

        A buffer that the innermost block has allocated is the place's from now on, and what
        the place had before is freed.
        """
        for place, value in zip(places, values, strict=True):
            pointer = self.texts(value)[0]
            mine = [entry for entry in self.scopes[-1] if entry[0] == pointer]
            if place.slot is not None and mine:
                self.scopes[-1].remove(mine[0])
                self.line(f"rt->free(owned[{place.slot}]);")
                self.line(f"owned[{place.slot}] = {pointer}; owned[{mine[0][1]}] = NULL;")
        targets = [variable for place in places for variable in place.variables]
        texts = [text for value in values for text in self.texts(value)]
        pairs = [(t, text) for t, text in zip(targets, texts, strict=True) if t[0] != text]
        if {text for _, text in pairs} & {name for name, _ in targets}:
            temps: list[str] = []
            for (_, c_type), text in pairs:
                temps.append(self.fresh("t"))
                self.line(f"{c_type}{temps[-1]} = {text};")
            pairs = [(target, temp) for (target, _), temp in zip(pairs, temps, strict=True)]
        for (name, _), text in pairs:
            self.line(f"{name} = {text};")

    def open(self, opening: str) -> None:
        """{"""
        self.line(opening + " {")
        self.depth += 1
        self.scopes.append([])

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

    def trap_word(self) -> tuple[list[str], list[str]]:
        """
        The lines of an entry that declare where workgroups note a trap, and those that look at it
        when all have run, where nobody has looked before.
        """
        return ["  int32_t failed = 0, *const trap = &failed;"], []


def handles(*names: str, table: dict[str, Handler] = HANDLERS) -> Callable[[Handler], Handler]:
    """Registers the printer of ops by name, for all backends or in a table of one."""

    def register(function: Handler) -> Handler:
        for name in names:
            table[name] = function
        return function

    return register
