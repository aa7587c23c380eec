"""
Hypothesis strategies for programs with dynamic shapes, and for their inputs.

The generator knows every size; whether a dim's type shows the number or `?` is drawn separately. So
programs are valid by construction and nothing is filtered. The simplest alternative comes first
everywhere, so shrinking leads to few ops on small static tensors.

Floats hold small integers, and a bound of their magnitude is tracked. A value that could exceed the
exactly representable integers of its type is clamped first. So sums are exact in any order, and
results are compared bit by bit. Results of exp, division and the like are marked, and compared with
a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from irees.testing.tolerances import EXACT, Tolerance

Draw = Callable[[st.SearchStrategy[Any]], Any]

SIZES = st.sampled_from([2, 3, 1, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 0])
LARGE = st.sampled_from([64, 65, 127, 129, 255, 257, 1025])
FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i32", "i64", "i8", "i16", "i1")
EXACT_LIMIT = {"f32": 2.0**24, "f64": 2.0**53, "f16": 2.0**11, "bf16": 2.0**8}
"""Largest magnitude up to which the type represents every integer exactly."""
DTYPES = {
    "f32": np.dtype("f4"), "f64": np.dtype("f8"), "f16": np.dtype("f2"),
    "bf16": np.dtype(ml_dtypes.bfloat16), "i1": np.dtype(bool), "i8": np.dtype("i1"),
    "i16": np.dtype("i2"), "i32": np.dtype("i4"), "i64": np.dtype("i8"), "index": np.dtype("i8"),
}  # fmt: skip
MAX_ELEMENTS = 1 << 12
SMALLEST = 3.0
"""Largest magnitude of float inputs, which are non-zero integers."""


@dataclass(frozen=True)
class Dim:
    """A size, and its SSA name if it is dynamic."""

    size: int
    name: str | None = None

    @property
    def text(self) -> str:
        """The dim as written in a type."""
        return "?" if self.name is not None else str(self.size)


@dataclass(frozen=True)
class Value:
    """A tensor of the program under construction."""

    name: str
    element: str
    dims: tuple[Dim, ...]
    bound: float = SMALLEST
    """For floats: upper bound of the magnitude of the elements."""
    tolerance: Tolerance = EXACT

    @property
    def type(self) -> str:
        """The tensor type in MLIR syntax."""
        return "tensor<" + "".join(f"{d.text}x" for d in self.dims) + f"{self.element}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(d.size for d in self.dims)

    @property
    def exact(self) -> bool:
        """Whether the expected result is exact."""
        return self.tolerance.name == "E"

    @property
    def is_float(self) -> bool:
        """Whether the elements are floats."""
        return self.element in FLOATS


@dataclass
class Program:
    """A function as text, with its arguments and its results and their tolerances."""

    name: str
    text: str
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    special: bool
    """Whether inputs may hold NaN, infinities and negative zero."""
    seed: int = 0

    def inputs(self) -> list[np.ndarray]:
        """Returns the inputs, which depend on the seed only."""
        random = np.random.default_rng(self.seed)
        return [draw_array(random, a, self.special) for a in self.arguments]


def draw_array(random: np.random.Generator, value: Value, special: bool) -> np.ndarray:
    """Returns random elements for an argument."""
    dtype, shape = DTYPES[value.element], value.shape
    if value.element == "i1":
        return random.integers(0, 2, shape).astype(bool)
    if value.is_float:
        numbers = random.integers(1, int(SMALLEST) + 1, shape).astype(np.float64)
        numbers *= random.choice([-1.0, 1.0], shape)
        if special:
            edges = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape)
            numbers = np.where(random.random(shape) < 0.3, edges, numbers)
        return numbers.astype(dtype)
    info = np.iinfo(dtype)
    small = random.integers(-4, 5, shape)
    wild = random.integers(info.min, info.max, shape, endpoint=True)
    edges = random.choice(np.array([info.min, info.max, info.min + 1, 1 << (info.bits - 2)]), shape)
    kind = random.random(shape)
    return np.where(kind < 0.6, small, np.where(kind < 0.8, wild, edges)).astype(dtype)


@dataclass
class Writer:
    """The function under construction: its text and its values."""

    draw: Draw
    special: bool = False
    values: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    constants: dict[tuple[str, str], str] = field(default_factory=dict)
    count: int = 0

    def fresh(self, prefix: str = "v") -> str:
        """Returns a new SSA name."""
        self.count += 1
        return f"%{prefix}{self.count}"

    def line(self, text: str) -> None:
        """Appends a line of an op."""
        self.lines.append("  " + text)

    def constant(self, number: Any, kind: str) -> str:
        """Returns the SSA name of a scalar constant."""
        text = literal(number, kind)
        if (text, kind) not in self.constants:
            name = self.fresh("c")
            self.constants[text, kind] = name
        return self.constants[text, kind]

    def index(self, dim: Dim | int) -> str:
        """Returns a size as an SSA name."""
        if isinstance(dim, Dim) and dim.name is not None:
            return dim.name
        return self.constant(dim.size if isinstance(dim, Dim) else dim, "index")

    def arith(self, op: str, a: str, b: str) -> str:
        """Adds an arith op on index and returns its SSA name."""
        name = self.fresh("i")
        self.line(f"{name} = arith.{op} {a}, {b} : index")
        return name

    def sized(self, size: int, like: Dim, compute: Callable[[], str]) -> Dim:
        """Returns a derived size, which is dynamic if `like` is."""
        return Dim(size, compute()) if like.name is not None else Dim(size)

    def define(self, value: Value, op: str) -> Value:
        """Adds the op that defines a value, and the value."""
        self.line(f"{value.name} = {op}")
        self.values.append(value)
        return value

    def empty(self, element: str, dims: Sequence[Dim]) -> Value:
        """Adds a tensor.empty, which is not added to the values."""
        value = Value(self.fresh("e"), element, tuple(dims))
        sizes = ", ".join(d.name for d in dims if d.name is not None)
        self.line(f"{value.name} = tensor.empty({sizes}) : {value.type}")
        return value

    def filled(self, element: str, dims: Sequence[Dim], number: Any) -> Value:
        """Adds a linalg.fill of a constant, which is not added to the values."""
        empty = self.empty(element, dims)
        value = Value(self.fresh("f"), element, tuple(dims), abs(number))
        scalar = self.constant(number, element)
        self.line(
            f"{value.name} = linalg.fill ins({scalar} : {element}) outs({empty.name} : "
            f"{empty.type}) -> {empty.type}"
        )
        return value

    def pick(self, values: Sequence[Any]) -> Any:
        """Draws one of the values; shrinks to the first."""
        return self.draw(st.sampled_from(values))

    def flag(self) -> bool:
        """Draws a bool; shrinks to false."""
        return self.draw(st.booleans())


def literal(number: Any, kind: str) -> str:
    """Returns a scalar constant in MLIR syntax."""
    if kind in FLOATS:
        if number in (float("inf"), float("-inf")):
            bits = {"f16": "7C00", "bf16": "7F80", "f32": "7F800000", "f64": "7FF0000000000000"}
            negative = {"f16": "FC00", "bf16": "FF80", "f32": "FF800000", "f64": "FFF0000000000000"}
            return "0x" + (bits if number > 0 else negative)[kind]
        return f"{float(number):e}" if number else "0.0"
    if kind == "i1":
        return "true" if number else "false"
    return str(int(number))


def typed(values: Sequence[Value]) -> str:
    """Returns values as the operands of an op: their names, then their types."""
    return f"{', '.join(v.name for v in values)} : {', '.join(v.type for v in values)}"


def draw_arguments(writer: Writer) -> list[Value]:
    """Draws one to three tensors, which may share dims, and adds the ops that read dynamic dims."""
    draw = writer.draw
    symbols = [
        (draw(SIZES if number else st.one_of(SIZES, LARGE)), draw(st.booleans()))
        for number in range(draw(st.integers(1, 3)))
    ]
    named: dict[int, Dim] = {}
    arguments: list[Value] = []
    pending: list[tuple[int, int, int]] = []
    for number in range(draw(st.integers(1, 3))):
        element = draw(st.sampled_from([*FLOATS[:1], *INTEGERS[:1], *FLOATS[1:], *INTEGERS[1:]]))
        chosen = draw(st.lists(st.integers(0, len(symbols) - 1), max_size=3))
        dims: list[Dim] = []
        for symbol in chosen:
            size, dynamic = symbols[symbol]
            if size * prod(d.size for d in dims) > MAX_ELEMENTS:
                continue
            if symbol not in named:
                named[symbol] = Dim(size, f"%d{symbol}" if dynamic else None)
                if dynamic:
                    pending.append((symbol, number, len(dims)))
            dims.append(named[symbol])
        arguments.append(Value(f"%arg{number}", element, tuple(dims)))
    for symbol, number, axis in pending:
        at = writer.constant(axis, "index")
        argument = arguments[number]
        writer.line(f"%d{symbol} = tensor.dim {argument.name}, {at} : {argument.type}")
    return arguments


@st.composite
def programs(draw: Draw, name: str = "main", max_ops: int = 6, ops: Sequence[str] = ()) -> Program:
    """
    Draws a function of up to `max_ops` ops on one to three tensors, which returns some of its
    values. `ops` restricts the builders by name.
    """
    from irees.testing.builders import BUILDERS

    special = draw(st.booleans())
    writer = Writer(draw, special)
    arguments = draw_arguments(writer)
    writer.values.extend(arguments)
    table = [f for key, f in BUILDERS.items() if not ops or key in ops]
    for _ in range(draw(st.integers(1, max_ops))):
        draw(st.sampled_from(table))(writer)
    computed = writer.values[len(arguments) :] or writer.values
    picked = draw(
        st.lists(st.sampled_from(range(len(computed))), min_size=1, max_size=3, unique=True)
    )
    results = tuple(computed[-1 - k] for k in picked)
    return finished(writer, name, tuple(arguments), results, special, draw(st.integers(0, 999)))


def finished(
    writer: Writer,
    name: str,
    arguments: tuple[Value, ...],
    results: tuple[Value, ...],
    special: bool,
    seed: int,
) -> Program:
    """Assembles the text of a function."""
    constants = [
        f"  {ssa} = arith.constant {text}" + ("" if kind == "i1" else f" : {kind}")
        for (text, kind), ssa in writer.constants.items()
    ]
    types = ", ".join(r.type for r in results)
    text = "\n".join(
        [
            f"func.func @{name}({', '.join(f'{a.name}: {a.type}' for a in arguments)}) "
            f"-> ({types}) {{",
            *constants,
            *writer.lines,
            f"  return {', '.join(r.name for r in results)} : {types}",
            "}",
        ]
    )
    return Program(name, text, arguments, results, special, seed)


@st.composite
def modules(
    draw: Draw, min_size: int = 1, max_size: int = 4, max_ops: int = 6, ops: Sequence[str] = ()
) -> list[Program]:
    """Draws several functions, to be compiled as one module."""
    count = draw(st.integers(min_size, max_size))
    return [draw(programs(f"p{n}", max_ops, ops)) for n in range(count)]


def module_text(functions: Sequence[Program]) -> str:
    """Returns the text of the functions as one module."""
    return "\n".join(f.text for f in functions) + "\n"
