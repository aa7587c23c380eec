"""
Random programs over devices: ops run where a second, slow account of the rules says, with the
fewest transfers that it finds, and results are those of one device.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

import irees
from irees.analysis.affinity import devices_of
from irees.dialects.flow import TensorTransferOp
from irees.testing import profiles

FACTOR = profiles.load()
DEVICES = ("a", "b", "c")
T = "tensor<4xi32>"
BINARY = ("add", "mul", "sub")
HERE = {name: f"reference:{i}" for i, name in enumerate(DEVICES)}


def compute(name: str, x: str, y: str, own: str = "") -> str:
    """An op on two tensors, with the empty tensor that it writes."""
    kind = BINARY[len(name) % 3]
    return (
        f"{name}o = tensor.empty() : {T}\n"
        f"{name} = linalg.{kind}{own} ins({x}, {y} : {T}, {T}) outs({name}o : {T}) -> {T}"
    )


def place(device: str) -> str:
    return f"#hal.device.promise<@{device}>"


maybe_device = st.none() | st.sampled_from(DEVICES)


# --- graphs: the number of transfers ---


@dataclass
class Node:
    """An argument, a constant, an op on earlier nodes, or a transfer of one."""

    kind: str
    operands: tuple[int, ...] = ()
    device: str | None = None


@dataclass
class Graph:
    nodes: list[Node] = field(default_factory=list)
    results: list[tuple[int, str | None]] = field(default_factory=list)


@st.composite
def graphs(draw) -> Graph:
    graph = Graph()
    for _ in range(draw(st.integers(1, 3))):
        graph.nodes.append(Node("argument", (), draw(maybe_device)))
    for _ in range(draw(st.integers(1, 7))):
        pick = st.integers(0, len(graph.nodes) - 1)
        kind = draw(st.sampled_from(("op", "op", "op", "select", "view", "transfer", "constant")))
        if kind == "constant":
            graph.nodes.append(Node("constant"))
        elif kind == "transfer":
            graph.nodes.append(Node("transfer", (draw(pick),), draw(st.sampled_from(DEVICES))))
        elif kind == "view":
            graph.nodes.append(Node("view", (draw(pick),)))
        else:
            device = draw(maybe_device)
            operands = [draw(pick), draw(pick)]
            if device is not None:
                # What names its device asks for its operands there.
                for i, operand in enumerate(operands):
                    graph.nodes.append(Node("transfer", (operand,), device))
                    operands[i] = len(graph.nodes) - 1
            graph.nodes.append(Node(kind, tuple(operands), device))
    last = len(graph.nodes) - 1
    graph.results = [(last, draw(maybe_device)), (draw(st.integers(0, last)), draw(maybe_device))]
    return graph


def text_of(graph: Graph) -> str:
    arguments, lines = ["%c: i1"], []
    for i, node in enumerate(graph.nodes):
        x, y = (*node.operands, *node.operands, 0, 0)[:2]
        own = f" {{stream.affinity = {place(node.device)}}}" if node.device else ""
        if node.kind == "argument":
            mark = f" {{iree.abi.affinity = {place(node.device)}}}" if node.device else ""
            arguments.append(f"%n{i}: {T}{mark}")
        elif node.kind == "constant":
            lines.append(f"%n{i} = arith.constant dense<{i}> : {T}")
        elif node.kind == "transfer":
            lines.append(f"%n{i} = flow.tensor.transfer %n{x} : {T} to {place(node.device)}")
        elif node.kind == "view":
            wide = "tensor<2x2xi32>"
            lines.append(
                f"%w{i} = tensor.expand_shape %n{x} [[0, 1]] output_shape [2, 2] "
                f": {T} into {wide}\n"
                f"%n{i} = tensor.collapse_shape %w{i} [[0, 1]] : {wide} into {T}"
            )
        elif node.kind == "select":
            lines.append(f"%n{i} = arith.select %c, %n{x}, %n{y}{own} : {T}")
        else:
            lines.append(compute(f"%n{i}", f"%n{x}", f"%n{y}", own))
    results = [T + (f" {{iree.abi.affinity = {place(d)}}}" if d else "") for _, d in graph.results]
    values = ", ".join(f"%n{i}" for i, _ in graph.results)
    return (
        f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) {{\n"
        + "\n".join(lines)
        + f"\nreturn {values} : {T}, {T}\n}}"
    )


def account(graph: Graph) -> tuple[int, dict[int, str]]:
    """The fewest transfers of all placements that the rules allow, and what they leave no choice."""
    nodes = graph.nodes
    live = {i for i, _ in graph.results}
    for i in reversed(range(len(nodes))):
        live |= set(nodes[i].operands) if i in live else set()
    source = list(range(len(nodes)))
    constant = [False] * len(nodes)
    for i, node in enumerate(nodes):
        if node.kind == "transfer":
            source[i] = source[node.operands[0]]
        constant[i] = node.kind == "constant" or (
            node.kind in ("op", "select", "view")
            and node.device is None
            and all(constant[source[o]] for o in node.operands)
        )
    free = [c or (n.kind == "argument" and n.device is None) for c, n in zip(constant, nodes)]
    said = [{n.device} if n.device else set() for n in nodes]
    for i, node in enumerate(nodes):
        if not said[i] and not free[i]:
            said[i] = set().union(*(said[o] for o in node.operands if not free[o]))
    silent = [not s for s in said]
    for _ in nodes:
        for i in live:
            node = nodes[i]
            if node.kind not in ("transfer", "argument", "constant") and not free[i]:
                for o in node.operands:
                    if silent[o] and not free[o]:
                        said[o] = said[o] | said[i]
        for o, device in graph.results:
            if device and silent[o] and not free[o] and nodes[o].kind != "transfer":
                said[o] = said[o] | {device}
    placed = [i for i in sorted(live) if not free[i] and nodes[i].kind != "transfer"]
    choices = [sorted(said[i]) or [DEVICES[0]] for i in placed]
    best = None
    for chosen in product(*choices):
        at = dict(zip(placed, chosen))
        sent = {
            (source[o], at[i])
            for i in placed
            for o in nodes[i].operands
            if not free[source[o]] and at[source[o]] != at[i]
        }
        sent |= {
            (source[o], d)
            for o, d in graph.results
            if d and not free[source[o]] and at[source[o]] != d
        }
        best = len(sent) if best is None else min(best, len(sent))
    certain = {
        i: choice[0]
        for i, choice in zip(placed, choices)
        if len(choice) == 1 and nodes[i].kind in ("op", "select")
    }
    return best or 0, certain


def placed_in(module: ModuleOp) -> dict[int, str]:
    """Where the nodes of a graph are, by their names."""
    found: dict[int, str] = {}
    for op in module.walk():
        if (place := op.attributes.get("stream.affinity")) is not None and op.results:
            name = op.results[0].name_hint or ""
            if name[:1] == "n" and name[1:].isdigit():
                found[int(name[1:])] = min(devices_of(place))
    return found


def transfers_in(module: ModuleOp) -> int:
    return sum(isinstance(op, TensorTransferOp) for op in module.walk())


@settings(max_examples=60 * FACTOR, deadline=None)
@given(graphs())
def test_the_fewest_transfers_and_the_results_of_one_device(graph):
    text = text_of(graph)
    least, certain = account(graph)
    found = placed_in(irees.compile(text, to="placement", devices=HERE))
    assert {i: found.get(i) for i in certain} == certain
    cut = irees.compile(text, to="devices", devices=HERE)
    assert transfers_in(cut) == least
    count = sum(node.kind == "argument" for node in graph.nodes)
    inputs = [np.arange(4, dtype="i4") * (i + 3) - 5 for i in range(count)]
    whole, parts = irees.compile(text, target="reference"), irees.compile(text, devices=HERE)
    for flag in (False, True):
        for got, want in zip(parts(flag, *inputs), whole(flag, *inputs)):
            np.testing.assert_array_equal(got, want)
    assert parts.transfers.count <= 2 * transfers_in(cut)


# --- control flow, calls and state: the results ---


class Writer:
    """Writes a function of random ops, loops, branches and calls on tensors."""

    def __init__(self, draw):
        self.draw = draw
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def at(self, value: str, device: str | None, lines: list[str]) -> str:
        """The value, transferred first where an op names its device."""
        if device is None:
            return value
        name = self.fresh()
        lines.append(f"{name} = flow.tensor.transfer {value} : {T} to {place(device)}")
        return name

    def ops(self, values: list[str], depth: int, lines: list[str]) -> None:
        kinds = ("op", "op", "transfer", "insert", "extract", "call", "load", "store")
        nested = ("for", "if", "while") if depth else ()
        for _ in range(self.draw(st.integers(1, 3))):
            kind = self.draw(st.sampled_from(kinds + nested))
            x, y = (self.draw(st.sampled_from(values)) for _ in range(2))
            device = self.draw(maybe_device)
            own = f" {{stream.affinity = {place(device)}}}" if device else ""
            name = self.fresh()
            if kind == "op":
                x, y = self.at(x, device, lines), self.at(y, device, lines)
                lines.append(compute(name, x, y, own))
            elif kind == "transfer":
                target = self.draw(st.sampled_from(DEVICES))
                lines.append(f"{name} = flow.tensor.transfer {x} : {T} to {place(target)}")
            elif kind == "insert":
                lines.append(f"{name} = tensor.insert %s into {x}[%one] : {T}")
            elif kind == "extract":
                lines.append(f"{name}e = tensor.extract {x}[%one] : {T}")
                e = f"{name}e"
                lines.append(f"{name} = tensor.from_elements {e}, {e}, %s, {e} : {T}")
            elif kind == "load":
                lines.append(f"{name} = util.global.load @state : {T}")
            elif kind == "store":
                lines.append(f"util.global.store {x}, @state : {T}")
                name = x
            elif kind == "call":
                lines.append(f"{name} = func.call @g({x}, {y}) : ({T}, {T}) -> {T}")
            else:
                getattr(self, f"write_{kind}")(name, x, values, depth, lines)
            values.append(name)

    def region(self, values: list[str], depth: int) -> tuple[str, str]:
        inner, lines = list(values), []
        self.ops(inner, depth - 1, lines)
        return "\n".join(lines), inner[-1]

    def write_for(self, name, x, values, depth, lines):
        a = f"{name}a"
        body, out = self.region([*values, a], depth)
        lines.append(
            f"{name} = scf.for {name}i = %zero to %n step %one iter_args({a} = {x}) -> ({T}) {{\n"
            f"{body}\nscf.yield {out} : {T}\n}}"
        )

    def write_if(self, name, x, values, depth, lines):
        first, a = self.region(values, depth)
        second, b = self.region(values, depth)
        lines.append(
            f"{name} = scf.if %c -> ({T}) {{\n{first}\nscf.yield {a} : {T}\n}} else {{\n"
            f"{second}\nscf.yield {b} : {T}\n}}"
        )

    def write_while(self, name, x, values, depth, lines):
        a, i, b, j, k = (f"{name}{letter}" for letter in "aibjk")
        body, out = self.region([*values, b], depth)
        lines.append(
            f"{name}, {name}r = scf.while ({a} = {x}, {i} = %zero) : ({T}, index) -> ({T}, index)"
            f" {{\n{name}c = arith.cmpi slt, {i}, %n : index\n"
            f"scf.condition({name}c) {a}, {i} : {T}, index\n}} do {{\n^bb0({b}: {T}, {j}: index):\n"
            f"{body}\n{k} = arith.addi {j}, %one : index\nscf.yield {out}, {k} : {T}, index\n}}"
        )


@st.composite
def programs(draw) -> str:
    writer, lines = Writer(draw), []
    values = ["%x", "%y", "%z"]
    writer.ops(values, 2, lines)
    callee = [f"%p = flow.tensor.transfer %l : {T} to {place(draw(st.sampled_from(DEVICES)))}"]
    callee = callee if draw(st.booleans()) else [compute("%p", "%l", "%l")]
    marks = [
        f" {{iree.abi.affinity = {place(d)}}}" if (d := draw(maybe_device)) else ""
        for _ in range(4)
    ]
    return (
        f"util.global private mutable @state = dense<5> : {T}\n"
        f"func.func private @g(%l: {T}, %r: {T}) -> {T} {{\n{callee[0]}\n"
        f"{compute('%q', '%p', '%r')}\nreturn %q : {T}\n}}\n"
        f"func.func @main(%x: {T}{marks[0]}, %y: {T}{marks[1]}, %c: i1, %n: index, %s: i32)"
        f" -> ({T}{marks[2]}, {T}{marks[3]}) {{\n%zero = arith.constant 0 : index\n"
        f"%one = arith.constant 1 : index\n%z = arith.constant dense<3> : {T}\n"
        + "\n".join(lines)
        + f"\nreturn {values[-1]}, {draw(st.sampled_from(values))} : {T}, {T}\n}}"
    )


def _check(text: str, devices: dict[str, str]) -> None:
    whole = irees.compile(text, target="reference")
    parts = irees.compile(text, devices=devices)
    x, y = np.arange(4, dtype="i4"), np.array([7, -3, 11, 5], dtype="i4")
    for flag, count in ((True, 0), (False, 3)):
        want, got = whole(x, y, flag, count, 9), parts(x, y, flag, count, 9)
        for a, b in zip(got, want):
            np.testing.assert_array_equal(a, b)


@settings(max_examples=40 * FACTOR, deadline=None)
@given(programs())
def test_control_flow_and_calls_give_the_results_of_one_device(text):
    _check(text, HERE)


@settings(max_examples=4 * FACTOR, deadline=None)
@given(programs())
def test_compiled_parts_give_the_results_of_one_device(text):
    _check(text, {"a": "cpu:0", "b": "cpu:1", "c": "reference:0"})
