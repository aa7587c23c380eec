"""`irees diff`: two places of the pipeline, and two programs."""

from __future__ import annotations

import io

import pytest

from irees.reports.differences import differences
from irees.tools.main import main

CHAIN = """
func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %y = linalg.add ins(%x, %x : tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>)
      -> tensor<?x8xf32>
  %z = linalg.exp ins(%y : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %z : tensor<?x8xf32>
}
"""


@pytest.fixture
def chain(tmp_path):
    path = tmp_path / "chain.mlir"
    path.write_text(CHAIN)
    return path


def test_two_places(chain, capsys):
    assert main(["diff", str(chain), "--at", "after:structured", "--at", "after:fused"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "@ @main"
    assert sum("linalg.generic" in line for line in lines if line[0] == "-") == 1
    assert "+    %3 = arith.addf %1, %1 : f32" in lines
    assert lines[-1] == "1 of 1 functions and kernels differ"


def test_one_place_is_compared_with_the_end_or_both_ends(chain, capsys):
    assert main(["diff", str(chain), "--at", "after:tiled"]) == 0
    kernel = capsys.readouterr().out
    assert "@ @main_dispatch_0" in kernel
    assert {line.split()[0] for line in kernel.splitlines() if "vector.load" in line} == {"+"}
    assert main(["diff", str(chain)]) == 0
    whole = capsys.readouterr().out
    assert "@ @main_dispatch_0" in whole
    assert "-  %y = linalg.add" in whole


def test_standard_input_is_read_once(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CHAIN.encode())))
    assert main(["diff", "-", "--at", "after:structured", "--at", "after:fused"]) == 0
    assert capsys.readouterr().out.endswith("1 of 1 functions and kernels differ\n")


def test_two_programs(chain, tmp_path, capsys):
    other = tmp_path / "other.mlir"
    other.write_text(CHAIN.replace("linalg.exp", "linalg.tanh"))
    assert main(["diff", str(chain), str(other), "--at", "after:fused"]) == 0
    out = capsys.readouterr().out
    changed = [line.split("=")[1].split()[0] for line in out.splitlines() if line[0] in "+-"]
    assert changed == ["math.exp", "math.tanh"]
    assert main(["diff", str(chain), str(chain)]) == 0
    assert capsys.readouterr().out == "0 of 1 functions and kernels differ\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["FILE", "--at", "after:nowhere"], "there is no 'nowhere' in this pipeline"),
        (["FILE", "FILE", "FILE"], "one file at two places, or of two files at one"),
        (["FILE", "FILE", "--at", "after:fused", "--at", "after:tiled"], "of two files at one"),
        (["FILE", "none.mlir"], "none.mlir does not exist"),
        (["FILE", "--target", "reference"], "a diff covers one device only"),
    ],
)
def test_what_has_no_meaning_is_an_error(chain, capsys, words, said):
    assert main(["diff", *(str(chain) if word == "FILE" else word for word in words)]) in (1, 2)
    assert said in capsys.readouterr().err


def test_values_may_have_other_numbers():
    old = {"@f": "%0 = a\n%1 = b %0\n%2 = c %1#1", "@g": "x"}
    new = {"@f": "%9 = a\n%x = c %9#0", "@h": "y"}
    found = dict(differences(old, new))
    assert [line for line in found["@f"] if line[0] in "+-"] == ["-%1 = b %0"]
    assert found["@g"][-1] == "-x"
    assert found["@h"][-1] == "+y"
