"""`irees reduce` keeps the fault and little else."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp

from irees.frontends.mlir import import_mlir
from irees.testing.reducing import Case, Reduction, is_defined
from irees.tools.main import main
from irees.transforms import load_pass

LAYERS = 8


def network(layers: int = LAYERS) -> str:
    """Products with weights, biases and activations; one of them is tanh."""
    lines = ["func.func @main(%x0: tensor<4x32xf32>) -> tensor<4x32xf32> {"]
    kind = "tensor<4x32xf32>"
    for i in range(layers):
        act = "math.tanh" if i == layers // 2 else "math.absf"
        lines += [
            f"  %w{i} = arith.constant dense<{0.01 * (i + 1)}> : tensor<32x32xf32>",
            f"  %b{i} = arith.constant dense<{0.5 + i}> : {kind}",
            f"  %m{i} = linalg.matmul ins(%x{i}, %w{i} : {kind}, tensor<32x32xf32>)"
            f" outs(%b{i} : {kind}) -> {kind}",
            f"  %x{i + 1} = {act} %m{i} : {kind}",
        ]
    return "\n".join([*lines, f"  return %x{layers} : {kind}", "}", SIDE])


SIDE = "func.func @other(%x: f32) -> f32 {\n  return %x : f32\n}"
X = np.random.default_rng(0).standard_normal((4, 32)).astype(np.float32)


def test_any_expectation_will_do():
    """The program has a tanh: so has the smallest program that does."""
    case = Case(import_mlir(network()), "main", (X,))

    def interesting(case: Case) -> bool:
        return any(isinstance(op, math.TanhOp) for op in case.module.walk())

    found = Reduction(case, interesting).run()
    assert found.ops == 1
    assert "@other" not in str(found.module)
    assert [np.shape(value) for value in found.inputs] == [(1, 1)]
    # What it calls the function with is a call of it.
    assert interesting(found)


def turn_tanh(self, ctx: Context, op: ModuleOp) -> None:
    for inner in list(op.walk()):
        if isinstance(inner, math.TanhOp) and not isinstance(inner.operand.owner, arith.NegfOp):
            negated = arith.NegfOp(inner.operand)
            inner.parent.insert_op_before(negated, inner)  # type: ignore
            inner.operands = [negated.result]


@pytest.mark.parametrize(
    "name", ["irees-convert-elementwise-to-linalg", "irees-bufferize-dispatch"]
)
def test_a_wrong_pass(name, monkeypatch, tmp_path, capsys):
    path, out = tmp_path / "x.mlir", tmp_path / "small.mlir"
    path.write_text(network())
    assert main(["reduce", str(path)]) == 1
    assert "the program is right" in capsys.readouterr().err
    cls = load_pass(name)
    right = cls.apply

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        turn_tanh(self, ctx, op)

    monkeypatch.setattr(cls, "apply", apply)
    assert main(["reduce", str(path), "-o", str(out), "--log"]) == 0
    text = out.read_text()
    assert text.count(" = math.tanh") == 1
    assert "linalg.matmul" not in text
    # The case is wrong as it is, and bisection names the pass.
    flags = text.splitlines()[0].split("--function=main ")[1].replace("'", "").split(" --")
    words = [flags[0], *(f"--{flag}" for flag in flags[1:])]
    capsys.readouterr()
    assert main(["bisect", str(out), "--function=main", *words]) == 0
    assert f"wrong after {name}" in capsys.readouterr().out


def test_a_command_decides(tmp_path):
    script = tmp_path / "check.py"
    script.write_text(
        "import sys\ntext = open(sys.argv[1]).read()\nsys.exit(0 if 'math.tanh' in text else 1)"
    )
    path, out = tmp_path / "x.mlir", tmp_path / "small.mlir"
    path.write_text(network(3))
    command = f"{sys.executable} {script}"
    assert main(["reduce", str(path), "--command", command, "-o", str(out)]) == 0
    assert out.read_text().count(" = ") == 1
    assert main(["reduce", str(path), "--command", str(tmp_path / "none"), "-o", str(out)]) == 1


def test_what_is_uninitialized_is_no_fault():
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %r = arith.addf %x, OTHER : tensor<4xf32>
      return %r : tensor<4xf32>
    }"""
    x = np.ones(4, np.float32)
    assert is_defined(Case(import_mlir(text.replace("OTHER", "%x")), "main", (x,)))
    assert not is_defined(Case(import_mlir(text.replace("OTHER", "%e")), "main", (x,)))
