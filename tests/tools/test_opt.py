"""`irees opt`: pipelines in both syntaxes, printing, splitting, expected errors."""

from __future__ import annotations

import pytest

from irees.errors import ArgumentError
from irees.pass_specs import flatten
from irees.tools.main import main

DEAD = """func.func @f() {
  %c = arith.constant 1 : index
  return
}
"""


@pytest.fixture
def opt(tmp_path, capsys):
    def run(text, *words):
        path = tmp_path / "x.mlir"
        path.write_text(text)
        status = main(["opt", str(path), *words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err.replace(str(path), "x.mlir")

    return run


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        ("", ""),
        ("a,b", "a,b"),
        ("builtin.module(a)", "a"),
        ("builtin.module(func.func(a,b),c)", "a,b,c"),
        ("any( a{x=1 y=(2)} , b )", "a{x=1 y=(2)} , b"),
        ("builtin.module(func.func(),a)", "a"),
        ("a{x=1,2}", "a{x=1,2}"),
    ],
)
def test_pipelines_of_mlir(text, flat):
    assert flatten(text) == flat


@pytest.mark.parametrize("text", ["a)", "any(a", "a{x", "a}", "any(a))("])
def test_brackets_that_do_not_match(text):
    with pytest.raises(ArgumentError):
        flatten(text)


def test_passes_run(opt):
    assert "arith.constant" in opt(DEAD)[1]
    for words in (
        ["-p", "canonicalize"],
        ["--pass-pipeline=builtin.module(func.func(canonicalize))"],
    ):
        status, out, _ = opt(DEAD, *words)
        assert status == 0
        assert "arith.constant" not in out


def test_printing(opt):
    assert '"func.func"()' in opt(DEAD, "--mlir-print-op-generic")[1]
    assert "loc(" in opt(DEAD, "--mlir-print-debuginfo")[1]
    _, _, err = opt(DEAD, "-p", "cse,canonicalize", "--mlir-print-ir-before-all", "--mlir_timing")
    assert "// -----// IR Dump Before CsePass: cse //----- //" in err
    assert "// -----// IR Dump Before CanonicalizePass: canonicalize //----- //" in err
    assert "Total" in err


def dumped(err: str) -> list[str]:
    return [
        line.split("IR Dump ")[1].split(" //")[0] for line in err.splitlines() if "Dump" in line
    ]


def test_printing_of_some_passes(opt):
    flags = ("-p", "cse,canonicalize,cse")
    after = [f"After {name}" for name in ("CsePass: cse", "CanonicalizePass: canonicalize")]
    assert dumped(opt(DEAD, *flags, "--mlir-print-ir-after=canonicalize")[2]) == after[1:]
    assert dumped(opt(DEAD, *flags, "--mlir-print-ir-before=cse,canonicalize")[2]) == [
        "Before CsePass: cse", "Before CanonicalizePass: canonicalize", "Before CsePass: cse",
    ]  # fmt: skip
    changed = dumped(
        opt(DEAD, *flags, "--mlir-print-ir-after-all", "--mlir-print-ir-after-change")[2]
    )
    assert len(changed) == 1
    assert dumped(opt(DEAD, *flags, "--mlir-print-ir-after-change")[2]) == changed
    assert opt(DEAD, *flags, "--dump-pass-pipeline")[2] == "builtin.module(cse,canonicalize,cse)\n"
    status, _, err = opt(DEAD, "--mlir-print-ir-after=canonicalise")
    assert status == 2
    assert "pass 'canonicalise' is unknown; try canonicalize" in err


def test_printing_of_a_failure(opt):
    text = """func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %r = linalg.negf ins(%x : tensor<2xf32>) outs(%x : tensor<2xf32>) -> tensor<2xf32>
      return %r : tensor<2xf32>
    }"""
    flags = ("-p", "cse,irees-convert-to-stream", "--mlir-print-ir-after-failure")
    status, _, err = opt(text, *flags)
    assert status == 3
    assert dumped(err) == ["After ConvertToStreamPass Failed: irees-convert-to-stream"]


def test_lists(opt):
    assert "irees-form-tile-regions\n" in opt("", "--list-passes")[1]
    assert "linalg\n" in opt("", "--show-dialects")[1]


def test_splitting(opt):
    status, out, _ = opt(f"{DEAD}// -----\n{DEAD}", "--split-input-file")
    assert status == 0
    assert out.count("// -----\n") == 1
    assert out.count("func.func @f") == 2
    assert opt(f"{DEAD}// -----\n{DEAD}")[0] == 1


def test_unregistered_ops(opt):
    text = '"my.op"() : () -> ()\n'
    assert opt(text)[0] == 1
    assert '"my.op"' in opt(text, "--allow-unregistered-dialect")[1]


def test_expected_errors(opt):
    good = '// expected-error@+1 {{my.op}}\n"my.op"() : () -> ()\n'
    flags = ("--verify-diagnostics", "--split-input-file")
    assert opt(good, *flags) == (0, "", "")
    status, _, err = opt(f"{DEAD}// -----\n{good.replace('my.op}}', 'other}}')}", *flags)
    assert status == 1
    assert "x.mlir:7: error: expected error 'other' was not produced" in err
    assert "unexpected error" in err
    assert opt(DEAD, *flags)[0] == 0


def test_the_whole_pipeline(opt):
    status, out, _ = opt(DEAD, "-p", "irees-pipeline{to=global-opt}")
    assert status == 0
    assert "func.func @f" in out
