"""
Reductions with what stands around them, in C as in the interpreter: random contractions, blocked
convolutions, poolings and sums, from any fill, each read by elementwise ops of any shape.

Numbers are small and whole, so sums are exact in any order; with `fp=strict` they are any numbers,
and the order is that of the loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import ml_dtypes
import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from irees.errors import ArgumentError
from irees.frontends.mlir import import_mlir
from irees.pipeline import OPTIONAL
from irees.target import Target
from irees.testing import profiles
from irees.testing.oracles import Case, compiled_agrees, interpret

FACTOR = profiles.load()
DTYPES = {
    "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "i8": np.int8,
    "i32": np.int32,
}  # fmt: skip
ROWS = (1, 2, 5, 7, 8, 9, 15, 16, 17, 33)
COLUMNS = (8, 16, 32, 48, 64, 96)
"""Whole vectors: an odd last column leaves consumers alone."""
DEPTHS = (0, 1, 5, 16, 33, 512, 513, 1024, 1030)
WINOGRAD = "irees-convert-conv2d-to-winograd"
"""Rounds, which no test here allows for."""


def targets() -> list[str]:
    """Register files that this machine can run: vectors of 16, 32 bytes, and its own."""
    found = ["cpu"]
    for name in ("cpu:generic", "cpu:x86-64-v3"):
        try:
            if not Target.parse(name).missing_features():
                found.append(name)
        except ArgumentError:
            pass
    return found


TARGETS = targets()


@dataclass(frozen=True)
class Value:
    """A tensor and the loops that its dims are."""

    name: str
    dims: str


@dataclass
class Function:
    """A function that grows op by op. A letter is a loop, and a size wherever it is used."""

    data: DataObject
    name: str
    element: str
    real: bool
    sizes: dict[str, int] = field(default_factory=dict)
    dynamic: frozenset[str] = frozenset()
    lines: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    inputs: list[np.ndarray] = field(default_factory=list)
    resources: dict[str, str] = field(default_factory=dict)
    bounds: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def draw(self, *choices):
        return self.data.draw(st.sampled_from(choices))

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    # --- tensors --------------------------------------------------------------------------

    def extent(self, expr: str) -> int:
        """The size of a dim that is indexed by an expression of loops."""
        return eval(expr, {}, {k: n - 1 for k, n in self.sizes.items()}) + 1

    def kind(self, dims, element: str | None = None) -> str:
        sizes = ["?" if d in self.dynamic else str(self.extent(d)) for d in dims]
        return f"tensor<{'x'.join([*sizes, element or self.element])}>"

    def numbers(self, dims, element: str) -> np.ndarray:
        random = np.random.default_rng(self.data.draw(st.integers(0, 99)))
        shape = [self.extent(d) for d in dims]
        if self.real and element[0] == "f":
            return random.standard_normal(shape).astype(DTYPES[element])
        return random.integers(-3, 4, shape).astype(DTYPES[element])

    def argument(self, dims, element: str | None = None) -> str:
        element = element or self.element
        name = f"%x{len(self.arguments)}"
        self.arguments.append(f"{name}: {self.kind(dims, element)}")
        self.inputs.append(self.numbers(dims, element))
        for position, dim in enumerate(dims):
            if dim in self.dynamic and dim not in self.bounds:
                self.bounds[dim] = self.fresh()
                at = self.fresh()
                self.lines.append(f"{at} = arith.constant {position} : index")
                self.lines.append(
                    f"{self.bounds[dim]} = tensor.dim {name}, {at} : {self.kind(dims, element)}"
                )
        return name

    def constant(self, dims, element: str) -> str:
        name, key = self.fresh(), f"{self.name}_{self.count}"
        self.resources[key] = "04000000" + self.numbers(dims, element).tobytes().hex()
        self.lines.append(
            f"{name} = arith.constant dense_resource<{key}> : {self.kind(dims, element)}"
        )
        return name

    def empty(self, dims) -> str:
        name = self.fresh()
        known = ", ".join(self.bounds[d] for d in dims if d in self.dynamic)
        self.lines.append(f"{name} = tensor.empty({known}) : {self.kind(dims)}")
        return name

    def filled(self, dims, number: str) -> str:
        value, name, empty = self.fresh(), self.fresh(), self.empty(dims)
        self.lines.append(f"{value} = arith.constant {number} : {self.element}")
        self.lines.append(
            f"{name} = linalg.fill ins({value} : {self.element}) outs({empty} :"
            f" {self.kind(dims)}) -> {self.kind(dims)}"
        )
        return name

    def generic(self, loops: str, reads, operands, elements, out, init: str, body: str) -> str:
        """loops: `mn/k`, parallel and reduced; `reads` and `out`: what indexes operands."""
        name, (parallel, reduced) = self.fresh(), loops.split("/")
        letters = ", ".join(parallel + reduced)
        maps = ", ".join(f"affine_map<({letters}) -> ({', '.join(r)})>" for r in [*reads, out])
        kinds = ", ".join(['"parallel"'] * len(parallel) + ['"reduction"'] * len(reduced))
        types = ", ".join(self.kind(r, e) for r, e in zip(reads, elements, strict=True))
        arguments = ", ".join(f"%a{i}: {e}" for i, e in enumerate([*elements, self.element]))
        self.lines.append(
            f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"
            f" ins({', '.join(operands)} : {types}) outs({init} : {self.kind(out)}) {{\n"
            f"^bb0({arguments}):\n{body}\n}} -> {self.kind(out)}"
        )
        return name

    def op(self, name: str) -> str:
        """add, sub, mul, max or min of the element type"""
        if self.element[0] == "f":
            return {"max": "arith.maximumf", "min": "arith.minimumf"}.get(name, f"arith.{name}f")
        return {"max": "arith.maxsi", "min": "arith.minsi"}.get(name, f"arith.{name}i")

    # --- reductions -----------------------------------------------------------------------

    def init(self, dims, combiner: str) -> str:
        if self.draw(False, False, False, True):
            return self.argument(dims)
        numbers = ["0.0", "0.0", "0.0", "1.0", "-0.0"]
        if combiner == "max":
            numbers = ["0xFF800000" if self.element == "f32" else "0xFFF0000000000000", "-2.0"]
        number = self.draw(*numbers)
        if self.element[0] == "i":
            number = self.draw("0", "-2", "1") if combiner == "add" else "-2147483648"
        return self.filled(dims, number)

    def contraction(self) -> Value:
        """sum of A[m, k] * B[k, n] in any order of dims, with or without a batch"""
        m, n, k = self.draw(*ROWS), self.draw(*ROWS, *COLUMNS * 3), self.draw(*DEPTHS)
        if k > 512 and n < 64 and self.draw(True, False, False):
            m = 140  # more than the cache holds beside the panels
        self.sizes = {"b": self.draw(1, 2, 3), "m": m, "n": n, "k": k}
        batch = self.draw("", "", "b")
        two = self.draw("", "", "l") if k < 100 else ""
        self.sizes["l"] = 3
        fixed = k > 0 and self.draw(True, False, False)
        self.dynamic = frozenset(self.draw(*[""] * 6, "m", "mb", "b", "mnk", "n", "k"))
        if fixed:
            self.dynamic -= set("nkb")
        narrow = self.draw(self.element, {"f32": "bf16", "i32": "i8"}.get(self.element, "f64"))
        lhs = list(self.draw("mk", "mk", "km")) + list(two)
        rhs = list(self.draw("kn", "kn", "nk"))
        rhs.insert(self.draw(0, 1, 2), two) if two else None
        out = self.draw("mn", "mn", "mn", "nm")
        lhs, rhs, out = [*batch, *lhs], [*batch, *rhs], [*batch, *out]
        if batch and self.draw(True, False):
            out = [*out[1:2], "b", *out[2:]]
        a = self.argument(lhs, narrow)
        b = self.constant(rhs, narrow) if fixed else self.argument(rhs, narrow)
        loops = self.draw("mn", "nm")
        loops = f"{batch}{loops}/{self.draw('k' + two, two + 'k')}"
        return self.multiplied(loops, [lhs, rhs], [a, b], [narrow] * 2, out)

    def multiplied(self, loops, reads, operands, elements, out) -> Value:
        body, values, kind = [], ["%a0", "%a1"], self.element
        if elements[0] != kind:
            cast = "arith.extf" if kind[0] == "f" else "arith.extsi"
            values = ["%w0", "%w1"]
            body += [f"%w{i} = {cast} %a{i} : {elements[0]} to {kind}" for i in range(2)]
        body.append(f"%p = {self.op('mul')} {', '.join(values)} : {kind}")
        body.append(f"%s = {self.op('add')} %a2, %p : {kind}\nlinalg.yield %s : {kind}")
        init = self.init(out, "add")
        name = self.generic(loops, reads, operands, elements, out, init, "\n".join(body))
        return Value(name, "".join(out))

    def convolution(self) -> Value:
        """Channels in blocks, filters as a kernel reads them, or depthwise"""
        block = self.draw(4, 8, 16, 16, 5)
        self.sizes = {
            "n": self.draw(1, 2, 3), "k": self.draw(1, 2), "i": self.draw(block, 1, 3), "c": block,
            "h": self.draw(1, 3, 5), "w": self.draw(1, 4, 7, 9), "p": self.draw(1, 2, 3),
            "q": self.draw(2, 3),
        }  # fmt: skip
        step = self.draw("", "", "2 * ")
        rows, columns = f"{step}h + p", f"{step}w + q"
        if self.draw(True, False):
            reads = [["k", rows, columns, "i"], list("nkpqic")]
            loops, out = "nhwc/kipq", list("nhwc")
        else:
            order = self.draw("nhwc", "nchw", "hwnc")
            image = {"h": rows, "w": columns}
            reads = [[image.get(d, d) for d in order], list(self.draw("ncpq", "pqnc"))]
            loops, out = f"{order}/pq", list(order)
        filters = self.constant if self.draw(True, False) else self.argument
        operands = [self.argument(reads[0]), filters(reads[1], self.element)]
        return self.multiplied(loops, reads, operands, [self.element] * 2, out)

    def pooling(self) -> Value:
        """A sum or maximum over windows, or along outer dims"""
        self.sizes = {
            "n": self.draw(1, 2, 9), "c": self.draw(1, 4, 7, 8, 16, 17, 24, 33),
            "h": self.draw(1, 3, 8), "w": self.draw(1, 5, 17), "p": self.draw(1, 3),
            "q": self.draw(0, 2, 3, 40),
        }  # fmt: skip
        combiner, element = self.draw("max", "add", "add"), self.element
        step = self.draw("", "2 * ")
        if self.draw(True, False):
            image = {"h": f"{step}h + p", "w": f"{step}w + q"}
            order = self.draw("nhwc", "chw", "nchw")
            self.sizes["q"] = min(self.sizes["q"] or 2, 3)
            self.dynamic = frozenset(self.draw("", "", "n")) & frozenset(order)
            out, reads = list(order), [[image.get(d, d) for d in order], ["p", "q"]]
            operands = [self.argument(reads[0]), self.empty("pq")]
            loops = f"{order}/pq"
        else:
            self.dynamic = frozenset(self.draw("", "", "n", "c", "q", "nc"))
            out = list(self.draw("nc", "c"))
            reads = [[*self.draw(("n", "q", "c"), ("q", "n", "c"))] if "n" in out else ["q", "c"]]
            operands, loops = [self.argument(reads[0])], f"{''.join(out)}/q"
        init, last = self.init(out, combiner), len(reads)
        value = self.draw("plain", "plain", "index")
        body, source = "", "%a0"
        if value == "index" and element == "f32":
            # Different in every lane and without a vector form, at times.
            body += (
                f"%i = linalg.index {self.data.draw(st.integers(0, len(out) - 1))} : index\n"
                "%j = arith.index_cast %i : index to i32\n%three = arith.constant 3 : i32\n"
                f"%r = {self.draw('arith.remsi', 'arith.muli')} %j, %three : i32\n"
                "%f = arith.sitofp %r : i32 to f32\n%u = arith.addf %a0, %f : f32\n"
            )
            source = "%u"
        body += f"%s = {self.op(combiner)} %a{last}, {source} : {element}\n"
        body += f"linalg.yield %s : {element}"
        name = self.generic(loops, reads, operands, [element] * last, out, init, body)
        return Value(name, "".join(out))

    # --- what reads them ------------------------------------------------------------------

    def consumer(self, x: Value, first: Value) -> Value:
        """An elementwise op that reads the value, and others along fewer or crossed dims"""
        order = "".join(self.data.draw(st.permutations(x.dims)))
        order = self.draw(*[x.dims] * 5, order)
        if "y" not in x.dims and self.draw(*[False] * 15, True):
            self.sizes["y"] = 3
            order = order + "y"
        loops, reads, operands = order, [list(x.dims)], [x.name]
        square = [
            (a, b) for a in x.dims for b in x.dims
            if a < b and self.sizes[a] == self.sizes[b] and not {a, b} & self.dynamic
        ]  # fmt: skip
        for _ in range(self.draw(0, 1, 1, 2)):
            match self.draw(
                "row", "row", "column", "scalar", "whole", "crossed", "again", "turned", "first"
            ):
                case "row":
                    read, operand = x.dims[-1:], None
                case "column":
                    read, operand = x.dims[:1], None
                case "scalar":
                    read, operand = "", None
                case "whole":
                    read, operand = order, None
                case "crossed":
                    read, operand = "".join(self.data.draw(st.permutations(order))), None
                case "again":
                    read, operand = x.dims, x.name
                case "first" if set(first.dims) <= set(order):
                    read, operand = first.dims, first.name
                case "turned" if square:
                    a, b = self.draw(*square)
                    read = x.dims.replace(a, "_").replace(b, a).replace("_", b)
                    operand = x.name
                case _:
                    continue
            reads.append(list(read))
            operands.append(operand or self.argument(read))
        out, last = order, len(operands)
        in_place = self.draw(False, False, True)
        init = self.argument(out) if in_place else self.empty(out)
        body, value, kind = [], "%a0", self.element
        for i in range(1, last):
            name = f"%t{i}"
            body.append(
                f"{name} = {self.op(self.draw('add', 'max', 'sub'))} {value}, %a{i} : {kind}"
            )
            value = name
        if in_place:
            body.append(f"%in = {self.op(self.draw('add', 'min'))} %a{last}, {value} : {kind}")
            value = "%in"
        if self.draw(True, False):
            number = "1.0" if kind[0] == "f" else "1"
            body.append(f"%one = arith.constant {number} : {kind}")
            for i in range(self.draw(*[1] * 7, 13)):
                body.append(f"%z{i} = {self.op('max' if i % 2 else 'add')} {value}, %one : {kind}")
                value = f"%z{i}"
        body.append(f"linalg.yield {value} : {kind}")
        name = self.generic(
            f"{loops}/", reads, operands, [kind] * last, list(out), init, "\n".join(body)
        )
        return Value(name, out)

    def total(self, x: Value) -> Value:
        """A reduction of what an elementwise op made"""
        over = self.draw(x.dims[-1:], x.dims[-1:], x.dims[:1], x.dims)
        out = [d for d in x.dims if d not in over]
        largest = 16 * (9 * max(1, self.sizes.get("k", 1)) + 50) * prod(self.sizes[d] for d in over)
        combiner = self.draw("add", "add", "max", "largest")
        if combiner == "add" and largest >= 1 << 24:
            combiner = "max"
        name = self.op(combiner)
        if combiner == "largest":
            name = "arith.maxnumf" if self.element[0] == "f" else "arith.maxui"
        init = self.init(out, "add" if combiner == "add" else "max")
        order = self.draw("%a1, %a0", "%a0, %a1")
        body = f"%s = {name} {order} : {self.element}\nlinalg.yield %s : {self.element}"
        loops = f"{''.join(out)}/{over}"
        made = self.generic(loops, [list(x.dims)], [x.name], [self.element], out, init, body)
        return Value(made, "".join(out))

    def text(self) -> str:
        """The function: a reduction, up to two consumers, a sum of theirs, any of them as results"""
        shape = self.draw(self.contraction, self.contraction, self.convolution, self.pooling)
        values = [shape()]
        for _ in range(self.draw(0, 1, 1, 1, 1, 2)):
            values.append(self.consumer(values[-1], values[0]))
        if len(values) > 1 and self.draw(True, False):
            values.append(self.total(values[-1]))
            if self.draw(True, False):
                values.append(self.consumer(values[-2], values[0]))
        results = [values[-1]]
        if len(values) > 1 and self.draw(False, False, False, True):
            results.append(self.draw(*values[:-1]))
        event(f"{shape.__name__}, {len(values) - 1} consumers")
        kinds = ", ".join(self.kind(v.dims) for v in results)
        names = ", ".join(v.name for v in results)
        lines = "\n".join(self.lines)
        return (
            f"func.func @{self.name}({', '.join(self.arguments)}) -> ({kinds}) {{\n{lines}\n"
            f"return {names} : {kinds}\n}}\n"
        )


def module(data: DataObject, count: int, *, real: bool) -> tuple[str, list[Case]]:
    """The text of a module of random functions, and how to call them."""
    functions, texts = [], []
    for number in range(count):
        element = data.draw(st.sampled_from(["f32", "f32", "f32", "f64", "i32"]))
        functions.append(Function(data, f"f{number}", element, real))
        texts.append(functions[-1].text())
    blobs = ", ".join(f'{k}: "0x{b}"' for f in functions for k, b in f.resources.items())
    table = f"{{-# dialect_resources: {{ builtin: {{ {blobs} }} }} #-}}\n" if blobs else ""
    return "".join(texts) + table, [Case(f.name, tuple(f.inputs)) for f in functions]


def options(data: DataObject) -> dict:
    """A target, and passes to leave out."""
    without = {WINOGRAD}
    if data.draw(st.booleans()):
        without |= data.draw(st.sets(st.sampled_from(sorted(OPTIONAL)), max_size=3))
    return {
        "target": data.draw(st.sampled_from(TARGETS)),
        "disable_pass": tuple(sorted(without)),
        "opt_level": data.draw(st.sampled_from([0, 0, 0, 2])),
    }


def agrees(data: DataObject, *, real: bool, **more) -> None:
    text, cases = module(data, 4, real=real)
    source = import_mlir(text)
    expected = interpret(source, cases)
    chosen = options(data) | more
    found = compiled_agrees(source, cases, expected, **chosen)
    assert found == [], (chosen, text if len(text) < 9000 else text[:9000])


@settings(max_examples=30 * FACTOR)
@given(st.data())
def test_whole_numbers_are_exact(data):
    agrees(data, real=False)


@settings(max_examples=15 * FACTOR)
@given(st.data())
def test_strict_sums_keep_their_order(data):
    agrees(data, real=True, fp="strict")
