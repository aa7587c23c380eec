"""`irees reduce` keeps the fault and little else."""

from __future__ import annotations

import shlex
import sys

import ml_dtypes
import numpy as np
import pytest
from clock import at_most
from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from irees.frontends.mlir import import_mlir
from irees.interpreters import Interpreter
from irees.options import Options
from irees.rewrites import may_rewrite
from irees.testing import reducing
from irees.testing.reducing import Case, Reduction, is_defined
from irees.tools import expectations
from irees.tools.main import main, parser_of
from irees.tools.reduce import text_of
from irees.tools.values import parse_values
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


BLOCKS = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  cf.br ^head(%c0, %x : i32, tensor<4xf32>)
^head(%i: i32, %v: tensor<4xf32>):
  %a = math.absf %v : tensor<4xf32>
  %t = math.tanh %a : tensor<4xf32>
  %p = arith.cmpi slt, %i, %c3 : i32
  cf.cond_br %p, ^body, ^exit
^body:
  %j = arith.addi %i, %c1 : i32
  cf.br ^head(%j, %t : i32, tensor<4xf32>)
^exit:
  %e = math.exp %t : tensor<4xf32>
  return %e : tensor<4xf32>
}
"""


@pytest.mark.parametrize("kept", ["scf.while", "cf.cond_br"])
def test_a_program_of_basic_blocks(kept):
    """A fault of its basic blocks keeps them; else its control flow becomes structured."""
    case = Case(import_mlir(BLOCKS), "main", (X[0, :4],))

    def interesting(case: Case) -> bool:
        names = {op.name for op in case.module.walk()}
        return "math.tanh" in names and (kept in names or kept == "scf.while")

    found = Reduction(case, interesting).run()
    names = [op.name for op in found.module.walk()]
    assert ("cf.cond_br" in names) == (kept == "cf.cond_br")
    assert {"math.absf", "math.exp"}.isdisjoint(names)
    assert found.inputs[0].size == 1
    if kept == "scf.while":
        assert found.ops <= 3


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
    planted(monkeypatch, name, turn_tanh)
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


INTEGERS = """
func.func @main(%x: tensor<4xi32>, %n: i32, %t: tensor<2xf32>, %s: f32) -> (tensor<4xi32>, f32, f32) {
  %e = tensor.empty() : tensor<4xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<4xi32>) outs(%e : tensor<4xi32>) {
  ^bb0(%a: i32, %b: i32):
    %q = arith.muli %a, %n : i32
    linalg.yield %q : i32
  } -> tensor<4xi32>
  %i = arith.index_cast %n : i32 to index
  %v = tensor.extract %t[%i] : tensor<2xf32>
  %m = arith.mulf %s, %s : f32
  return %r, %v, %m : tensor<4xi32>, f32, f32
}"""


@pytest.mark.parametrize("kind", [arith.MuliOp, arith.MulfOp])
def test_the_values_of_an_argument_that_is_not_given_are_not_zero(kind, monkeypatch, tmp_path):
    """Of zeros, a sum or a difference is what the product is."""

    def add(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, kind)]:
            total = arith.AddfOp if kind is arith.MulfOp else arith.SubiOp
            Rewriter.replace_op(inner, total(inner.lhs, inner.rhs))

    path = tmp_path / "x.mlir"
    path.write_text(INTEGERS)
    planted(monkeypatch, "irees-erase-unused-results", add)
    assert main(["bisect", str(path)]) == 0


def test_a_program_that_traps_is_called_with_zeros(tmp_path, capsys):
    path = tmp_path / "x.mlir"
    path.write_text("""
    func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
      %c0 = arith.constant 0 : index
      %z = arith.constant 0 : i32
      %n = tensor.extract %x[%c0] : tensor<4xi32>
      %ok = arith.cmpi eq, %n, %z : i32
      cf.assert %ok, "must be zero"
      return %x : tensor<4xi32>
    }""")
    assert main(["bisect", str(path)]) == 1
    assert "nothing to find" in capsys.readouterr().out


def test_a_command_decides(tmp_path):
    script = tmp_path / "check.py"
    script.write_text(
        "import sys\ntext = open(sys.argv[1]).read()\nsys.exit(0 if 'math.tanh' in text else 1)"
    )
    path, out = tmp_path / "x.mlir", tmp_path / "small.mlir"
    path.write_text(network(3))
    command = f"{sys.executable} {script}"
    assert main(["reduce", str(path), "--keep-if", command, "-o", str(out)]) == 0
    assert out.read_text().count(" = ") == 1
    assert main(["reduce", str(path), "--keep-if", str(tmp_path / "none"), "-o", str(out)]) == 1


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


def planted(monkeypatch, name: str, fault) -> None:
    """Puts a fault at the end of a pass."""
    cls = load_pass(name)
    right = cls.apply

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        fault(self, ctx, op)

    monkeypatch.setattr(cls, "apply", apply)


def turn_tanh_if_counted(self, ctx: Context, op: ModuleOp) -> None:
    """The same fault, as one optional rewrite."""
    if may_rewrite("irees-fuse-elementwise-ops", op, "a wrong rewrite"):
        turn_tanh(self, ctx, op)


def raise_for_tanh(self, ctx: Context, op: ModuleOp) -> None:
    if any(isinstance(inner, math.TanhOp) for inner in op.walk()):
        raise KeyError("tanh")


@pytest.fixture
def reduced(tmp_path, capsys):
    """Runs `irees reduce` on the network with flags; returns the status and the text or error."""

    def call(*flags: str, layers: int = 3) -> tuple[int, str]:
        path, out = tmp_path / "x.mlir", tmp_path / "small.mlir"
        path.write_text(network(layers))
        np.save(tmp_path / "x.npy", X)
        capsys.readouterr()
        status = main(["reduce", str(path), f"--input=@{tmp_path}/x.npy", "-o", str(out), *flags])
        return status, out.read_text() if out.exists() else capsys.readouterr().err

    return call


def right_output(tmp_path, layers: int) -> str:
    np.save(tmp_path / "right.npy", Interpreter(import_mlir(network(layers))).call("main", X)[0])
    return f"--expected-output=@{tmp_path}/right.npy"


def test_each_expectation_of_bisect_is_one_of_reduce():
    flags = [action.option_strings for action in parser_of("bisect")._actions]
    known = [action.option_strings for action in parser_of("reduce")._actions]
    assert [each for each in flags if each not in known] == []


@pytest.mark.parametrize("flag", ["--against=opt0", "stored"])
def test_the_results_of_smaller_programs_are_a_referees(flag, monkeypatch, tmp_path, reduced):
    planted(monkeypatch, "irees-fuse-elementwise-ops", turn_tanh_if_counted)
    flag = right_output(tmp_path, 1) if flag == "stored" else flag
    status, text = reduced(flag, layers=1)
    assert status == 0, text
    assert text.count(" = math.tanh") == 1
    assert "linalg.matmul" not in text


def test_stored_outputs_that_nothing_else_gives(tmp_path, reduced):
    wrong = "--expected-output=4x32xf32=1"
    status, text = reduced(wrong)
    assert status == 1
    assert "nothing tells the right results of smaller programs; use --keep-if" in text
    status, text = reduced(wrong, wrong)
    assert status == 2
    assert "main has 1 results, but --expected-output is given 2 times" in text


def test_an_internal_error_stays_the_same(monkeypatch, reduced):
    planted(monkeypatch, "irees-bufferize-dispatch", raise_for_tanh)
    status, text = reduced()
    assert status == 0, text
    assert text.count(" = ") == text.count(" = math.tanh") == 1


def test_a_slow_program_stays_slow(monkeypatch, reduced):
    """The time of a call, and the exit code of a command that is called with the program."""
    monkeypatch.setattr(expectations, "ROUNDS", 1)
    status, text = reduced("--faster-than=10s")
    assert status == 1
    assert "the program is right" in text
    assert reduced("--faster-than=1s", "--command=true")[0] == 2
    status, text = reduced("--faster-than=1us", "--seconds=10", layers=1)
    assert status == 0, text


def test_a_command_judges_each_case(tmp_path, reduced):
    """A program with a kernel is wrong: the smallest one that has a kernel is left."""
    script = tmp_path / "check.py"
    script.write_text(COMMAND)
    status, text = reduced(f"--command={sys.executable} {script}", layers=1)
    assert status == 0, text
    assert text.count(" = ") == 1


COMMAND = """
import json, sys, zipfile
sys.exit(len(json.loads(zipfile.ZipFile(sys.argv[1]).read("manifest.json"))["kernels"]))
"""


def test_the_call_of_a_case_has_the_bits_of_its_inputs(tmp_path):
    """Numbers that six digits do not tell, elements without a literal, and options."""
    third = np.array([1 / 3, np.inf, -0.0], np.float32)
    inputs = [third, np.array([1 / 3 + 2j] * 2, np.complex64), np.array([True, False]), 1 / 3]
    inputs += [np.arange(3000, dtype=np.float32) / 3, third.astype(ml_dtypes.bfloat16)]
    case = Case(import_mlir("func.func @main() { return }"), "main", tuple(inputs))
    path = tmp_path / "small.mlir"
    options = Options(
        fp="strict",
        disable_pass=("irees-cse-x",),
        limits={"ops": 5000000},
        passes={"after:structured": ["cse", "acme-x{n=2}"]},
    )
    words = shlex.split(text_of(case, options, path).splitlines()[0])
    flags = ["--fp=strict", "--disable-pass=irees-cse-x", "--limit=ops=5000000"]
    assert words[-5:] == [
        *flags,
        "--insert=after:structured=cse",
        "--insert=after:structured=acme-x{n=2}",
    ]
    given_values = [w.removeprefix("--input=") for w in words if w.startswith("--input=")]
    values = [parse_values(w.replace("=@", f"=@{tmp_path}/"))[0] for w in given_values]
    for value, given in zip(values, inputs, strict=True):
        assert np.asarray(value).tobytes() == np.asarray(given).tobytes()


def test_a_case_whose_loop_never_ends_is_given_up(monkeypatch, tmp_path):
    """Without the addition, the counter of the loop stays what it is."""
    path, out = tmp_path / "x.mlir", tmp_path / "small.mlir"
    path.write_text(BLOCKS)
    planted(monkeypatch, "irees-convert-elementwise-to-linalg", turn_tanh)
    monkeypatch.setattr(expectations, "LEAST_LIMIT", 0.5)
    monkeypatch.setattr(reducing, "_run_once", lambda *_: None)
    with at_most(55):
        assert main(["reduce", str(path), "-o", str(out), "--seconds=60"]) == 0
    assert "math.tanh" in out.read_text()
