"""
Hypothesis strategies for programs with dynamic shapes, and for their inputs.

Facts are drawn first and hidden afterwards: every size is known to the generator, and each
dim decides on its own whether its type says the number or `?`. So programs are valid by
construction, nothing is filtered, and shrinking leads to few ops on small static tensors. The
simplest alternative comes first everywhere.

Floats hold small integers, and a bound of their magnitude is tracked: a value that could leave the
integers that its type holds exactly is clamped first. So sums are exact in any order, and results
are compared bit by bit. Values that come from exp, division and the like are marked, and compared
with a tolerance.
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
"""Integers up to here are values of the type, and so are sums of them."""
DTYPES = {
    "f32": np.dtype("f4"), "f64": np.dtype("f8"), "f16": np.dtype("f2"),
    "bf16": np.dtype(ml_dtypes.bfloat16), "i1": np.dtype(bool), "i8": np.dtype("i1"),
    "i16": np.dtype("i2"), "i32": np.dtype("i4"), "i64": np.dtype("i8"), "index": np.dtype("i8"),
}  # fmt: skip
MAX_ELEMENTS = 1 << 12
SMALLEST = 3.0
"""Floats of the inputs are non-zero integers up to this magnitude."""


@dataclass(frozen=True)
class Dim:
    """A size, and the SSA name of it where the type does not say it."""

    size: int
    name: str | None = None

    @property
    def text(self) -> str:
        """As in a type."""
        return "?" if self.name is not None else str(self.size)


@dataclass(frozen=True)
class Value:
    """A tensor of the program under construction."""

    name: str
    element: str
    dims: tuple[Dim, ...]
    bound: float = SMALLEST
    """For floats: nothing is larger in magnitude."""
    tolerance: Tolerance = EXACT

    @property
    def type(self) -> str:
        """As MLIR writes it."""
        return "tensor<" + "".join(f"{d.text}x" for d in self.dims) + f"{self.element}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(d.size for d in self.dims)

    @property
    def exact(self) -> bool:
        """Whether every bit is known."""
        return self.tolerance.name == "E"

    @property
    def is_float(self) -> bool:
        """Whether the elements are floats."""
        return self.element in FLOATS


@dataclass
class Program:
    """One function as text, the shapes and types of its arguments, the classes of its results."""

    name: str
    text: str
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    special: bool
    """Whether inputs may hold NaN, infinities and negative zero."""
    seed: int = 0

    def inputs(self) -> list[np.ndarray]:
        """Inputs, the same for the same seed."""
        random = np.random.default_rng(self.seed)
        return [draw_array(random, a, self.special) for a in self.arguments]


def draw_array(random: np.random.Generator, value: Value, special: bool) -> np.ndarray:
    """Elements of an argument."""
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
    """The function under construction: its text, and the values that there are."""

    draw: Draw
    special: bool = False
    values: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    constants: dict[tuple[str, str], str] = field(default_factory=dict)
    count: int = 0

    def fresh(self, prefix: str = "v") -> str:
        """A new SSA name."""
        self.count += 1
        return f"%{prefix}{self.count}"

    def line(self, text: str) -> None:
        """An op, or a part of one."""
        self.lines.append("  " + text)

    def constant(self, number: Any, kind: str) -> str:
        """The SSA name of a scalar constant."""
        text = literal(number, kind)
        if (text, kind) not in self.constants:
            name = self.fresh("c")
            self.constants[text, kind] = name
        return self.constants[text, kind]

    def index(self, dim: Dim | int) -> str:
        """A size as an SSA name."""
        if isinstance(dim, Dim) and dim.name is not None:
            return dim.name
        return self.constant(dim.size if isinstance(dim, Dim) else dim, "index")

    def arith(self, op: str, a: str, b: str) -> str:
        """An index computed by an op."""
        name = self.fresh("i")
        self.line(f"{name} = arith.{op} {a}, {b} : index")
        return name

    def sized(self, size: int, like: Dim, compute: Callable[[], str]) -> Dim:
        """A derived size: dynamic where the one that it comes from is."""
        return Dim(size, compute()) if like.name is not None else Dim(size)

    def define(self, value: Value, op: str) -> Value:
        """A value by an op that gives it."""
        self.line(f"{value.name} = {op}")
        self.values.append(value)
        return value

    def empty(self, element: str, dims: Sequence[Dim]) -> Value:
        """tensor.empty, not among the values."""
        value = Value(self.fresh("e"), element, tuple(dims))
        sizes = ", ".join(d.name for d in dims if d.name is not None)
        self.line(f"{value.name} = tensor.empty({sizes}) : {value.type}")
        return value

    def filled(self, element: str, dims: Sequence[Dim], number: Any) -> Value:
        """linalg.fill of a constant, not among the values."""
        empty = self.empty(element, dims)
        value = Value(self.fresh("f"), element, tuple(dims), abs(number))
        scalar = self.constant(number, element)
        self.line(
            f"{value.name} = linalg.fill ins({scalar} : {element}) outs({empty.name} : "
            f"{empty.type}) -> {empty.type}"
        )
        return value

    def pick(self, values: Sequence[Any]) -> Any:
        """One of them; shrinks to the first."""
        return self.draw(st.sampled_from(values))

    def flag(self) -> bool:
        """Shrinks to false."""
        return self.draw(st.booleans())


def literal(number: Any, kind: str) -> str:
    """A scalar constant as MLIR writes it."""
    if kind in FLOATS:
        if number in (float("inf"), float("-inf")):
            bits = {"f16": "7C00", "bf16": "7F80", "f32": "7F800000", "f64": "7FF0000000000000"}
            negative = {"f16": "FC00", "bf16": "FF80", "f32": "FF800000", "f64": "FFF0000000000000"}
            return "0x" + (bits if number > 0 else negative)[kind]
        return f"{float(number):e}" if number else "0.0"
    if kind == "i1":
        return "true" if number else "false"
    return str(int(number))


@st.composite
def programs(draw: Draw, name: str = "main", max_ops: int = 6, ops: Sequence[str] = ()) -> Program:
    """
    A function of up to `max_ops` ops on one to three tensors, whose results are some of its
    values. `ops` limits what is drawn to builders of those names.
    """
    from irees.testing.builders import BUILDERS

    special = draw(st.booleans())
    writer = Writer(draw, special)
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
    """The text of a function."""
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
    """Several functions, to be compiled together."""
    count = draw(st.integers(min_size, max_size))
    return [draw(programs(f"p{n}", max_ops, ops)) for n in range(count)]


def module_text(functions: Sequence[Program]) -> str:
    """The functions as one module."""
    return "\n".join(f.text for f in functions) + "\n"
