"""`--remarks` for people, `--remarks=json` for programs."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from irees.remarks import Kind, Remark
from irees.tools.main import main

SOURCE = """\
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x8xf32> {
  %s = iree_linalg_ext.sort dimension(1) outs(%x : tensor<4x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf oge, %a, %b : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4x64xf32>
  %k = tensor.extract_slice %s[0, 0] [4, 8] [1, 1] : tensor<4x64xf32> to tensor<4x8xf32>
  return %k : tensor<4x8xf32>
}
"""
KEYS = ["kind", "pass", "location", "op", "text"]
TEXT = "rewrite 1 (topk of sort and slices) is beyond the limit, as are all after it"
GOLDEN = (
    '{"kind": "missed", "pass": "irees-raise-special-ops", '
    '"location": {"file": "x.mlir", "line": 2, "column": 3}, '
    f'"op": "iree_linalg_ext.sort", "text": "{TEXT}"}}\n'
)


@pytest.fixture(autouse=True)
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.mlir").write_text(SOURCE)


def test_one_line_of_json(capsys):
    command = ["opt", "-p", "irees-raise-special-ops", "--rewrite-limit=0"]
    assert main([*command, "--remarks=json", "x.mlir"]) == 0
    assert capsys.readouterr().err == GOLDEN


def test_one_line_of_text_and_no_value_from_the_next_word(capsys):
    command = ["opt", "-p", "irees-raise-special-ops", "--rewrite-limit=0"]
    assert main([*command, "--remarks", "x.mlir"]) == 0
    place = "x.mlir:2:3: remark: [missed] irees-raise-special-ops: "
    assert capsys.readouterr().err == f"{place}{TEXT}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["compile", "--compile-to=codegen"],
        ["run", f"--input=4x64xf32={','.join(map(str, range(256)))}"],
        ["opt", "-p", "irees-pipeline"],
    ],
    ids=lambda words: words[0],
)
def test_every_line_parses(words, capsys):
    assert main([*words, "x.mlir", "--rewrite-limit=0", "--remarks=json"]) == 0
    printed = capsys.readouterr()
    lines = [json.loads(line) for line in printed.err.splitlines()]
    assert lines
    for line in lines:
        assert [key for key in line if key != "dispatch"] == KEYS
        assert line["kind"] in get_args(Kind)
    assert main([*words, "x.mlir", "--rewrite-limit=0"]) == 0
    without = capsys.readouterr()
    assert (without.out, without.err) == (printed.out, "")


@pytest.mark.parametrize(
    ("location", "place"),
    [
        (None, None),
        ("a name", {"name": "a name"}),
        ("a:b.mlir:3:4", {"file": "a:b.mlir", "line": 3, "column": 4}),
        ("a.mlir:3", {"name": "a.mlir:3"}),
    ],
)
def test_locations(location, place):
    line = json.loads(Remark("passed", "p", location, 'a\n"b" \u00e9').as_json())
    assert line == {
        "kind": "passed", "pass": "p", "location": place, "op": None, "text": 'a\n"b" \u00e9'
    }  # fmt: skip


def test_another_form(capsys):
    assert main(["opt", "x.mlir", "--remarks=xml"]) == 2
    assert "argument --remarks" in capsys.readouterr().err
