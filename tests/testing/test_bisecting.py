"""`irees bisect` names the phase, the pass and the rewrite that make a program wrong."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.backends.common import emit_ops
from irees.frontends.mlir import import_mlir
from irees.options import Options
from irees.rewrites import may_rewrite
from irees.testing import bisecting
from irees.testing.bisecting import Bisection, Fault, RewriteBisection, Verdict
from irees.testing.oracles import Case, interpret
from irees.tools.main import main
from irees.transforms import load_pass

TEXT = """
#rows = affine_map<(i, j) -> (i, j)>
#sums = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %d = arith.subf %x, %y : tensor<8x16xf32>
  %s = linalg.generic {indexing_maps = [#rows, #sums], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<8x16xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<8xf32>
  %g = linalg.generic {indexing_maps = [#rows, #sums, #rows],
      iterator_types = ["parallel", "parallel"]}
      ins(%d, %s : tensor<8x16xf32>, tensor<8xf32>) outs(%d : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.subf %a, %b : f32
    %q = arith.mulf %c, %c : f32
    linalg.yield %q : f32
  } -> tensor<8x16xf32>
  return %s, %g : tensor<8xf32>, tensor<8x16xf32>
}
"""
PASSES = [
    "irees-convert-elementwise-to-linalg",
    "irees-fuse-elementwise-ops",
    "irees-form-tile-regions",
    "irees-convert-to-stream",
    "irees-bufferize-dispatch",
    "irees-vectorize-structured-ops",
    "irees-gpu-form-workgroups",
    "irees-verify-accesses",
]


def bisection(options: Options | None = None) -> Bisection:
    module = import_mlir(TEXT, name="x.mlir")
    random = np.random.default_rng(0)
    x, y = (random.integers(-4, 5, (8, 16)).astype(np.float32) for _ in range(2))
    right = interpret(module, [Case("main", (x, y))])["main"]

    def check(results) -> list[str]:
        pairs = zip(results, right, strict=True)
        return [f"result {i}" for i, (a, b) in enumerate(pairs) if not np.array_equal(a, b)]

    return Bisection(module, options or Options(), "main", [x, y], check)


def turn_one(module: ModuleOp) -> None:
    """A fault: the operands of the first difference change places."""
    for op in module.walk():
        if isinstance(op, arith.SubfOp):
            op.operands = list(op.operands)[::-1]
            return


def test_of_a_right_program_there_is_nothing_to_find():
    assert bisection().find().what == "nothing"


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_is_named(name, monkeypatch):
    """Mandatory or optional, on tensors, on buffers and in kernels."""
    target = "cuda-emulated" if "gpu" in name else "cpu"
    cls = load_pass(name)
    right = cls.apply

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        turn_one(op)

    monkeypatch.setattr(cls, "apply", apply)
    found = bisection(Options(target=target)).find()
    if name == "irees-verify-accesses":
        # It changes kernels that are printed already: the program is right.
        assert found.what == "nothing"
        return
    assert found.step is not None
    assert (found.what, found.step.pass_name) == ("pass", name)
    assert found.detail.startswith("result ")
    assert re.search(r"^\+ .*arith.subf", found.diff, re.MULTILINE)
    assert found.lit_case.startswith(f"// RUN: irees opt %s -p '{name}")


@dataclass(frozen=True)
class CommutePass(ModulePass):
    """x + y  =>  y + x, and one of the times x * y  =>  y - x"""

    name = "test-commute"
    optional = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, arith.AddfOp | arith.SubfOp | arith.MulfOp):
                self._rewrite(inner)

    def _rewrite(self, op: Operation) -> None:
        if not may_rewrite(self.name, op, f"operands of {op.name}"):
            return
        if isinstance(op, arith.MulfOp):
            Rewriter.replace_op(op, arith.AddfOp(op.rhs, op.lhs))
        elif isinstance(op, arith.AddfOp):
            op.operands = list(op.operands)[::-1]


def test_a_rewrite_is_named():
    found = bisection(Options(passes={"after:structured": CommutePass()})).find()
    assert (found.what, found.rewrite) == ("rewrite", "operands of arith.mulf")
    assert found.location is not None
    line = int(found.location.split(":")[1])
    assert "arith.mulf" in TEXT.splitlines()[line - 1]
    changed = [line for line in found.diff.splitlines() if line[0] in "+-" and line[1:3] == "  "]
    assert len(changed) == 2
    assert "arith.mulf" in changed[0]
    assert "arith.addf" in changed[1]


def test_a_pass_that_raises_is_named(monkeypatch):
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("x")

    monkeypatch.setattr(load_pass("irees-convert-to-stream"), "apply", apply)
    found = bisection().find()
    assert found.step is not None
    assert (found.what, found.step.pass_name) == ("pass", "irees-convert-to-stream")
    assert "KeyError" in found.detail


def test_what_no_pass_does_is_in_the_text(monkeypatch):
    table = next(v for v in vars(emit_ops).values() if isinstance(v, dict) and "arith.subf" in v)
    monkeypatch.setitem(table, "arith.subf", table["arith.addf"])
    assert bisection().find().what == "text"


def turned(name, monkeypatch, only_if_changed=False):
    """Makes a pass wrong; in some programs only, if those that it does not change stay right."""
    cls = load_pass(name)
    right = cls.apply

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        before = str(op)
        right(self, ctx, op)
        if not only_if_changed or str(op) != before:
            turn_one(op)

    monkeypatch.setattr(cls, "apply", apply)


@pytest.mark.parametrize("name", ["irees-gpu-lower-reductions", "irees-gpu-distribute-to-threads"])
def test_a_pass_is_named_that_runs_on_what_cannot_be_interpreted(name, monkeypatch):
    """Without the rewrites that make such ops, the program is as wrong, and is interpreted."""
    turned(name, monkeypatch)
    found = bisection(Options(target="cuda-emulated")).find()
    assert found.step is not None
    assert (found.what, found.step.pass_name) == ("pass", name)


def test_a_rewrite_is_named_whose_ops_cannot_be_interpreted(monkeypatch):
    turned("irees-gpu-lower-reductions", monkeypatch, only_if_changed=True)
    search = bisection(Options(target="cuda-emulated"))
    found = search.find()
    assert found.step is not None
    assert (found.what, found.step.pass_name) == ("rewrite", "irees-gpu-lower-reductions")
    assert found.detail.startswith("result ")
    fault = search.fault()
    assert fault == Fault("differs", by_rewrites=True)
    assert search.has(fault)
    assert re.search(r"^\+ .*gpu.shuffle", found.diff, re.MULTILINE)


def test_the_pass_is_named_on_whose_ir_a_later_one_fails(monkeypatch):
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("x")

    turned("irees-fuse-elementwise-ops", monkeypatch)
    monkeypatch.setattr(load_pass("irees-convert-to-stream"), "apply", apply)
    search = bisection()
    found = search.find()
    assert found.step is not None
    assert (found.what, found.step.pass_name) == ("pass", "irees-fuse-elementwise-ops")
    fault = search.fault()
    assert fault == Fault("InternalError", pass_name="irees-convert-to-stream")
    assert search.has(fault)


def test_the_pass_is_named_that_moves_an_op_before_its_operands(monkeypatch):
    """The interpreter reads a value that no op has computed; a later pass fails."""
    cls = load_pass("irees-convert-elementwise-to-linalg")
    right = cls.apply

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        for use in [each for each in op.walk() if isinstance(each, arith.MulfOp)]:
            producer = use.lhs.owner
            producer.detach()
            use.parent.insert_op_after(producer, use)

    monkeypatch.setattr(cls, "apply", apply)
    found = bisection().find()
    assert found.step is not None
    assert (found.what, found.step.pass_name) == ("pass", "irees-convert-elementwise-to-linalg")
    assert found.detail.startswith("the IR cannot be interpreted: ")


LOOP = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %r:2 = scf.while (%i = %c0, %v = %x) : (i32, tensor<4xf32>) -> (i32, tensor<4xf32>) {
    %p = arith.cmpi slt, %i, %c3 : i32
    scf.condition(%p) %i, %v : i32, tensor<4xf32>
  } do {
  ^bb0(%i: i32, %v: tensor<4xf32>):
    %j = arith.addi %i, %c1 : i32
    %w = arith.addf %v, %v : tensor<4xf32>
    scf.yield %j, %w : i32, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
"""


def test_the_pass_is_named_that_makes_a_loop_endless(monkeypatch):
    cls = load_pass("irees-simplify-scf")
    right = cls.apply

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        for inner in [each for each in op.walk() if isinstance(each, arith.AddiOp)]:
            Rewriter.replace_op(inner, [], [inner.lhs])

    monkeypatch.setattr(cls, "apply", apply)
    monkeypatch.setattr(bisecting, "INTERPRETING", 0.5)
    monkeypatch.setattr(bisecting, "TIMEOUT", 10.0)
    x = np.ones(4, np.float32)
    module = import_mlir(LOOP)
    found = Bisection(module, Options(), "main", [x], lambda _: []).find()
    assert found.step is not None
    assert (found.step.pass_name, found.kind) == ("irees-simplify-scf", "dies")
    # The limit grows with the time that the first interpretation takes.
    assert re.fullmatch(r"the interpreter has no results after \d+ s", found.detail)


VIEW = """
func.func @main(%a: tensor<16x8xf32>, %b: tensor<8x8xf32>, %u: tensor<1x8xf32>)
    -> (tensor<16x8xf32>, tensor<128xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x8xf32>) -> tensor<16x8xf32>
  %x = linalg.matmul ins(%a, %b : tensor<16x8xf32>, tensor<8x8xf32>)
      outs(%z : tensor<16x8xf32>) -> tensor<16x8xf32>
  %v = tensor.collapse_shape %x [[0, 1]] : tensor<16x8xf32> into tensor<128xf32>
  %y = tensor.insert_slice %u into %x[5, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<16x8xf32>
  return %y, %v : tensor<16x8xf32>, tensor<128xf32>
}
"""
UNASKED = """
func.func @main(%x: tensor<3x4xf32>, %c: tensor<9x6xf32>) -> tensor<9x6xf32> {
  %p = tensor.insert_slice %x into %c[2, 1] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<9x6xf32>
  return %p : tensor<9x6xf32>
}
"""


@pytest.mark.parametrize(("text", "function"), [(VIEW, "is_read_later"), (UNASKED, "is_ours")])
def test_a_tie_is_named_that_overwrites_what_is_read(text, function, monkeypatch, tmp_path, capsys):
    """The interpreter gives the operand's memory to the result."""
    module = sys.modules[load_pass("irees-tie-dispatch-operands").__module__]
    wrong = function != "is_read_later"
    monkeypatch.setattr(module, function, lambda *_: wrong)
    path = tmp_path / "x.mlir"
    path.write_text(text)
    assert main(["bisect", str(path)]) == 0
    assert capsys.readouterr().out.startswith("wrong after irees-tie-dispatch-operands, in phase ")


def test_the_command(tmp_path, monkeypatch, capsys):
    path = tmp_path / "x.mlir"
    path.write_text(TEXT)
    assert main(["bisect", str(path)]) == 1
    assert "nothing to find" in capsys.readouterr().out
    cls = load_pass("irees-bufferize-dispatch")
    right = cls.apply

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        turn_one(op)

    monkeypatch.setattr(cls, "apply", apply)
    case = tmp_path / "case.mlir"
    assert main(["bisect", str(path), "-o", str(case), "--log"]) == 0
    out = capsys.readouterr().out
    assert "wrong after irees-bufferize-dispatch on main_dispatch_0, in phase codegen" in out
    assert "compiled: bad" in out
    monkeypatch.undo()
    assert main(["opt", str(case), "-p", "irees-bufferize-dispatch"]) == 0
    assert main(["bisect", str(path), "--target=reference"]) == 1


UPDATE = """
func.func @main(%cache: tensor<4x4xf32>, %row: tensor<1x4xf32>, %i: index)
    -> (tensor<4xf32>, tensor<4x4xf32> {irees.updates = 0 : index}) {
  %d = arith.subf %row, %row : tensor<1x4xf32>
  %s = arith.addf %d, %row : tensor<1x4xf32>
  %u = tensor.insert_slice %s into %cache[%i, 0] [1, 4] [1, 1]
      : tensor<1x4xf32> into tensor<4x4xf32>
  %r = tensor.extract_slice %row[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> to tensor<4xf32>
  return %r, %u : tensor<4xf32>, tensor<4x4xf32>
}
"""


@pytest.mark.parametrize("name", ["irees-form-tile-regions", "irees-bufferize-dispatch"])
def test_results_that_are_written_into_arguments(name, monkeypatch, tmp_path, capsys):
    path = tmp_path / "update.mlir"
    path.write_text(UPDATE)
    assert main(["bisect", str(path)]) == 1
    cls = load_pass(name)
    right = cls.apply

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        for inner in list(op.walk()):
            if isinstance(inner, arith.AddfOp):
                Rewriter.replace_op(inner, arith.MulfOp(inner.lhs, inner.rhs))

    monkeypatch.setattr(cls, "apply", apply)
    capsys.readouterr()
    assert main(["bisect", str(path)]) == 0
    out = capsys.readouterr().out
    assert f"wrong after {name}" in out
    assert "result[1]" in out


def test_another_order_of_a_sum_is_no_fault(tmp_path):
    path = tmp_path / "sum.mlir"
    kinds = "tensor<64x512xf32>, tensor<512x64xf32>"
    path.write_text(f"""
    func.func @main(%x: tensor<64x512xf32>, %y: tensor<512x64xf32>) -> tensor<64x64xf32> {{
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %r = linalg.matmul ins(%x, %y : {kinds}) outs(%zero : tensor<64x64xf32>) -> tensor<64x64xf32>
      return %r : tensor<64x64xf32>
    }}""")
    assert main(["bisect", str(path)]) == 1
    assert main(["bisect", str(path), "--equality-mode=exact"]) == 0


def test_numbers_are_compared_as_what_they_are(tmp_path, capsys):
    """A compiled program returns numbers of Python, the interpreter some of numpy."""
    path = tmp_path / "numbers.mlir"
    path.write_text("""
    func.func @main(%z: complex<f32>, %f: f32, %h: bf16, %i: i8, %b: i1)
        -> (complex<f32>, f32, bf16, i8, i1) {
      %s = complex.sign %z : complex<f32>
      return %s, %f, %h, %i, %b : complex<f32>, f32, bf16, i8, i1
    }""")
    assert main(["bisect", str(path)]) == 1, capsys.readouterr().out


def test_a_function_that_takes_no_tensor_is_refused(tmp_path, capsys):
    path = tmp_path / "view.mlir"
    path.write_text(
        """
    func.func @main(%x: !flow.dispatch.tensor<readonly:tensor<4xf32>>) {
      return
    }""".replace("!flow", "!iree_tensor_ext")
    )
    assert main(["bisect", str(path)]) == 1
    assert "argument 0 of main is neither a tensor nor a number" in capsys.readouterr().err


def test_a_program_on_buffers(monkeypatch, tmp_path, capsys):
    path = tmp_path / "buffers.mlir"
    path.write_text("""
    func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
      linalg.sub ins(%a, %b : memref<4xf32>, memref<4xf32>) outs(%b : memref<4xf32>)
      return
    }""")
    assert main(["bisect", str(path)]) == 1
    cls = load_pass("irees-bufferize-dispatch")
    right = cls.apply

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        turn_one(op)

    monkeypatch.setattr(cls, "apply", apply)
    capsys.readouterr()
    assert main(["bisect", str(path)]) == 0
    assert "wrong after irees-bufferize-dispatch" in capsys.readouterr().out
    assert main(["reduce", str(path), "-o", str(tmp_path / "small.mlir")]) == 0
    assert (
        "arith.subf" in (tmp_path / "small.mlir").read_text()
        or "linalg.sub" in (tmp_path / "small.mlir").read_text()
    )


@pytest.mark.parametrize(
    ("name", "where"),
    [("return-updates", "before anything "), ("raise-buffers", "in phase input")],
)
def test_a_pass_is_named_that_fails_on_buffers(name, where, monkeypatch, tmp_path, capsys):
    """A program on buffers is given results first; then it is raised to tensors."""
    path = tmp_path / "buffers.mlir"
    path.write_text("""
    func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
      linalg.sub ins(%a, %b : memref<4xf32>, memref<4xf32>) outs(%b : memref<4xf32>)
      return
    }""")
    cls = load_pass(f"irees-{name}")
    right = cls.apply

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        for inner in [each for each in op.walk() if each.name == "linalg.sub"]:
            inner.operands = inner.operands[:1]

    monkeypatch.setattr(cls, "apply", apply)
    assert main(["bisect", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"wrong after irees-{name}, {where}")


def test_a_rewrite_is_named_by_any_property_of_the_program():
    module = import_mlir(TEXT, name="x.mlir")
    x, y = np.full((8, 16), 3, np.float32), np.ones((8, 16), np.float32)
    right = interpret(module, [Case("main", (x, y))])["main"]

    def judge(program) -> Verdict:
        equal = all(np.array_equal(a, b) for a, b in zip(program(x, y), right, strict=True))
        return Verdict("good" if equal else "bad", "it differs")

    options = Options(passes={"after:structured": CommutePass()})
    found = RewriteBisection(module, options, "main", (), lambda _: [], judge=judge).find()
    assert (found.what, found.rewrite) == ("rewrite", "operands of arith.mulf")
    assert (found.step.pass_name, found.detail) == ("test-commute", "it differs")
    assert re.search(r"^- .*arith.mulf", found.diff, re.MULTILINE)


COMMAND = """
import json, sys, zipfile
manifest = json.loads(zipfile.ZipFile(sys.argv[1]).read("manifest.json"))
sys.exit({wrong})
"""


@pytest.mark.parametrize(("wrong", "status", "said"), [
    ("0", 1, "nothing to find: "),
    ("125", 1, "nothing to find: "),
    ("bool(manifest['kernels'][0].get('flops'))", 0, "wrong after irees-annotate-dispatches, in "),
    ("1", 0, "nothing can be said: it is no better without optional rewrites: "),
])  # fmt: skip
def test_a_command_judges_programs(wrong, status, said, tmp_path, capsys):
    """It reads the manifest of the saved program."""
    path, script = tmp_path / "x.mlir", tmp_path / "check.py"
    path.write_text(TEXT)
    script.write_text(COMMAND.format(wrong=wrong))
    assert main(["bisect", str(path), "--command", f"{sys.executable} {script}"]) == status
    out = capsys.readouterr().out
    assert out.startswith(said)
    if "annotate" in said:
        found = re.search(
            r"^rewrite (\d+): annotate .*\nright with --rewrite-limit=(\d+)$", out, re.M
        )
        assert found is not None
        assert int(found[1]) == int(found[2]) + 1
        assert re.search(r"^\+ .*flops", out, re.M)


def test_the_time_of_a_call_is_an_expectation(tmp_path, capsys):
    path = tmp_path / "x.mlir"
    path.write_text(TEXT)
    assert main(["bisect", str(path), "--faster-than=10s"]) == 1
    assert "nothing to find: a call takes 0.0" in capsys.readouterr().out
    assert main(["bisect", str(path), "--faster-than=1us"]) == 0
    assert "no better without optional rewrites: a call takes" in capsys.readouterr().out
    for words in (["--faster-than=soon"], ["--faster-than=1s", "--against=opt0"]):
        assert main(["bisect", str(path), *words]) == 2
    said = capsys.readouterr().err
    assert "--faster-than=soon is no time; as in 2ms" in said
    assert "two expectations are given; use one of" in said
    assert main(["bisect", str(path), "--command=/nowhere"]) == 1
    assert "cannot run /nowhere" in capsys.readouterr().err


NARROW = """
func.func @main(%x: tensor<4xi8> {irees.unsigned}, %y: tensor<4xi4>, %z: i4)
    -> (tensor<4xi8> {irees.unsigned}, tensor<4xi4>, i4) {
  %s = arith.muli %x, %x : tensor<4xi8>
  return %s, %y, %z : tensor<4xi8>, tensor<4xi4>, i4
}
"""


def test_elements_that_callers_see_as_another_type(monkeypatch, tmp_path, capsys):
    """Unsigned integers, and i4, which the interpreter holds in an i8."""
    path = tmp_path / "x.mlir"
    path.write_text(NARROW)
    words = [str(path), "--input=4xui8=200", "--input=4xi4=-8", "--input=-3"]
    assert main(["run", *words, "--target=reference"]) == 0
    assert main(["bisect", *words]) == 1, capsys.readouterr().out
    cls = load_pass("irees-bufferize-dispatch")
    right = cls.apply

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        right(self, ctx, op)
        for inner in list(op.walk()):
            if isinstance(inner, arith.MuliOp) and isinstance(inner.lhs, BlockArgument):
                Rewriter.replace_op(inner, arith.AddiOp(inner.lhs, inner.rhs))

    monkeypatch.setattr(cls, "apply", apply)
    assert main(["bisect", *words]) == 0
    assert "wrong after irees-bufferize-dispatch" in capsys.readouterr().out


def test_a_number_is_given_for_a_tensor_without_dims(tmp_path, capsys):
    path = tmp_path / "x.mlir"
    path.write_text(
        "func.func @main(%x: tensor<f32>, %y: f32) -> tensor<f32> {\n"
        "  %z = arith.negf %x : tensor<f32>\n  return %z : tensor<f32>\n}\n"
    )
    for word in ("--input=2.5", "--input=f32=2.5"):
        assert main(["bisect", str(path), word, "--input=1"]) == 1
        assert "nothing to find" in capsys.readouterr().out


def test_programs_that_cannot_be_bisected(tmp_path, capsys):
    path = tmp_path / "x.mlir"
    path.write_text(TEXT)
    assert main(["compile", str(path), "-o", str(tmp_path / "x.irees")]) == 0
    for words, said in (
        ([str(tmp_path / "x.irees")], "is a saved program, which has no IR; name the program it"),
        ([str(path), "--function=f"], "no function 'f' (it has main); use --function="),
        ([str(path), "--input=8x16xf32=1"], "main has 2 arguments, but 1 are given"),
        ([str(path), "--input=8x16xf32=1", "--input=8x15xf32=1"], "dim 1 is 15, but must be 16"),
        ([str(path), "--command=' "], "--command: no closing quotation; check the quotes"),
        ([str(path), "--command="], "--command is empty; name a command"),
        ([str(path), "--expected-output=1"], "main has 2 results, but --expected-output is given"),
    ):
        capsys.readouterr()
        assert main(["bisect", *words]) in (1, 2)
        assert said in capsys.readouterr().err
        assert main(["reduce", *words]) in (1, 2)
        assert said in capsys.readouterr().err
    path.write_text("")
    assert main(["bisect", str(path)]) == 1
