"""
State of the printer of one C function: names, buffers, captures, and the table of op printers.

The op printers are in `print_control.py`, `print_memory.py`, `print_vector.py`,
`print_dispatch.py` and in each backend's `print_forall.py`. `emit_ops.py` prints value ops as
expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from xdsl.dialects import cf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from irees.backends.common.emit_ops import Expressions
from irees.backends.common.types import scalar
from irees.dialects.stream import CmdTraceOp
from irees.errors import UnsupportedError, describe_location
from irees.interfaces import blamed, model_of

OK_OR_FAIL = "IREES_OUT_OF_MEMORY"


@dataclass
class Buffer:
    """C form of a memref: pointer to the first element, sizes, and strides in elements."""

    pointer: str
    sizes: list[str]
    strides: list[str]


@dataclass
class Place:
    """
    The C variables of a value that a region yields: one for a scalar, or the pointer and the
    dynamic sizes of a buffer.

    A place owns the buffer yielded to it, in `owned[slot]`.
    """

    variables: list[tuple[str, str]]
    """Name and C type of each variable; the type is written directly before the name."""
    slot: int | None = None


@dataclass
class Trap:
    """The message and the op of a `cf.assert`, reported when it fails."""

    message: str
    op: Operation


@dataclass
class Unit:
    """State shared by all functions of a program."""

    traps: list[Trap] = field(default_factory=list)
    constants: dict[str, int] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)
    """Executable name => C name of its launcher."""
    traces: list[CmdTraceOp] = field(default_factory=list[CmdTraceOp])

    def trap(self, op: cf.AssertOp) -> int:
        """Registers an assertion; returns its trap number, from 1."""
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


_MARKING: ContextVar[bool] = ContextVar("irees_marking", default=False)


@contextmanager
def marking() -> Iterator[None]:
    """
    Adds the location of its op to each line that is printed within the block, as a comment.

    Such a text is for display only. Do not compile it: its digest depends on source locations.
    """
    token = _MARKING.set(True)
    try:
        yield
    finally:
        _MARKING.reset(token)


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
        self.current: Operation | None = outer.current if outer else None
        """The op that is printed."""
        self.scopes: list[list[tuple[str, int]]] = [[]]
        """Allocations of each open block, innermost last; freed at the end of the block."""

    # --- text --------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Appends one line to the body."""
        mark = self._mark() if _MARKING.get() else ""
        self.lines.append("  " * self.depth + text + mark)

    def _mark(self) -> str:
        """Returns a comment with the location of the op that is printed."""
        place = None if self.current is None else describe_location(self.current.location)
        return f" /*@{place}*/" if place else ""

    def fresh(self, letter: str = "v") -> str:
        """Returns an unused C name."""
        self.counter += 1
        return f"{letter}{self.counter}"

    # --- values ------------------------------------------------------------------------

    def name(self, value: SSAValue) -> str:
        """Returns the C expression of a scalar or vector value; captures values from outside."""
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
        """Binds the memref to a contiguous buffer at that pointer."""
        self.buffers[value] = Buffer(pointer, sizes, self.contiguous_strides(sizes))

    def delinearize(self, index: str, counts: Sequence[str]) -> list[str]:
        """Returns the indices along dims of sizes `counts` for a linear index."""
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
        """Prints `const T vN = expression;` and binds the value to vN."""
        name = self.fresh()
        self.line(f"const {self.expressions.type(value.type)} {name} = {expression};")
        self.names[value] = name

    def hold(self, text: str) -> str:
        """Returns a name for an int64_t expression, or the literal itself."""
        if is_literal(text) or text.isidentifier():
            return text
        name = self.fresh("n")
        self.line(f"const int64_t {name} = {text};")
        return name

    def address(self, base: Buffer, indices: Sequence[str]) -> str:
        """Returns the C of `&base[indices]`."""
        offset = plus([times(i, s) for i, s in zip(indices, base.strides, strict=True)] or ["0"])
        return base.pointer if offset == "0" else f"{base.pointer} + {offset}"

    # --- ops ---------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Prints all ops of a block except its terminator."""
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
        """Prints one op. Raises UnsupportedError for an op without a C form."""
        around, self.current = self.current, op
        try:
            self._op(op)
        except UnsupportedError as error:
            if error.location is not None:
                raise
            raise UnsupportedError(error.message, op=op, hint=error.hint) from error
        finally:
            self.current = around

    def _op(self, op: Operation) -> None:
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
        to_c = getattr(model_of(op), "to_c", None)
        if to_c is None:
            raise UnsupportedError("this op has no C form", op=op)
        with blamed(op, "to_c"):
            to_c(op, self)

    def include(self, text: str) -> None:
        """Adds a text before the kernel, once, such as the declarations of instructions."""
        self.expressions.headers[text] = None

    def load_element(self, base: Buffer, indices: Sequence[str]) -> str:
        """Returns the C of `base[indices]`."""
        offset = plus([times(i, s) for i, s in zip(indices, base.strides, strict=True)] or ["0"])
        return f"{base.pointer}[{offset}]"

    def place(self, kind: Attribute, init: SSAValue | None = None) -> Place:
        """Declares the variables of a value that regions yield, initialized to `init` if given."""
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
        """Returns the C expressions to assign to the variables of a place."""
        if not isinstance(value.type, MemRefType):
            return [self.name(value)]
        base = self.buffer(value)
        shape = value.type.get_shape()
        sizes = [t for t, n in zip(base.sizes, shape, strict=True) if n == DYNAMIC_INDEX]
        return [base.pointer, *sizes]

    def bind(self, value: SSAValue, place: Place) -> None:
        """Binds the value to the variables of the place."""
        names = [name for name, _ in place.variables]
        if not isinstance(value.type, MemRefType):
            self.names[value] = names[0]
            return
        dynamic = iter(names[1:])
        sizes = [next(dynamic) if n == DYNAMIC_INDEX else str(n) for n in value.type.get_shape()]
        self.buffers[value] = Buffer(names[0], sizes, self.contiguous_strides(sizes))

    def assign(self, places: Sequence[Place], values: Sequence[SSAValue]) -> None:
        """
        Prints the parallel assignment `places = values`.

        Ownership of a buffer allocated by the innermost block moves to the place, and the
        buffer that the place owned before is freed.
        """
        for place, value in zip(places, values, strict=True):
            self._hand_over(place, self.texts(value)[0])
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

    def _hand_over(self, place: Place, pointer: str) -> None:
        """Makes a place the owner of a buffer that the innermost block has allocated."""
        mine = next((entry for entry in self.scopes[-1] if entry[0] == pointer), None)
        if place.slot is None or mine is None:
            return
        self.scopes[-1].remove(mine)
        self.line(f"rt->free(owned[{place.slot}]);")
        self.line(f"owned[{place.slot}] = {pointer}; owned[{mine[1]}] = NULL;")

    def before_loop(self, op: Operation) -> None:
        """Prints what stands before the header of an `scf.for`."""

    def open(self, opening: str) -> None:
        """Opens a C block and its allocation scope."""
        self.line(opening + " {")
        self.depth += 1
        self.scopes.append([])

    def close(self) -> None:
        """Closes a C block."""
        self.depth -= 1
        self.line("}")

    def release(self) -> None:
        """Frees the allocations of the innermost block."""
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
        """Traps if the condition holds: a launcher returns, a workgroup only sets the trap word."""
        if self.in_workgroup:
            self.line(f"if ({condition}) *d->trap = {number};")
        else:
            self.line(f"if ({condition}) {{ status = {number}; goto done; }}")

    def trap_word(self) -> tuple[list[str], list[str]]:
        """
        Returns the lines of an entry that declare the trap word, and those that check it at the
        end. The latter are empty where each launch checks it.
        """
        return ["  int32_t failed = 0, *const trap = &failed;"], []


def handles(*names: str, table: dict[str, Handler] = HANDLERS) -> Callable[[Handler], Handler]:
    """Registers an op printer by op name, for all backends or in the table of one backend."""

    def register(function: Handler) -> Handler:
        for name in names:
            table[name] = function
        return function

    return register
