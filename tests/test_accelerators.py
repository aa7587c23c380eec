"""
Targets and strategies of plug-ins, with `examples/plugins/acme-npu`: what the unit takes runs on it,
and the CPU computes the rest of the same kernel.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import linalg
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import irees
from irees.accelerators import Accelerator
from irees.errors import ArgumentError, PluginError
from irees.frontends.mlir import import_mlir
from irees.options import Options
from irees.plugins import Plugin
from irees.strategies import Config
from irees.target import Target
from irees.testing.oracles import Case, interpret, phases_agree
from tests.plugged import plugged
from tests.test_layers import mlp

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugins" / "acme-npu"


@pytest.fixture
def having(monkeypatch):
    yield from plugged(monkeypatch)


@pytest.fixture
def npu(having, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    import acme_npu

    having(acme_npu.PLUGIN, dialects=lambda: {"npu": import_module("acme_npu.dialect").Npu})


LINEAR = """
func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x?xf32>
  %m = tensor.dim %b, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>)
      outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  %w = linalg.broadcast ins(%c : tensor<?xf32>) outs(%e : tensor<?x?xf32>) dimensions = [0]
  %s = arith.addf %p, %w : tensor<?x?xf32>
  %r = arith.maximumf %s, %f : tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}"""


def texts_of(program: irees.Program) -> str:
    return "\n".join(text for name, text in program.sources.items() if name != "host")


def test_a_product_of_any_size(npu):
    program = irees.compile(LINEAR, target="acme-npu")
    text = texts_of(program)
    assert text.count("npu_multiply(&npu, 2, 0, 1);") == 1
    assert len(program.manifest["kernels"]) == 1
    (kernel,) = program.manifest["kernels"]
    assert kernel["accesses"]["guarded"] == 0
    assert kernel["configs"][-1]["workgroup"] == [32, 32]
    rng = np.random.default_rng(0)
    for m, k, n in (
        (8, 8, 8),
        (1, 1, 1),
        (5, 7, 9),
        (64, 48, 32),
        (33, 17, 100),
        (0, 3, 4),
        (3, 0, 4),
    ):
        a, b, c = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (n,)))
        wanted = np.maximum(a @ b + c, 0)
        np.testing.assert_allclose(program(a, b, c), wanted, rtol=1e-4, atol=1e-5)


CONVOLUTION = """
func.func @main(%x: tensor<1x9x11x5xf32>, %w: tensor<3x3x5x12xf32>) -> tensor<1x4x5x12xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x5x12xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x4x5x12xf32>) -> tensor<1x4x5x12xf32>
  %r = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x9x11x5xf32>, tensor<3x3x5x12xf32>)
      outs(%f : tensor<1x4x5x12xf32>) -> tensor<1x4x5x12xf32>
  return %r : tensor<1x4x5x12xf32>
}"""


def test_a_convolution_with_strides(npu):
    program = irees.compile(CONVOLUTION, target="acme-npu")
    assert "npu_multiply(" in texts_of(program).partition("#endif")[2]
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 9, 11, 5)).astype(np.float32)
    w = rng.standard_normal((3, 3, 5, 12)).astype(np.float32)
    wanted = irees.compile(CONVOLUTION, target="reference")(x, w)
    np.testing.assert_allclose(program(x, w), wanted, rtol=1e-4, atol=1e-5)


def test_what_the_unit_does_not_take_runs_on_the_cpu(npu):
    """Another element type, and no product at all: with the reason as a remark."""
    halves = LINEAR.replace("f32", "f64")
    program = irees.compile(halves, target="acme-npu")
    assert "npu_multiply(&npu" not in texts_of(program)
    assert any("the unit multiplies f32" in each for each in program.manifest["remarks"])
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(program(a, a.T.copy(), np.zeros(2)), a @ a.T)
    text = (
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %r = math.exp %x : tensor<4xf32>\n  return %r : tensor<4xf32>\n}"
    )
    np.testing.assert_allclose(irees.compile(text, target="acme-npu")(np.zeros(4, "f")), 1)


def test_every_phase_means_the_same(npu):
    """The instructions, too: the interpreter runs them on a scratchpad of its own."""
    rng = np.random.default_rng(2)
    shapes = ((5, 9), (9, 11), (11,))
    cases = [Case("main", tuple(rng.integers(-4, 4, s).astype(np.float32) for s in shapes))]
    module = import_mlir(LINEAR)
    expected = interpret(module.clone(), cases)
    assert phases_agree(module, cases, expected, Options(target="acme-npu")) == []


def test_an_instruction_outside_of_its_memory_is_refused(npu, monkeypatch):
    """The prover reads what the interface says; what it cannot show, is not run."""
    from acme_npu.instructions import Load

    right = Load.places

    def places(op, number):
        (place,) = right(op, number)
        return [replace(place, counts=[place.counts[0], place.counts[1] + 1])]

    monkeypatch.setattr(Load, "places", staticmethod(places))
    with pytest.raises(PluginError, match=r"npu\.load: it is not shown that the place is inside"):
        irees.compile(LINEAR, target="acme-npu")


def test_weights_are_not_packed_for_the_cpu(npu):
    """The target leaves out passes that would hide the product."""
    text = """
    func.func @main(%a: tensor<24x64xf32>) -> tensor<24x64xf32> {
      %b = arith.constant dense_resource<w> : tensor<64x64xf32>
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<24x64xf32>
      %f = linalg.fill ins(%z : f32) outs(%e : tensor<24x64xf32>) -> tensor<24x64xf32>
      %p = linalg.matmul ins(%a, %b : tensor<24x64xf32>, tensor<64x64xf32>)
          outs(%f : tensor<24x64xf32>) -> tensor<24x64xf32>
      return %p : tensor<24x64xf32>
    }
    {-# dialect_resources: { builtin: { w: "0x04000000DATA" } } #-}"""
    b = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)
    program = irees.compile(text.replace("DATA", b.tobytes().hex()), target="acme-npu")
    assert "npu_multiply(" in texts_of(program).partition("#endif")[2]
    a = np.random.default_rng(4).standard_normal((24, 64)).astype(np.float32)
    np.testing.assert_allclose(program(a), a @ b, rtol=1e-4, atol=1e-4)


def test_the_target_is_one_like_others(npu, tmp_path):
    assert Target.parse("acme-npu").accelerator == "acme-npu"
    assert Target.parse("acme-npu:x86-64-v3").features == Target.parse("cpu:x86-64-v3").features
    with pytest.raises(ArgumentError, match=r"target .acme-npy. is unknown; use cpu, .*, acme-npu"):
        irees.compile(LINEAR, target="acme-npy")
    with pytest.raises(PluginError, match="does not use the plug-in of target 'acme-npu'"):
        irees.compile(LINEAR, target="acme-npu", plugins=())
    path = tmp_path / "linear.irees"
    irees.compile(LINEAR, target="acme-npu").save(path)
    a = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(irees.load(path)(a, a.T.copy(), np.zeros(2, "f")), 3)


@pytest.mark.parametrize(
    ("special", "problem"),
    [
        (Accelerator(facts={"lanes": 3}), "unknown fact 'lanes'"),
        (Accelerator(facts={"vector_bytes": "x"}), "'vector_bytes' = 'x', but must have an int"),
        (Accelerator(facts={"l1_bytes": -5}), "'l1_bytes' = -5, but must have an int from 0"),
        (Accelerator(facts={"threads": True}), "'threads' = True, but must have an int from 0"),
        (Accelerator(facts={"features": "avx"}), "'features' = 'avx', but must have a tuple"),
        (
            Accelerator(without=("irees-insert-shape-checks",)),
            "cannot disable the mandatory pass irees-insert-shape",
        ),
        (Accelerator(inserts={"after:nowhere": "cse"}), "there is no 'nowhere' in this pipeline"),
        ("cpu", "is a str, but must be an irees.accelerators.Accelerator"),
    ],
)
def test_a_target_that_does_not_work(having, monkeypatch, special, problem):
    having(Plugin("t", targets={"t-unit": f"{__name__}:SPECIAL"}))
    monkeypatch.setitem(globals(), "SPECIAL", special)
    with pytest.raises(PluginError, match=problem):
        irees.compile(LINEAR, target="t-unit")


SEEN: list[int] = []


class CountProducts(ModulePass):
    name = "test-count-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        SEEN.append(sum(isinstance(each, linalg.MatmulOp) for each in op.walk()))


@pytest.mark.parametrize("place", ["after:imported", "after:configured"])
def test_an_inserted_pass_sees_every_layer(having, place):
    """Equal layers are compiled once, unless a plug-in's pass may tell their number."""
    passes = {CountProducts.name: f"{__name__}:CountProducts"}
    having(Plugin("t", passes=passes, inserts={place: CountProducts.name}))
    SEEN.clear()
    irees.compile(mlp(9).text())
    assert SEEN[0] == (18 if place == "after:imported" else 0)


class Candidate:
    """A stand-in; tests set what it answers."""


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
def test_a_strategy_chooses_the_tiles(having, monkeypatch, target):
    seen = []

    def applies(group, facts):
        seen.append((group.extents(), facts.kind))
        return Config(tiles=[3] * len(group.classes))

    monkeypatch.setattr(Candidate, "applies", staticmethod(applies), raising=False)
    having(Plugin("t", strategies={target.partition("-")[0]: [f"{__name__}:Candidate"]}))
    text = (
        "func.func @main(%x: tensor<7x5xf32>) -> tensor<7x5xf32> {\n"
        "  %r = math.absf %x : tensor<7x5xf32>\n  return %r : tensor<7x5xf32>\n}"
    )
    program = irees.compile(text, target=target)
    assert program.manifest["kernels"][0]["configs"][0]["workgroup"] == [3, 3]
    x = -np.arange(35, dtype=np.float32).reshape(7, 5)
    np.testing.assert_array_equal(program(x), -x)
    assert seen == [([7, 5], target)]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda group, target: [1][5], r"Candidate failed: IndexError: .*test_accelerators.py:\d+"),
        (lambda group, target: 3, "returns a int, but must return a Config or why not"),
        (
            lambda group, target: Config([1, 2, 3, 4]),
            r"returns the tiles \[1, 2, 3, 4\] for 1 clas",
        ),
        (lambda group, target: Config(3), "for 1 classes of loops; return one tile for each"),
        (lambda group, target: Config([-1]), "the tile -1, but must return an int from 0"),
        (lambda group, target: Config([1 << 70]), "the tile 11805.*, but must return an int from"),
        (lambda group, target: Config([4.0]), "the tile 4.0, but must return an int from 0"),
        (lambda group, target: Config([4], threads="x"), "the threads 'x', but must return an"),
        *[
            (lambda group, target, e=entries: Config([4], entries=e), "returns the entries")
            for entries in ({1: {}}, {0: 3}, [1], {0: {"x": "a"}}, {0: {2: 1}}, {0: {"x": 1 << 63}})
        ],
    ],
)
def test_a_strategy_that_fails(having, monkeypatch, answer, problem):
    monkeypatch.setattr(Candidate, "applies", staticmethod(answer), raising=False)
    having(Plugin("t", strategies={"cpu": [f"{__name__}:Candidate"]}))
    text = (
        "func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {\n"
        "  %r = math.absf %x : tensor<7xf32>\n  return %r : tensor<7xf32>\n}"
    )
    with pytest.raises(PluginError, match=problem):
        irees.compile(text)


def test_a_strategy_that_steps_aside_says_why(having, monkeypatch):
    monkeypatch.setattr(
        Candidate, "applies", staticmethod(lambda group, target: "too small"), raising=False
    )
    having(Plugin("t", strategies={"cpu": [f"{__name__}:Candidate"]}))
    text = (
        "func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {\n"
        "  %r = math.absf %x : tensor<7xf32>\n  return %r : tensor<7xf32>\n}"
    )
    program = irees.compile(text)
    assert any("Candidate: too small" in each for each in program.manifest["remarks"])
