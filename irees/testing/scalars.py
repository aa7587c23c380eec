"""Bodies of random generics: scalar ops whose results have a tracked bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from irees.testing.tolerances import EXACT, Tolerance, ulps

if TYPE_CHECKING:
    from irees.testing.strategies import Writer

FLOATS = ("f32", "f64", "f16", "bf16")
BITS = {
    "i1": 1,
    "i8": 8,
    "i16": 16,
    "i32": 32,
    "i64": 64,
    "index": 64,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
}
LIMIT = {"f32": 2.0**20, "f64": 2.0**40, "f16": 2.0**9, "bf16": 2.0**6}
"""Largest magnitude of elementwise values, well within the type's exact integers."""


@dataclass(frozen=True)
class Scalar:
    """A scalar value in a body."""

    name: str
    element: str
    bound: float = 3.0
    tolerance: Tolerance = EXACT


@dataclass
class Body:
    """A body under construction: lines, arguments, scalars and yielded scalars."""

    writer: Writer
    given: Sequence[Scalar]
    lines: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    scalars: list[Scalar] = field(default_factory=list)
    yields: list[Scalar] = field(default_factory=list)

    def __post_init__(self) -> None:
        for scalar in self.given:
            name = self.writer.fresh("x")
            self.arguments.append(name)
            self.scalars.append(Scalar(name, scalar.element, scalar.bound, scalar.tolerance))

    def emit(
        self, op: str, element: str, bound: float = 3.0, tolerance: Tolerance = EXACT
    ) -> Scalar:
        """Adds an op and returns its scalar."""
        scalar = Scalar(self.writer.fresh("s"), element, bound, tolerance)
        self.lines.append(f"{scalar.name} = {op}")
        self.scalars.append(scalar)
        return scalar

    def clamp(self, scalar: Scalar, limit: float) -> Scalar:
        """Adds a clamp of the scalar to [-limit, limit]."""
        low, high = (self.writer.constant(n, scalar.element) for n in (-limit, limit))
        kind = scalar.element
        a = self.emit(
            f"arith.maximumf {scalar.name}, {low} : {kind}", kind, scalar.bound, scalar.tolerance
        )
        return self.emit(f"arith.minimumf {a.name}, {high} : {kind}", kind, limit, scalar.tolerance)

    def step(self, loops: int) -> Scalar:
        """Adds a random op on existing scalars."""
        w = self.writer
        a = w.pick(self.scalars[::-1])
        same = [s for s in self.scalars[::-1] if s.element == a.element]
        b = w.pick(same)
        if a.element in FLOATS:
            return self._float(a, b, loops)
        if a.element == "index":
            return self.emit(f"arith.index_cast {a.name} : index to i64", "i64")
        return self._integer(a, b, loops)

    def _float(self, a: Scalar, b: Scalar, loops: int) -> Scalar:
        w, kind = self.writer, a.element
        choices = ["addf", "subf", "mulf", "maximumf", "minimumf", "negf", "cmpf", "constant",
                   "absf", "select", "maxnumf", "minnumf", "floor", "cast"]  # fmt: skip
        if a.tolerance.name == "E" and not w.special:
            choices += ["exp", "divf", "tanh", "rsqrt"]
        op = w.pick(choices)
        both = a.tolerance | b.tolerance
        if op in ("addf", "subf", "mulf"):
            bound = a.bound * b.bound if op == "mulf" else a.bound + b.bound
            if bound > LIMIT[kind]:
                op = "maximumf"
            else:
                return self.emit(f"arith.{op} {a.name}, {b.name} : {kind}", kind, bound, both)
        if op in ("maximumf", "minimumf", "maxnumf", "minnumf"):
            bound = max(a.bound, b.bound)
            return self.emit(f"arith.{op} {a.name}, {b.name} : {kind}", kind, bound, both)
        if op == "constant":
            return self._with_constant(a)
        if op == "negf":
            return self.emit(f"arith.negf {a.name} : {kind}", kind, a.bound, a.tolerance)
        if op == "absf" or both.name != "E":
            return self.emit(f"math.absf {a.name} : {kind}", kind, a.bound, a.tolerance)
        return self._of_exact(op, a, b)

    def _with_constant(self, a: Scalar) -> Scalar:
        """Adds an op on a float and a constant, unless the result may be too large."""
        w, kind = self.writer, a.element
        number = w.constant(w.pick([1.0, 2.0, -1.0]), kind)
        chosen = w.pick(["addf", "mulf", "subf"])
        bound = a.bound * 2 if chosen == "mulf" else a.bound + 2
        if bound > LIMIT[kind]:
            return a
        return self.emit(f"arith.{chosen} {a.name}, {number} : {kind}", kind, bound, a.tolerance)

    def _of_exact(self, op: str, a: Scalar, b: Scalar) -> Scalar:
        """Adds an op whose results would differ for operands that are not exact."""
        w, kind = self.writer, a.element
        if op == "cmpf":
            predicate = w.pick(["olt", "oge", "oeq", "une", "ult", "uno", "ord", "ogt", "ueq"])
            return self.emit(f"arith.cmpf {predicate}, {a.name}, {b.name} : {kind}", "i1")
        if op == "select":
            return self._select(a, b)
        if op == "floor":
            name = w.pick(["floor", "ceil", "roundeven", "trunc"])
            return self.emit(f"math.{name} {a.name} : {kind}", kind, a.bound)
        if op == "cast":
            return as_element(self, a, w.pick(["f32", "i32", "f16", "i8", "i64", "bf16"]))
        if op == "divf":
            return self.emit(f"arith.divf {a.name}, {b.name} : {kind}", kind, LIMIT[kind], ulps(2))
        if op == "exp":
            small = self.clamp(a, 3.0)
            return self.emit(f"math.exp {small.name} : {kind}", kind, 21.0, ulps(4))
        if op == "rsqrt":
            positive = self.emit(f"math.absf {a.name} : {kind}", kind, a.bound)
            return self.emit(f"math.rsqrt {positive.name} : {kind}", kind, LIMIT[kind], ulps(8))
        return self.emit(f"math.tanh {a.name} : {kind}", kind, 1.0, ulps(8))

    def _select(self, a: Scalar, b: Scalar) -> Scalar:
        conditions = [s for s in self.scalars if s.element == "i1"]
        kind = a.element
        if not conditions:
            op = f"arith.cmpf olt, {a.name}, {b.name}"
            if kind not in FLOATS:
                op = f"arith.cmpi slt, {a.name}, {b.name}"
            conditions = [self.emit(f"{op} : {kind}", "i1")]
        bound = max(a.bound, b.bound)
        return self.emit(
            f"arith.select {conditions[-1].name}, {a.name}, {b.name} : {kind}",
            kind, bound, a.tolerance | b.tolerance,
        )  # fmt: skip

    def _integer(self, a: Scalar, b: Scalar, loops: int) -> Scalar:
        w, kind = self.writer, a.element
        # edge cases of i1 are covered by tests/properties/test_scalars.py
        shifts = [] if kind == "i1" else ["shli", "shrsi", "shrui"]
        divisions = ["divsi", "remsi", "divui", "remui", "floordivsi", "ceildivsi"]
        divisions = [] if kind == "i1" else divisions
        op = w.pick(
            ["addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui",
             "cmpi", "select", "constant", "index", "cast", *divisions, *shifts]
        )  # fmt: skip
        if op == "cmpi":
            predicate = w.pick(["slt", "eq", "ne", "sge", "ult", "ugt", "sle"])
            return self.emit(f"arith.cmpi {predicate}, {a.name}, {b.name} : {kind}", "i1")
        if op == "select":
            return self._select(a, b)
        if op == "constant":
            number = w.constant(w.pick([1, 0, 1] if kind == "i1" else [1, 2, -1, 7]), kind)
            chosen = w.pick(["addi", "muli", *divisions[:3], *shifts[:1]])
            return self.emit(f"arith.{chosen} {a.name}, {number} : {kind}", kind)
        if op == "index":
            if not loops or kind not in ("i32", "i64"):
                return a
            dim = w.draw(st.integers(0, loops - 1))
            index = self.emit(f"linalg.index {dim} : index", "index")
            number = self.emit(f"arith.index_cast {index.name} : index to {kind}", kind)
            return self.emit(f"arith.addi {a.name}, {number.name} : {kind}", kind)
        if op == "cast":
            return as_element(self, a, w.pick(["i64", "i32", "i8", "f32", "i1", "i16", "f64"]))
        return self.emit(f"arith.{op} {a.name}, {b.name} : {kind}", kind)


def as_element(body: Body, a: Scalar, target: str) -> Scalar:
    """Casts the scalar to another element type; floats stay small integers."""
    w, kind = body.writer, a.element
    if target == kind:
        return a
    if kind in FLOATS and target in FLOATS:
        if a.bound > LIMIT[target]:
            a = body.clamp(a, LIMIT[target])
        if BITS[kind] == BITS[target]:
            a = body.emit(f"arith.extf {a.name} : {kind} to f32", "f32", a.bound, a.tolerance)
            kind = "f32"
        op = "truncf" if BITS[kind] > BITS[target] else "extf"
        tolerance = a.tolerance
        if tolerance.name != "E" and op == "extf":
            tolerance = Tolerance("R", 1 << (BITS[target] - BITS[kind]), 1)
        return body.emit(f"arith.{op} {a.name} : {kind} to {target}", target, a.bound, tolerance)
    if kind in FLOATS:
        if a.tolerance.name != "E":
            return a
        if target == "i1":
            zero = w.constant(0.0, kind)
            return body.emit(f"arith.cmpf une, {a.name}, {zero} : {kind}", "i1")
        op = w.pick(["fptosi", "fptoui"])
        return body.emit(f"arith.{op} {a.name} : {kind} to {target}", target)
    if target in FLOATS:
        if kind == "i1":
            return body.emit(f"arith.uitofp {a.name} : i1 to {target}", target, 1.0)
        small = body.emit(f"arith.remsi {a.name}, {w.constant(5, kind)} : {kind}", kind)
        return body.emit(f"arith.sitofp {small.name} : {kind} to {target}", target, 4.0)
    if BITS[kind] > BITS[target]:
        return body.emit(f"arith.trunci {a.name} : {kind} to {target}", target)
    op = w.pick(["extsi", "extui"])
    return body.emit(f"arith.{op} {a.name} : {kind} to {target}", target)
