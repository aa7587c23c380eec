"""The command line: what it prints, and its exit code for every kind of mistake."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import irees
from irees.remarks import hearing
from irees.tools import main as tool
from irees.tools.main import COMMANDS, main

ADD = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.add ins(%a, %b : tensor<4xf32>, tensor<4xf32>)
                  outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
CHECKS = """
func.func @good() {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = arith.constant dense<[1.00001, 2.0]> : tensor<2xf32>
  check.expect_almost_eq(%a, %b) : tensor<2xf32>
  check.expect_eq_const(%a, dense<[1.0, 2.0]> : tensor<2xf32>) : tensor<2xf32>
  return
}
func.func @bad() {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = arith.constant dense<[1.0, 3.0]> : tensor<2xf32>
  check.expect_eq(%a, %b) : tensor<2xf32>
  return
}
"""


@pytest.fixture
def add(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "add.mlir").write_text(ADD)
    return tmp_path / "add.mlir"


def test_overview_version_and_unknown_commands(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)
    assert main([]) == 2
    assert main(["--version"]) == 0
    assert main(["compiel"]) == 2
    assert "unknown command 'compiel'; use compile" in capsys.readouterr().err


def test_the_module_is_the_command():
    words = [sys.executable, "-m", "irees", "--version"]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    assert answer.stdout == f"irees {irees.__version__}\n"


ALONE = """
import sys
sys.modules.update(dict.fromkeys({names!r}))
from irees.tools.main import main
sys.exit(main({words!r}))
"""
EXTRAS = ("hypothesis", "pytest", "torch", "torch_mlir", "jax", "onnx", "z3", "rich", "cupy")
CALLS = {
    "compile": ("add.mlir", "-o", "add.irees"),
    "run": ("add.mlir", "--input=4xf32=1", "--input=4xf32=1"),
    "bench": ("add.mlir", "--benchmark-min-time=1x"),
    "diff": ("add.mlir", "--at=after:fused"),
    "report": ("add.mlir", "-o", "add.html"),
    "bisect": ("add.mlir",),
    "reduce": ("add.mlir", "--keep-if=true", "--seconds=1"),
    "opt": ("add.mlir", "-p", "cse"),
    "check-module": ("checks.mlir", "--function=good"),
    "explain": ("add.mlir", "--no-measure"),
    "cache": ("stats",),
    "doctor": (),
    "completion": ("bash",),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_need_no_extras(command, add, tmp_path):
    """A plain `pip install irees` has numpy, ml_dtypes and xDSL, and nothing else."""
    (tmp_path / "checks.mlir").write_text(CHECKS)
    code = ALONE.format(names=EXTRAS, words=[command, *CALLS[command]])
    words = [sys.executable, "-c", code]
    answer = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    expected = 1 if command == "bisect" else 0  # there is nothing to find
    assert answer.returncode == expected, answer.stderr


def test_commands_read_programs_from_the_cache(add, tmp_path, monkeypatch):
    """The second time nothing is compiled, unless the command line asks for what a pass says."""
    monkeypatch.setenv("IREES_CACHE_DIR", str(tmp_path / "cache"))
    given = ["--input=4xf32=1", "--input=4xf32=2", "--expected-output=4xf32=3"]
    compiled: list[str] = []
    with hearing(compiled.append):
        assert main(["run", str(add), *given]) == 0
        assert compiled
        compiled.clear()
        assert main(["run", str(add), *given]) == 0
        assert main(["compile", str(add), "-o", str(tmp_path / "add.irees")]) == 0
        assert main(["explain", str(add), "--no-measure"]) == 0
        assert compiled == []
        assert main(["run", str(add), *given, "--remarks"]) == 0
        assert compiled


def test_several_passes_are_left_out(add, capsys):
    flags = ["--disable-pass=cse,canonicalize", "--disable-pass", "irees-fold-constants"]
    names = ["--mlir-print-ir-after=cse,canonicalize,irees-fold-constants"]
    assert main(["compile", str(add), "--compile-to=global-opt", *flags, *names]) == 0
    assert "IR Dump After" not in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    assert main([command, "--help"]) == 0
    assert COMMANDS[command][:20] in " ".join(capsys.readouterr().out.split())
    assert main([command, "--no-such-flag"]) == 2


def test_compile_and_run_a_saved_program(add, capsys):
    assert main(["compile", "add.mlir", "-o", "add.irees"]) == 0
    assert main(["run", "add.irees", "--input=4xf32=1", "--input=4xf32=1 2 3 4"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "EXEC @main",
        "result[0]: hal.buffer_view",
        "4xf32=2 3 4 5",
    ]


def test_run_with_iree_spellings_files_and_expectations(add, capsys):
    np.save("x.npy", np.arange(4, dtype=np.float32))
    inputs = ["--module=add.mlir", "--function=main", "--input=@x.npy", "--input=4xf32=1"]
    assert main(["run", *inputs, "--expected_output=4xf32=1 2 3 4"]) == 0
    assert "[SUCCESS]" in capsys.readouterr().out
    assert main(["run", *inputs, "--expected_output=4xf32=1 2 3 5"]) == 1
    assert "[FAILED] result[0]: element at index 3 (4) does not" in capsys.readouterr().out
    assert main(["run", *inputs, "--expected_output=(ignored)", "--output=@y.npy"]) == 0
    assert np.load("y.npy").tolist() == [1, 2, 3, 4]
    assert main(["run", *inputs, "--expected_output=4xf32=1", "--expected_output=4xf32=1"]) != 0


def test_compile_to_a_phase_and_dumps(add, capsys):
    assert main(["compile", "add.mlir", "--compile-to=global-opt"]) == 0
    assert "linalg.generic" in capsys.readouterr().out
    dumped = ["--dump-compilation-phases-to=dumps", "--mlir-print-ir-after-all", "--mlir-timing"]
    assert main(["compile", "add.mlir", "-o", "add.c", *dumped]) == 0
    captured = capsys.readouterr()
    assert "// -----// IR Dump After " in captured.err
    assert "Execution time report" in captured.err
    assert sorted(os.listdir("dumps"))[0] == "00-start.mlir"
    assert "irees_entry_0" in open("add.c").read()
    flags = ["--mlir-print-ir-before=irees-plan-arena", "--compile-to=stream"]
    assert main(["compile", "add.mlir", *flags]) == 0
    assert "// -----// IR Dump Before PlanArenaPass" in capsys.readouterr().err


def test_standard_input(add, monkeypatch, capsys):
    class Input:
        buffer = io.BytesIO(ADD.encode())

    monkeypatch.setattr(sys, "stdin", Input)
    assert main(["compile", "-", "--compile-to=input"]) == 0
    assert "func.func @main" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["run"], 2, "exactly one program"),
        (["run", "add.mlir", "--module=add.mlir"], 2, "exactly one program"),
        (["run", "missing.mlir"], 1, "missing.mlir does not exist"),
        (["run", "."], 1, ". is a folder"),
        (["run", "add.mlir"], 1, "main takes 2 arguments, but 0 given"),
        (["run", "add.mlir", "--function=f"], 1, "no function 'f' (it has main)"),
        (["run", "add.mlir", "--input=4xf33=1"], 1, "'f33' is not an element type"),
        (["run", "add.mlir", "--input=3xf32=1", "--input=4xf32"], 1, "dim 0 is 3, but must be 4"),
        (["run", "add.mlir", "--num-threads=0"], 1, "the number of threads is 0"),
        (["compile", "add.mlir"], 2, "an output is required"),
        (["compile", "add.mlir", "-o", "add.xyz"], 2, "no known suffix"),
        (["compile", "add.mlir", "-o", "add.mlir"], 1, "the output add.mlir is the input"),
        (["compile", "add.mlir", "-o", "no/where.irees"], 1, "cannot write no/where.irees"),
        (["compile", "add.mlir", "--compile-to=nowhere"], 1, "no phase 'nowhere'"),
        (["compile", "add.mlir", "-o", "x.irees", "--target=vax"], 1, "target 'vax' is unknown"),
        (["compile", "add.mlir", "-o", "x.irees", "--target=cpu:vax"], 1, "arch 'vax' is unknown"),
        (
            ["compile", "add.mlir", "-o", "x.irees", "--target=cuda:sm_1"],
            1,
            "arch 'sm_1' is unknown",
        ),
        (["compile", "add.mlir", "-o", "x.irees", "-O7"], 2, "invalid choice"),
        (["compile", "bad.mlir", "-o", "x.irees"], 1, "bad.mlir:"),
        (["run", "cut.irees"], 1, "not a saved program"),
        (["bench", "add.mlir", "--benchmark-min-time=fast"], 2, "neither a time nor a count"),
        (["check-module", "add.mlir"], 1, "no tests found"),
        (["opt", "add.mlir", "-p", "canonicalise"], 2, "unknown; try canonicalize"),
        (["opt", "add.mlir", "-p", "cse{x=1}"], 2, "bad option of cse"),
        (["opt", "add.mlir", "-p", "any(cse"], 2, "do not match"),
        (["opt", "add.mlir", "-p", "cse,,{"], 2, "do not match"),
        (["cache", "prune", "--max-size=big"], 1, "is not a size"),
        (["cache", "burn"], 2, "invalid choice"),
    ],
)
def test_mistakes_are_one_line_and_an_exit_code(add, capsys, words, status, message):
    (add.parent / "bad.mlir").write_text("func.func @main( {")
    (add.parent / "cut.irees").write_bytes(b"PK\x03\x04 and no more")
    assert main(words) == status
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    if status != 2:
        assert len(error.splitlines()) == 1
    assert not list(add.parent.glob(".irees-*"))


def test_toolchain_errors_are_4(add, monkeypatch, capsys):
    monkeypatch.setenv("IREES_CC", "/no/cc")
    assert main(["run", "add.mlir"]) == 4
    assert "missing; correct IREES_CC" in capsys.readouterr().err


def test_a_bug_leaves_a_report(add, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tool, "_dashed", str)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("irees.tools.cache.default_cache", lambda: 1 / 0)
    assert main(["cache", "stats"]) == 70
    error = capsys.readouterr().err
    assert "please report it with the file" in error
    assert "ZeroDivisionError" in open(error.split()[-1]).read()


def test_interrupt(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("irees.tools.cache.default_cache", interrupt)
    assert main(["cache", "stats"]) == 130


def test_a_reader_that_leaves(add):
    command = f"{sys.executable} -m irees.tools.main opt --list-passes | true"
    answer = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert answer.stderr == ""


def test_bench(add, capsys):
    words = ["--benchmark-min-time=3x", "--benchmark_repetitions=2", "--benchmark-format=json"]
    assert main(["bench", "add.mlir", *words]) == 0
    report = json.loads(capsys.readouterr().out)["benchmarks"][0]
    assert report["iterations"] == 3
    assert 0 < report["min"] <= report["median"] <= report["max"]


def test_check_module(tmp_path, capsys):
    path = tmp_path / "checks.mlir"
    path.write_text(CHECKS)
    assert main(["check-module", str(path), "--function=good"]) == 0
    assert main(["check-module", str(path)]) == 1
    out = capsys.readouterr().out
    assert "[       OK ] good" in out
    assert "checks.mlir:12:3: [FAILED] result[0]: element at index 1 (2)" in out


def test_explain_cache_and_doctor(add, capsys):
    assert main(["explain"]) == 0
    assert "global-opt: " in capsys.readouterr().out
    assert main(["explain", "add.mlir"]) == 0
    assert "function main(tensor<4xf32>, tensor<4xf32>)" in capsys.readouterr().out
    assert main(["cache", "stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rejected"] == 0
    assert main(["cache", "verify"]) == 0
    assert main(["cache", "prune", "--max-size=2G"]) == 0
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "ok    C compiler" in told
    assert all(f"  {name}: " in told for name in ("C++ compiler", "NVRTC", "GPU"))


@pytest.mark.parametrize("output", ["x.irees", "x.c", "x.so", "x.mlir"])
def test_the_reference_target_writes_nothing(add, output, capsys):
    assert main(["compile", str(add), "--target=reference", "-o", output]) == 2
    assert "nothing to write" in capsys.readouterr().err
    assert not (add.parent / output).exists()


UNITS = """
func.func @main(%x: tensor<64x128xf16>, %y: tensor<128x64xf16>, %i: tensor<32x64xi8>,
                %j: tensor<64x32xi8>) -> (tensor<64x64xf32>, tensor<32x32xi32>, tensor<64xf32>) {
  %z = arith.constant 0.0 : f32
  %c = arith.constant 0 : i32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.matmul ins(%x, %y : tensor<64x128xf16>, tensor<128x64xf16>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = tensor.empty() : tensor<32x32xi32>
  %h = linalg.fill ins(%c : i32) outs(%g : tensor<32x32xi32>) -> tensor<32x32xi32>
  %s = linalg.matmul ins(%i, %j : tensor<32x64xi8>, tensor<64x32xi8>) outs(%h : tensor<32x32xi32>) -> tensor<32x32xi32>
  %k = tensor.empty() : tensor<64xf32>
  %l = linalg.fill ins(%z : f32) outs(%k : tensor<64xf32>) -> tensor<64xf32>
  %t = linalg.reduce ins(%r : tensor<64x64xf32>) outs(%l : tensor<64xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      %m = math.exp %a : f32
      %n = arith.addf %m, %b : f32
      linalg.yield %n : f32
    }
  return %r, %s, %t : tensor<64x64xf32>, tensor<32x32xi32>, tensor<64xf32>
}
"""


@pytest.mark.parametrize("target", ["cpu", "cpu:generic"])
def test_c_of_a_program_is_one_text_that_a_compiler_takes(tmp_path, target):
    import irees
    from irees.backends.common.toolchain import find_compiler
    from irees.target import Target

    (tmp_path / "x.mlir").write_text(UNITS)
    words = ["compile", str(tmp_path / "x.mlir"), f"--target={target}", "-o"]
    assert main([*words, str(tmp_path / "x.c")]) == 0
    text = (tmp_path / "x.c").read_text()
    assert text.count("/* ---- ") >= 4
    headers = Path(irees.__file__).parent / "runtime" / "native"
    flags = ["-std=gnu11", "-Werror", f"-I{headers}", *Target.parse(target).c_flags, "-c"]
    command = [*find_compiler().command, *flags, str(tmp_path / "x.c"), "-o", str(tmp_path / "x.o")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr[:2000]


def test_c_holds_no_kernels_of_a_gpu(add, capsys):
    assert main(["compile", str(add), "--target=cuda-emulated", "-o", "x.c"]) == 2
    assert "cannot hold kernels of a GPU" in capsys.readouterr().err


def test_limits_on_the_command_line(add, capsys):
    assert main(["compile", str(add), "--limit=ops=2", "-o", "x.irees"]) == 5
    assert "limit 'ops': 2 ops" in capsys.readouterr().err
    for wrong in ("ops", "ops=x", "ops=-1", "ops=" + "9" * 5000):
        assert main(["compile", str(add), f"--limit={wrong}", "-o", "x.irees"]) == 2
    assert main(["compile", str(add), "--limit=nowhere=1", "-o", "x.irees"]) == 1
    assert main(["compile", str(add), "--limit=ops=200", "-o", "x.irees"]) == 0


def test_a_pass_that_breaks_the_ir_leaves_a_report(add, monkeypatch, capsys, tmp_path):
    from irees.transforms import load_pass

    def breaks(self, ctx, module):
        for op in module.walk():
            if op.name == "linalg.add":
                op.properties.pop("operandSegmentSizes")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(load_pass("irees-simplify-scf"), "apply", breaks)
    assert main(["opt", str(add), "-p", "irees-simplify-scf"]) == 70
    error = capsys.readouterr().err
    assert "please report it with the file" in error
    assert "linalg.add ins" in open(error.split()[-1]).read()
