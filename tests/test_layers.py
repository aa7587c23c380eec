"""Equal layers are compiled once, and the program is the one that compiles each."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

import irees
from irees import layers
from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.options import Options
from irees.pipeline import run_phases

ROWS, WIDTH, INNER = 8, 32, 48
X = f"tensor<{ROWS}x{WIDTH}xf32>"


@dataclass
class Network:
    """Text of a stack of layers, with the names and shapes of its weights."""

    weights: dict[str, tuple[int, ...]]
    lines: list[str]
    results: list[str]
    infinite: frozenset[str] = frozenset()
    """Weights that have an infinite element."""

    def text(self) -> str:
        random = np.random.default_rng(0)
        constants, resources = [], []
        for name, shape in self.weights.items():
            kind = f"tensor<{'x'.join(map(str, shape))}xf32>"
            constants.append(f"%{name} = arith.constant dense_resource<{name}> : {kind}")
            array = random.standard_normal(shape).astype(np.float32) / np.float32(6)
            if name in self.infinite:
                array.flat[0] = np.inf
            resources.append(f'{name}: "0x04000000{array.tobytes().hex()}"')
        kinds = ", ".join([X] * len(self.results))
        return "\n".join(
            (
                "#row = affine_map<(i, j) -> (i, j)>",
                "#column = affine_map<(i, j) -> (j)>",
                f"func.func @main(%x0: {X}) -> ({kinds}) {{",
                "%zero = arith.constant 0.0 : f32",
                *constants,
                *self.lines,
                f"return {', '.join(self.results)} : {kinds}",
                "}",
                "{-# dialect_resources: { builtin: { " + ", ".join(resources) + " } } #-}",
            )
        )


def product(out: str, x: str, w: str, sizes: tuple[int, int]) -> list[str]:
    k, n = sizes
    a, b, c = f"tensor<{ROWS}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{ROWS}x{n}xf32>"
    return [
        f"%{out}e = tensor.empty() : {c}",
        f"%{out}f = linalg.fill ins(%zero : f32) outs(%{out}e : {c}) -> {c}",
        f"%{out} = linalg.matmul ins(%{x}, %{w} : {a}, {b}) outs(%{out}f : {c}) -> {c}",
    ]


def elementwise(out: str, inputs: str, maps: str, body: str, width: int = WIDTH) -> list[str]:
    kind = f"tensor<{ROWS}x{width}xf32>"
    kinds = {"r": kind, "c": f"tensor<{width}xf32>"}
    names = inputs.split()
    return [
        f"%{out}i = tensor.empty() : {kind}",
        f"%{out} = linalg.generic {{indexing_maps = ["
        + ", ".join({"r": "#row", "c": "#column"}[m] for m in maps + "r")
        + '], iterator_types = ["parallel", "parallel"]} ins('
        + ", ".join(f"%{n}" for n in names)
        + " : "
        + ", ".join(kinds[m] for m in maps)
        + f") outs(%{out}i : {kind}) {{",
        f"^bb0({', '.join(f'%a{i}: f32' for i in range(len(names) + 1))}):",
        body,
        f"linalg.yield %y : f32 }} -> {kind}",
    ]


def mlp(count: int, *, odd: int | None = None, sharing: int = 1, skip: int = 1) -> Network:
    """
    x + tanh(x W + b) V for each layer. Layer `odd` takes the sine; so many successive layers share
    their W; the sum may take the x of `skip` layers before.
    """
    weights: dict[str, tuple[int, ...]] = {}
    lines: list[str] = []
    for i in range(count):
        w = f"w{i // sharing}"
        weights |= {w: (WIDTH, INNER), f"b{i}": (INNER,), f"v{i}": (INNER, WIDTH)}
        function = "math.sin" if i == odd else "math.tanh"
        lines += product(f"p{i}", f"x{i}", w, (WIDTH, INNER))
        body = f"%s = arith.addf %a0, %a1 : f32\n%y = {function} %s : f32"
        lines += elementwise(f"t{i}", f"p{i} b{i}", "rc", body, INNER)
        lines += product(f"q{i}", f"t{i}", f"v{i}", (INNER, WIDTH))
        before = max(0, i + 1 - skip)
        lines += elementwise(f"x{i + 1}", f"q{i} x{before}", "rr", "%y = arith.addf %a0, %a1 : f32")
    return Network(weights, lines, [f"%x{count}"])


def scaled(count: int, *, finite: range | None = None) -> Network:
    """
    relu(x W^T * s) for each layer: the scale goes into the weight, whose values a pass reads. Where
    a weight is not finite, it does not: that may be all but those of the layers of a range.
    """
    weights: dict[str, tuple[int, ...]] = {"s": (WIDTH,)}
    kind = f"tensor<{WIDTH}x{WIDTH}xf32>"
    lines: list[str] = []
    body = (
        "%m = arith.mulf %a0, %a1 : f32\n%z = arith.constant 0.0 : f32\n"
        "%y = arith.maximumf %m, %z : f32"
    )
    for i in range(count):
        weights[f"w{i}"] = (WIDTH, WIDTH)
        lines += [
            f"%v{i}e = tensor.empty() : {kind}",
            f"%v{i} = linalg.transpose ins(%w{i} : {kind}) outs(%v{i}e : {kind}) "
            "permutation = [1, 0]",
        ]
        lines += product(f"p{i}", f"x{i}", f"v{i}", (WIDTH, WIDTH))
        lines += elementwise(f"x{i + 1}", f"p{i} s", "rc", body)
    infinite = () if finite is None else (f"w{i}" for i in range(count) if i not in finite)
    return Network(weights, lines, [f"%x{count}"], frozenset(infinite))


def normalized(count: int) -> Network:
    """x + (x W) (1 + s) for each layer: passes compute 1 + s when its bytes are needed."""
    weights: dict[str, tuple[int, ...]] = {}
    lines: list[str] = []
    body = (
        "%one = arith.constant 1.0 : f32\n%k = arith.addf %one, %a1 : f32\n"
        "%t = math.tanh %a0 : f32\n%m = arith.mulf %t, %k : f32\n%y = arith.addf %m, %a2 : f32"
    )
    for i in range(count):
        weights |= {f"w{i}": (WIDTH, WIDTH), f"s{i}": (WIDTH,)}
        lines += product(f"p{i}", f"x{i}", f"w{i}", (WIDTH, WIDTH))
        lines += elementwise(f"x{i + 1}", f"p{i} s{i} x{i}", "rcr", body)
    return Network(weights, lines, [f"%x{count}"])


def printed(module: ModuleOp) -> str:
    """The text of a module without the names of values."""
    for op in module.walk():
        values = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)]
        for value in values:
            value.name_hint = None
    out = io.StringIO()
    Printer(out).print_op(module)
    return out.getvalue()


def dispatches_of(module: ModuleOp) -> str:
    run_phases(get_context(), module, Options(), to="dispatch-creation")
    return printed(module)


@pytest.mark.parametrize(
    "network",
    [*map(mlp, (8, 9, 13)), *map(normalized, (8, 9, 13)), mlp(9, sharing=9), mlp(12, skip=2)],
    ids=lambda n: f"{len(n.weights)}_weights",
)
def test_the_extended_program_is_the_whole_one(network):
    text = network.text()
    short = layers.shorten(import_mlir(text))
    assert short is not None
    run_phases(get_context(), short.module, Options(), to="dispatch-creation")
    assert short.extend()
    short.module.verify()
    assert printed(short.module) == dispatches_of(import_mlir(text))


@pytest.mark.parametrize(
    "network",
    [mlp(9), normalized(9), scaled(9), mlp(9, odd=4), mlp(9, sharing=2), mlp(9, skip=3)],
    ids=["mlp", "normalized", "scaled", "odd", "sharing", "skip"],
)
def test_answers_do_not_depend_on_it(network):
    """With a listener every layer is compiled."""
    x = np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32)
    text = network.text()
    once = irees.compile(text)
    each = irees.compile(text, listener=lambda *_: None)
    np.testing.assert_array_equal(once(x), each(x))
    assert once.sources == each.sources
    memory = once.manifest["memory"]
    assert memory == each.manifest["memory"]


@pytest.mark.parametrize(
    "network",
    [mlp(7), mlp(9, odd=4), mlp(9, sharing=2)],
    ids=["few", "odd", "sharing"],
)
def test_such_programs_are_not_shortened(network):
    assert layers.shorten(import_mlir(network.text())) is None


def test_results_of_layers_that_are_left_out_are_needed():
    network = mlp(9)
    network.results = [f"%x{i}" for i in (5, 9)]
    assert layers.shorten(import_mlir(network.text())) is None


@pytest.mark.parametrize("finite", [None, range(4, 6)], ids=["all", "left_out"])
def test_a_pass_that_reads_weights_may_treat_each_layer_in_its_way(finite):
    short = layers.shorten(import_mlir(scaled(10, finite=finite).text()))
    assert short is not None
    run_phases(get_context(), short.module, Options(), to="dispatch-creation")
    assert not short.extend()


def test_phases_take_no_longer_for_more_layers(monkeypatch):
    """Counts the ops that the passes on tensors get."""
    seen: list[int] = []
    extend = layers.Shortened.extend

    def counted(self: layers.Shortened) -> bool:
        seen.append(sum(1 for _ in self.module.walk()))
        return extend(self)

    monkeypatch.setattr(layers.Shortened, "extend", counted)
    for count in (8, 24):
        irees.compile(mlp(count).text())
    assert seen[0] == seen[1]
