"""
Random loops and branches on tensors that insert single elements on the host.

The host may store an element in place. Programs here insert into every tensor that is visible,
one from outside of a loop included, and carry the same tensor several times.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from irees.frontends.mlir import import_mlir
from irees.testing import profiles
from irees.testing.oracles import Case, compiled_agrees, interpret, phases_agree

FACTOR = profiles.load()
SIZE = 4


@dataclass
class Writer:
    """Lines of MLIR, and the tensors that are visible."""

    draw: st.DrawFn
    kind: str
    lines: list[str] = field(default_factory=list)
    count: int = 0
    counters: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def line(self, text: str) -> str:
        """Adds `%n = text`; returns the name."""
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def tensors(self, visible: list[str], count: int) -> list[str]:
        """Draws tensors, mostly some that nothing has used: those may be updated in place."""
        drawn: list[str] = []
        for _ in range(count):
            unused = [v for v in visible if v not in self.used]
            recent = unused if unused and self.draw(st.integers(0, 3)) else visible[-3:]
            drawn.append(self.draw(st.sampled_from(recent)))
        self.used.update(drawn)
        return drawn

    def insert(self, visible: list[str]) -> str:
        """Inserts an element of some tensor, at a place that may change from turn to turn."""
        source, into = self.tensors(visible, 2)
        read, place = self.place(), self.place()
        number = self.line(f"tensor.extract {source}[{read}] : {self.kind}")
        return self.line(f"tensor.insert {number} into {into}[{place}] : {self.kind}")

    def place(self) -> str:
        place = self.line(f"arith.constant {self.draw(st.integers(0, SIZE - 1))} : index")
        if not self.counters or self.draw(st.booleans()):
            return place
        # Counters are below SIZE.
        return self.draw(st.sampled_from(self.counters))

    def add(self, visible: list[str]) -> str:
        a, b = self.tensors(visible, 2)
        return self.line(f"arith.addi {a}, {b} : {self.kind}")

    def block(self, visible: list[str], depth: int) -> list[str]:
        """Returns the tensors that are visible behind a few ops."""
        visible = list(visible)
        for _ in range(self.draw(st.integers(1, 3))):
            ops = [self.insert, self.insert, self.add]
            regions = [self.branch, self.counted, self.looped] if depth else []
            chosen = self.draw(st.sampled_from([*ops, *regions]))
            made = chosen(visible, depth) if chosen in regions else [chosen(visible)]
            visible += made
        return visible

    def results(self, op: str, count: int) -> tuple[str, list[str]]:
        self.count += 1
        return f"%v{self.count}:{count} = {op}", [f"%v{self.count}#{i}" for i in range(count)]

    def branch(self, visible: list[str], depth: int) -> list[str]:
        count = self.draw(st.integers(1, 2))
        kinds = ", ".join([self.kind] * count)
        head, results = self.results(f"scf.if %flag -> ({kinds}) {{", count)
        self.lines.append(head)
        for end in ("} else {", "}"):
            inside = self.block(visible, depth - 1)
            self.lines.append(f"scf.yield {', '.join(self.tensors(inside, count))} : {kinds}")
            self.lines.append(end)
        return results

    def counted(self, visible: list[str], depth: int) -> list[str]:
        count = self.draw(st.integers(1, 3))
        kinds = ", ".join([self.kind] * count)
        self.count += 1
        number = self.count
        carried = [f"%a{number}_{i}" for i in range(count)]
        inits = zip(carried, self.tensors(visible, count), strict=True)
        given = ", ".join(f"{a} = {b}" for a, b in inits)
        loop = f"scf.for %i{number} = %c0 to %n step %c1 iter_args({given}) -> ({kinds}) {{"
        head, results = self.results(loop, count)
        self.lines.append(head)
        inside = self.counting(f"%i{number}", [*visible, *carried], depth)
        self.lines.append(f"scf.yield {', '.join(self.tensors(inside, count))} : {kinds}\n}}")
        return results

    def counting(self, counter: str, visible: list[str], depth: int) -> list[str]:
        self.counters.append(counter)
        inside = self.block(visible, depth - 1)
        self.counters.pop()
        return inside

    def looped(self, visible: list[str], depth: int) -> list[str]:
        """A while loop that passes some of its tensors on, in any order, and some twice."""
        count, passed = self.draw(st.integers(1, 2)), self.draw(st.integers(1, 3))
        kinds, later = ", ".join([self.kind] * count), ", ".join([self.kind] * passed)
        self.count += 1
        number = self.count
        carried = [f"%a{number}_{i}" for i in range(count)]
        inits = zip(carried, self.tensors(visible, count), strict=True)
        given = ", ".join(f"{a} = {b}" for a, b in inits)
        types = f"({kinds}, index) -> ({later}, index)"
        loop = f"scf.while ({given}, %i{number} = %c0) : {types} {{"
        head, results = self.results(loop, passed + 1)
        self.lines.append(head)
        inside = self.block([*visible, *carried], 0)
        more = self.line(f"arith.cmpi slt, %i{number}, %n : index")
        first, *rest = self.tensors(inside, passed)
        sent = [first, *([first] * len(rest) if self.draw(st.booleans()) else rest)]
        self.lines.append(f"scf.condition({more}) {', '.join(sent)}, %i{number} : {later}, index")
        arguments = [f"%b{number}_{i}" for i in range(passed)]
        typed = ", ".join(f"{a}: {self.kind}" for a in arguments)
        self.lines.append(f"}} do {{\n^bb0({typed}, %j{number}: index):")
        following = self.line(f"arith.addi %j{number}, %c1 : index")
        inside = self.counting(f"%j{number}", [*visible, *arguments], depth)
        yielded = ", ".join(self.tensors(inside, count))
        self.lines.append(f"scf.yield {yielded}, {following} : {kinds}, index\n}}")
        return results[:-1]


@st.composite
def programs(draw) -> str:
    kind = draw(st.sampled_from([f"tensor<{SIZE}xi32>", "tensor<?xi32>"]))
    writer = Writer(draw, kind)
    first = writer.line(f"arith.addi %x, %y : {kind}")
    visible = writer.block(["%x", "%y", first], 2)
    returned = writer.tensors(visible, 3)
    head = f"func.func @main(%x: {kind}, %y: {kind}, %n: index, %flag: i1)"
    constants = "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index"
    body = "\n".join([f"{head} -> ({kind}, {kind}, {kind}) {{", constants, *writer.lines])
    return f"{body}\nreturn {', '.join(returned)} : {kind}, {kind}, {kind}\n}}"


@st.composite
def cases(draw) -> Case:
    x, y = np.arange(SIZE, dtype=np.int32), np.full(SIZE, 100, np.int32)
    return Case(
        "main", (x, y, np.int64(draw(st.sampled_from([0, 2, 3]))), np.bool_(draw(st.booleans())))
    )


@settings(max_examples=120 * FACTOR, deadline=None)
@given(programs(), cases())
def test_each_phase_gives_the_same_values(text, case):
    module = import_mlir(text)
    expected = interpret(module, [case])
    assert phases_agree(module, [case], expected) == [], text
    event(f"loops: {text.count('scf.for') + text.count('scf.while')}")


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
@settings(max_examples=4 * FACTOR, deadline=None)
@given(programs(), cases())
def test_compiled(target, text, case):
    module = import_mlir(text)
    expected = interpret(module, [case])
    assert compiled_agrees(module, [case], expected, isolate=False, target=target) == [], text
