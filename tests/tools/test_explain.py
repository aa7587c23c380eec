"""`irees explain`: what it says of each dispatch, as text and as data."""

from __future__ import annotations

import json

import pytest

import irees
from irees.errors import ParseError
from irees.tools.main import main

MATMUL = """
func.func @main(%a: tensor<{m}x64xf32>, %b: tensor<64x32xf32>) -> tensor<{m}x32xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty({dim}) : tensor<{m}x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}x32xf32>) -> tensor<{m}x32xf32>
  %r = linalg.matmul ins(%a, %b : tensor<{m}x64xf32>, tensor<64x32xf32>)
                     outs(%f : tensor<{m}x32xf32>) -> tensor<{m}x32xf32>
  return %r : tensor<{m}x32xf32>
}}
"""
GATHER = """
func.func @main(%x: tensor<8xi64>) -> tensor<8xi64> {
  %e = tensor.empty() : tensor<8xi64>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<8xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%p: i64, %o: i64):
    %c = arith.constant 3 : i64
    %s = arith.remui %p, %c : i64
    linalg.yield %s : i64
  } -> tensor<8xi64>
  return %r : tensor<8xi64>
}
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(MATMUL.format(m=16, dim=""))
    dynamic = MATMUL.format(m="?", dim="%d")
    dims = "%0 = arith.constant 0 : index\n %d = tensor.dim %a, %0 : tensor<?x64xf32>\n %zero"
    (tmp_path / "d.mlir").write_text(dynamic.replace("%zero", dims, 1))
    (tmp_path / "g.mlir").write_text(GATHER)


def explained(capsys, *words: str):
    assert main(["explain", *words, "--format=json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_text(files, capsys):
    assert main(["explain", "m.mlir"]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("main_dispatch_0")).split()
    assert row[1:3] == ["1", "contraction"]
    assert row[-1].endswith("%")
    assert "contract 16x32x64 f32" in out
    assert "peaks: " in out


def test_data(files, capsys):
    data = explained(capsys, "m.mlir")
    (dispatch,) = data["dispatches"]
    assert dispatch["flops"] == 2 * 16 * 64 * 32
    assert dispatch["bytes"] == 4 * (16 * 64 + 64 * 32 + 16 * 32)
    assert dispatch["seconds"] > 0
    assert data["peaks"]["gflops"] > 0


def test_without_measuring(files, capsys):
    data = explained(capsys, "m.mlir", "--no-measure")
    assert data["seconds"] is None
    assert data["dispatches"][0]["gflops"] is None


def test_dynamic_sizes_need_inputs(files, capsys):
    assert main(["explain", "d.mlir"]) == 0
    captured = capsys.readouterr()
    assert "its size is dynamic; use --input=" in captured.err
    assert "main_dispatch_0" in captured.out
    data = explained(capsys, "d.mlir", "--input=5x64xf32=1", "--input=64x32xf32=2")
    assert data["dispatches"][0]["seconds"] > 0
    assert data["dispatches"][0]["flops"] is None


def test_what_was_rejected_stands_below_its_dispatch(files, capsys):
    (dispatch,) = explained(capsys, "g.mlir")["dispatches"]
    assert any("arith.remui" in reason for reason in dispatch["rejected"])
    assert any(reason.startswith("not tiled: ") for reason in dispatch["rejected"])
    assert main(["explain", "g.mlir"]) == 0
    out = capsys.readouterr().out
    assert "    - irees-vectorize-structured-ops: arith.remui" in out
    assert "remarks: none" in out


def test_saved_programs(files, capsys):
    assert main(["compile", "m.mlir", "-o", "m.irees"]) == 0
    assert explained(capsys, "m.irees")["seconds"] is None
    assert main(["explain", "m.irees", "--input=16x64xf32=1"]) == 1
    assert "does not time its dispatches" in capsys.readouterr().err
    assert main(["compile", "m.mlir", "--time-dispatches", "-o", "t.irees"]) == 0
    assert explained(capsys, "t.irees")["seconds"] > 0


def test_mistakes(files, capsys):
    assert main(["explain", "nothing.mlir"]) == 1
    assert main(["explain", "m.mlir", "--function=other"]) == 1
    assert "no function 'other'" in capsys.readouterr().err


HOSTILE = [
    {"kernels": 5}, {"kernels": [5]}, {"kernels": [{}]}, {"kernels": [{"name": []}]}, {"remarks": 5},
    {"kernels": [{"name": "x", "calls": "a"}]}, {"kernels": [{"name": "x", "configs": 5}]},
    {"kernels": [{"name": "x", "configs": [5]}]}, {"kernels": [{"name": "x", "remarks": [[]]}]},
    {"kernels": [{"name": "x", "configs": [{"sizes": 5}]}]},
    {"kernels": [{"name": "x", "configs": [{"block": ["a"]}]}]},
    {"kernels": [{"name": "x", "configs": [{"group": []}]}]},
    {"kernels": [{"name": "x", "flops": "a", "bytes": 3, "calls": 2}]},
    {"memory": 5}, {"memory": [1]},
]  # fmt: skip


@pytest.mark.parametrize("manifest", HOSTILE)
def test_a_hostile_manifest_is_a_parse_error(manifest):
    text = "func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }"
    program = irees.compile(text)
    program.manifest.update(manifest)
    for as_data in (False, True):
        with pytest.raises(ParseError, match="the manifest's"):
            program.explain(as_data=as_data)


def test_a_bare_kernel_is_explained():
    text = "func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }"
    program = irees.compile(text)
    nothing = {"calls": None, "flops": None, "bytes": None, "configs": None, "remarks": None}
    program.manifest["kernels"] = [{"name": "x"}, {"name": "y", "vector": None, **nothing}]
    assert "y" in program.explain()
