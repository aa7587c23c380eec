"""
Random bodies of scalar ops, to test peephole rewrites.

A program applies one body to tensors of one element type and returns all scalars of the body.
Constants are the special values of rewrites: 0, -0, 1, 2, infinities, NaN, the smallest and largest
integers, the bit width. Inputs hold the same values. Two evaluations of one op round alike, so
results are compared bit by bit, which exposes rewrites that are valid for real numbers only.
`sweep` applies each op to each pair of an argument, the same argument, another one and each
constant; `peepholes` draws deeper bodies, in which operands repeat.

    %s0 = arith.mulf %x0, %c2 ; %s1 = arith.subf %s0, %s0 ; %s2 = arith.cmpf oeq, %s1, %x0
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from irees.testing.scalars import BITS
from irees.testing.strategies import DTYPES, FLOATS, INTEGERS, Dim, Draw, Program, Value, typed

SIZE = 32
"""Elements of each tensor: enough for most pairs of the special numbers."""
FLOAT_OPS = (
    *("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf", "arith.minimumf"),
    *("arith.maxnumf", "arith.minnumf"),
)
FLOAT_UNARY = ("arith.negf", "math.absf", "math.floor", "math.ceil", "math.trunc")
INTEGER_OPS = tuple(
    f"arith.{name}"
    for name in "addi subi muli andi ori xori maxsi minsi maxui minui shli shrsi shrui "
    "divsi remsi divui remui".split()
)
FLOAT_PREDICATES = "oeq une olt oge ult ord uno ueq one ogt ole".split()
INTEGER_PREDICATES = "eq ne slt sle sgt sge ult ule ugt uge".split()
DIVISIONS = ("div", "rem")
SHIFTS = ("shl", "shr")


def numbers_of(element: str) -> list[Any]:
    """Returns the special numbers of an element type."""
    if element in FLOATS:
        return [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, math.inf, -math.inf, math.nan]
    bits = BITS[element]
    if bits == 1:
        return [0, 1]
    return [0, 1, -1, 2, 4, 7, bits - 1, bits, -(1 << (bits - 1)), (1 << (bits - 1)) - 1]


def vocabulary(element: str) -> list[str]:
    """Returns the ops of an element type, comparisons twice: they have many predicates."""
    if element in FLOATS:
        return [*FLOAT_OPS, *FLOAT_UNARY, "arith.cmpf", "arith.cmpf", "arith.select"]
    partial = tuple(f"arith.{name}" for name in (*DIVISIONS, *SHIFTS))
    safe = [op for op in INTEGER_OPS if element != "i1" or not op.startswith(partial)]
    return [*safe, "arith.cmpi", "arith.cmpi", "arith.select"]


def number_text(number: Any, element: str) -> str:
    """Returns a constant in MLIR syntax."""
    if element == "i1":
        return "true" if number else "false"
    if element in FLOATS:
        value = np.asarray(number, DTYPES[element])
        return f"0x{value.view(f'u{value.itemsize}').item():0{2 * value.itemsize}X}"
    return str(number)


class Peephole:
    """A body under construction: its lines and its scalars by element type."""

    def __init__(self, draw: Draw, element: str, ops: Sequence[str]):
        self.draw, self.element = draw, element
        self.lines: list[str] = []
        self.scalars: list[tuple[str, str]] = []
        self.ops = [op for op in vocabulary(element) if not ops or op in ops]

    def pick(self, values: Sequence[Any]) -> Any:
        """Draws one of the values."""
        return self.draw(st.sampled_from(values))

    def constant(self) -> str:
        """Adds a constant."""
        name = f"%c{len(self.lines)}"
        text = number_text(self.pick(numbers_of(self.element)), self.element)
        kind = "" if self.element == "i1" else f" : {self.element}"
        self.lines.append(f"{name} = arith.constant {text}{kind}")
        return name

    def operand(self, kind: str) -> str:
        """Returns a scalar of a type, or a constant of the element type."""
        found = [name for name, each in self.scalars if each == kind]
        if kind == self.element and (not found or self.pick((False, True, False))):
            return self.constant()
        return self.pick(found[::-1])

    def emit(self, text: str, kind: str) -> None:
        """Adds an op and its result."""
        name = f"%s{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.scalars.append((name, kind))

    def step(self) -> None:
        """Adds an op on scalars of the body; its operands are often the same."""
        op, kind = self.pick(self.ops), self.element
        a = self.operand(kind)
        if op in FLOAT_UNARY:
            self.emit(f"{op} {a} : {kind}", kind)
            return
        b = a if self.pick((False, False, True)) else self.operand(kind)
        if op in ("arith.cmpf", "arith.cmpi"):
            names = FLOAT_PREDICATES if op == "arith.cmpf" else INTEGER_PREDICATES
            self.emit(f"{op} {self.pick(names)}, {a}, {b} : {kind}", "i1")
        elif op == "arith.select":
            if not any(each == "i1" for _, each in self.scalars):
                names = ("arith.cmpf", "olt") if kind in FLOATS else ("arith.cmpi", "slt")
                self.emit(f"{names[0]} {names[1]}, {a}, {b} : {kind}", "i1")
            condition = self.operand("i1")
            self.emit(f"arith.select {condition}, {a}, {b} : {kind}", kind)
        else:
            self.emit(f"{op} {a}, {b} : {kind}", kind)


class Special(Program):
    """A program whose inputs hold the special numbers."""

    def inputs(self) -> list[np.ndarray]:
        """Returns the inputs, which depend on the seed only."""
        random = np.random.default_rng(self.seed)
        found: list[np.ndarray] = []
        for value in self.arguments:
            dtype = DTYPES[value.element]
            edges = np.array(numbers_of(value.element), dtype)
            small = random.integers(0, 2, value.shape) if dtype.kind == "b" else None
            if small is None:
                small = random.integers(-4, 5, value.shape)
                if value.element in FLOATS:
                    small = small / 2 + random.random(value.shape)
            chosen = random.choice(edges, value.shape)
            found.append(np.where(random.random(value.shape) < 0.5, chosen, small.astype(dtype)))
        return found


@st.composite
def peepholes(draw: Draw, name: str = "main", max_ops: int = 6, ops: Sequence[str] = ()) -> Program:
    """
    Draws a function on one to three tensors of one element type that applies a body of up to
    `max_ops` ops and returns all scalars of the body. `ops` restricts the ops by name.
    """
    element = draw(st.sampled_from(["f32", "i32", *FLOATS[1:], *INTEGERS[1:]]))
    body = Peephole(draw, element, ops)
    if not body.ops:
        other = "f32" if element not in FLOATS else "i32"
        body = Peephole(draw, other, ops)
    count = draw(st.integers(1, 3))
    arguments = [f"%x{n}" for n in range(count)]
    body.scalars += [(argument, body.element) for argument in arguments]
    for _ in range(draw(st.integers(1, max_ops)) if body.ops else 0):
        body.step()
    yielded = body.scalars[count:] or body.scalars
    return _program(name, body.element, body.lines, yielded, count, draw(st.integers(0, 999)))


def sweep(element: str, ops: Sequence[str] = ()) -> Iterator[Program]:
    """
    Yields programs of one op each, or of one predicate, on every pair of operands.

    `ops` restricts the ops by name.
    """
    constants = [
        (f"%c{n}", number_text(number, element)) for n, number in enumerate(numbers_of(element))
    ]
    kind = "" if element == "i1" else f" : {element}"
    first = [f"{name} = arith.constant {text}{kind}" for name, text in constants]
    pairs = [("%x0", "%x0"), ("%x0", "%x1")]
    for name, _ in constants:
        pairs += [("%x0", name), (name, "%x0")]
    pairs += [(a, b) for a, _ in constants for b, _ in constants]
    for op, result in _spelled(element, ops):
        unary = op in FLOAT_UNARY
        operands = dict.fromkeys((a,) for a, _ in pairs) if unary else pairs
        lines = [f"%s{n} = {op} {', '.join(each)} : {element}" for n, each in enumerate(operands)]
        scalars = [(f"%s{n}", result) for n in range(len(lines))]
        yield _program("p0", element, [*first, *lines], scalars, 2, seed=len(lines))


def _spelled(element: str, ops: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the ops of an element type with their predicates, and the types of their results."""
    for op in dict.fromkeys(vocabulary(element)):
        if (ops and op not in ops) or op == "arith.select":
            continue
        if op in ("arith.cmpf", "arith.cmpi"):
            names = FLOAT_PREDICATES if op == "arith.cmpf" else INTEGER_PREDICATES
            yield from ((f"{op} {name},", "i1") for name in names)
        else:
            yield op, element


def alone(program: Program) -> Iterator[Program]:
    """Splits a program of `sweep`: yields one program per result."""
    lines = program.text.splitlines()
    body = [line.strip() for line in lines if line.startswith("    %")]
    element = program.arguments[0].element
    constants = [line for line in body if line.startswith("%c")]
    for line, result in zip(body[len(constants) :], program.results, strict=True):
        name = line.partition(" = ")[0]
        used = [c for c in constants if c.partition(" = ")[0] in line.replace(",", " ").split()]
        yield _program("p0", element, [*used, line], [(name, result.element)], 2, program.seed)


def _program(
    name: str,
    element: str,
    lines: Sequence[str],
    yielded: Sequence[tuple[str, str]],
    count: int,
    seed: int,
) -> Program:
    """Returns a function that applies a body to `count` tensors and returns some of its scalars."""
    dims = (Dim(SIZE),)
    given = [Value(f"%a{n}", element, dims) for n in range(count)]
    inits = [Value(f"%e{n}", kind, dims) for n, (_, kind) in enumerate(yielded)]
    returned = [replace(init, name=f"%r#{n}") for n, init in enumerate(inits)]
    scalars = [f"%x{n}: {element}" for n in range(count)]
    scalars += [f"%o{n}: {init.element}" for n, init in enumerate(inits)]
    maps = ", ".join(["affine_map<(i) -> (i)>"] * len(scalars))
    arguments = ", ".join(f"{value.name}: {value.type}" for value in given)
    results = f"({', '.join(value.type for value in inits)})"
    names, kinds = zip(*yielded, strict=True)
    text = "\n".join(
        [
            f"func.func @{name}({arguments}) -> {results} {{",
            *(f"  {init.name} = tensor.empty() : {init.type}" for init in inits),
            f"  %r:{len(inits)} = linalg.generic {{indexing_maps = [{maps}],",
            f'      iterator_types = ["parallel"]}} ins({typed(given)})',
            f"      outs({typed(inits)}) {{",
            f"  ^bb0({', '.join(scalars)}):",
            *(f"    {line}" for line in lines),
            f"    linalg.yield {', '.join(names)} : {', '.join(kinds)}",
            f"  }} -> {results}",
            f"  return {typed(returned)}",
            "}",
        ]
    )
    return Special(name, text, tuple(given), tuple(returned), True, seed)
