"""
Random programs over devices: ops run where a second, slow account of the rules says, with the
fewest transfers that it finds, and results are those of one device.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

import irees
from irees.dialects import get_context
from irees.dialects.flow import TensorTransferOp
from irees.frontends.mlir import import_mlir
from irees.options import Options
from irees.pipeline import device_phases
from irees.testing import profiles
from irees.testing.placements import Account, account, names_in
from irees.transforms.stream.verify_affinities import VerifyAffinitiesPass

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


def view(name: str, x: str) -> str:
    """The same storage by another name."""
    wide = "tensor<2x2xi32>"
    return (
        f"{name}w = tensor.expand_shape {x} [[0, 1]] output_shape [2, 2] : {T} into {wide}\n"
        f"{name} = tensor.collapse_shape {name}w [[0, 1]] : {wide} into {T}"
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
            lines.append(view(f"%n{i}", f"%n{x}"))
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


def placed_and_accounted(text: str) -> tuple[ModuleOp, Account]:
    """The program with its transfers, and what the rules allow; ops have the same `number`."""
    phases = device_phases(Options(devices=HERE))
    *before, place_transfers = [each for phase in phases[:2] for each in phase.passes]
    assert place_transfers.name == "irees-place-transfers"
    ctx, module = get_context(), import_mlir(text)
    for each in before:
        each.apply(ctx, module)
    for number, op in enumerate(module.walk()):
        op.attributes["number"] = IntAttr(number)
    found = account(main_of(module.clone()), DEVICES)
    place_transfers.apply(ctx, module)
    module.verify()
    return module, found


def main_of(module: ModuleOp) -> FuncOp:
    """Its only function."""
    (function,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return function


def transfers_in(module: ModuleOp) -> int:
    return sum(isinstance(op, TensorTransferOp) for op in module.walk())


def check_placement(text: str) -> None:
    """Ops are where they may be, what they read is there, and as few tensors as possible are sent."""
    module, expected = placed_and_accounted(text)
    VerifyAffinitiesPass().apply(get_context(), module)
    found = {op.attributes["number"]: names_in(op) for op in main_of(module).body.walk()
             if "number" in op.attributes}  # fmt: skip
    for op, devices in expected.choices.items():
        if isinstance(op, Operation):
            here = found[op.attributes["number"]]
            assert len(here) == 1
            assert here <= set(devices), f"{op.name} is on {here}, but may be on {devices}"
    if expected.transfers is not None:
        assert transfers_in(module) == expected.transfers
        cut = irees.compile(text, to="devices", devices=HERE)
        assert transfers_in(cut) == expected.transfers


@settings(max_examples=60 * FACTOR, deadline=None)
@given(graphs())
def test_the_fewest_transfers_and_the_results_of_one_device(graph):
    text = text_of(graph)
    check_placement(text)
    count = sum(node.kind == "argument" for node in graph.nodes)
    inputs = [np.arange(4, dtype="i4") * (i + 3) - 5 for i in range(count)]
    whole, parts = irees.compile(text, target="reference"), irees.compile(text, devices=HERE)
    for flag in (False, True):
        for got, want in zip(parts(flag, *inputs), whole(flag, *inputs)):
            np.testing.assert_array_equal(got, want)
    sent = transfers_in(irees.compile(text, to="devices", devices=HERE))
    assert parts.transfers.count <= 2 * sent


# --- control flow, calls and state ---


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
        kinds += ("select", "view", "weights")
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
            elif kind == "select":
                x, y = self.at(x, device, lines), self.at(y, device, lines)
                lines.append(f"{name} = arith.select %c, {x}, {y}{own} : {T}")
            elif kind == "view":
                lines.append(view(name, x))
            elif kind == "weights":
                lines.append(f"{name} = util.global.load @weights : {T}")
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
        f"util.global private @weights = dense<[1, -1, 2, 4]> : {T}\n"
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
    check_placement(text)
    _check(text, HERE)


@settings(max_examples=4 * FACTOR, deadline=None)
@given(programs())
def test_compiled_parts_give_the_results_of_one_device(text):
    _check(text, {"a": "cpu:0", "b": "cpu:1", "c": "reference:0"})
