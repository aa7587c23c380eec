"""Random programs on buffers leave in their arguments what they leave there as tensors."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import MemRefType

import irees
from irees.dialects import get_context
from irees.dialects.irees import walk_outside_kernels
from irees.frontends.mlir import import_mlir
from irees.interpreters import Interpreter
from irees.interpreters.values import MemRef
from irees.testing import profiles
from irees.transforms import load_pass

FACTOR = profiles.load()
N = 6


KIND = f"memref<{N}xi32>"


@dataclass
class Writer:
    """Lines of MLIR on three buffers."""

    draw: st.DrawFn
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def line(self, text: str) -> str:
        """Adds `%n = text`; returns the name."""
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def buffer(self) -> str:
        return self.draw(st.sampled_from(["%a", "%b", "%t"]))

    def view(self, buffer: str, part: bool) -> tuple[str, str]:
        """A whole buffer, or a view of three of its elements: a value and its type."""
        if not part:
            return buffer, KIND
        first, step = self.draw(st.integers(0, 1)), self.draw(st.integers(1, 2))
        kind = f"memref<3xi32, strided<[{step}]{f', offset: {first}' if first else ''}>>"
        return self.line(f"memref.subview {buffer}[{first}] [3] [{step}] : {KIND} to {kind}"), kind

    def place(self, counters: list[str]) -> str:
        return self.draw(st.sampled_from([*counters, "%c0", "%c2", "%c5"]))

    def block(self, counters: list[str], depth: int) -> None:
        ops = [self.load, self.copy, self.fill, self.add]
        for _ in range(self.draw(st.integers(1, 4))):
            self.draw(st.sampled_from([*ops, *([self.loop, self.branch] if depth else [])]))(
                counters, depth
            )

    def load(self, counters: list[str], depth: int) -> None:
        source, into = self.place(counters), self.place(counters)
        value = self.line(f"memref.load {self.buffer()}[{source}] : {KIND}")
        self.lines.append(f"memref.store {value}, {self.buffer()}[{into}] : {KIND}")

    def copy(self, counters: list[str], depth: int) -> None:
        self.lines.append(f"memref.copy {self.buffer()}, {self.buffer()} : {KIND} to {KIND}")

    def fill(self, counters: list[str], depth: int) -> None:
        value, kind = self.view(self.buffer(), self.draw(st.booleans()))
        number = self.draw(st.integers(0, 2))
        self.lines.append(f"linalg.fill ins(%k{number} : i32) outs({value} : {kind})")

    def add(self, counters: list[str], depth: int) -> None:
        """Into another buffer: one op must not read what it writes elsewhere."""
        source, part = self.buffer(), self.draw(st.booleans())
        target = self.draw(st.sampled_from([n for n in ("%a", "%b", "%t") if n != source]))
        one, kind = self.view(source, part)
        into, kind_of_into = self.view(target, part)
        ins = f"ins({one}, {into} : {kind}, {kind_of_into})"
        self.lines.append(f"linalg.add {ins} outs({into} : {kind_of_into})")

    def loop(self, counters: list[str], depth: int) -> None:
        self.count += 1
        counter, end = f"%i{self.count}", self.draw(st.sampled_from(["%c0", "%c2", "%c3"]))
        self.lines.append(f"scf.for {counter} = %c0 to {end} step %c1 {{")
        self.block([*counters, counter], depth - 1)
        self.lines.append("}")

    def branch(self, counters: list[str], depth: int) -> None:
        self.lines.append("scf.if %flag {")
        self.block(counters, depth - 1)
        if self.draw(st.booleans()):
            self.lines.append("} else {")
            self.block(counters, depth - 1)
        self.lines.append("}")


@st.composite
def programs(draw) -> str:
    writer = Writer(draw)
    writer.block([], 2)
    constants = [f"%c{i} = arith.constant {i} : index" for i in range(N)]
    constants += [f"%k{i} = arith.constant {v} : i32" for i, v in enumerate((0, 7, -3))]
    head = f"func.func @main(%a: {KIND}, %b: {KIND}, %flag: i1) {{"
    alloc = [f"%t = memref.alloc() : {KIND}", f"linalg.fill ins(%k1 : i32) outs(%t : {KIND})"]
    return "\n".join([head, *constants, *alloc, *writer.lines, "return", "}"])


def run_on_buffers(text: str, flag: bool) -> list[np.ndarray]:
    a, b = np.arange(N, dtype=np.int32), np.arange(N, dtype=np.int32) * 10
    Interpreter(import_mlir(text)).call("main", MemRef.of(a), MemRef.of(b), np.bool_(flag))
    return [a, b]


@settings(max_examples=80 * FACTOR, deadline=None)
@given(programs(), st.booleans())
def test_the_same_is_left_in_the_arguments(text, flag):
    expected = run_on_buffers(text, flag)
    module = import_mlir(text)
    load_pass("irees-raise-buffers")().apply(get_context(), module)
    module.verify()
    outside = [value.type for op in walk_outside_kernels(module) for value in op.results]
    assert not [kind for kind in outside if isinstance(kind, MemRefType)]
    a, b = np.arange(N, dtype=np.int32), np.arange(N, dtype=np.int32) * 10
    results = Interpreter(module).call("main", a, b, np.bool_(flag))
    found = [a, b]
    function = next(iter(module.ops))
    for i, attribute in enumerate(function.res_attrs or ()):  # type: ignore
        found[attribute.data["irees.updates"].value.data] = results[i]
    event(f"results: {len(results)}")
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted, text)


@settings(max_examples=6 * FACTOR, deadline=None)
@given(programs(), st.booleans())
def test_compiled(text, flag):
    expected = run_on_buffers(text, flag)
    found = [np.arange(N, dtype=np.int32), np.arange(N, dtype=np.int32) * 10]
    irees.compile(text)(*found, flag)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted, text)
