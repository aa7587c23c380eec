"""Tuning: candidates, what is legal, what is kept, and that results stay what they were."""

from __future__ import annotations

import copy
import itertools
import json

import numpy as np
import pytest

import irees
from irees import tuning
from irees.errors import ArgumentError
from irees.remarks import collect
from irees.tools.main import main
from irees.tuning import Samples, candidates, interleave

MATMUL = """
func.func @main(%a: tensor<96x64xf32>, %b: tensor<64x160xf32>) -> tensor<96x160xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96x160xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<96x160xf32>) -> tensor<96x160xf32>
  %r = linalg.matmul ins(%a, %b : tensor<96x64xf32>, tensor<64x160xf32>)
                     outs(%f : tensor<96x160xf32>) -> tensor<96x160xf32>
  return %r : tensor<96x160xf32>
}
"""
PACKED = (
    MATMUL.replace(", %b: tensor<64x160xf32>", "").replace(
        "%zero =", "%b = arith.constant dense_resource<w> : tensor<64x160xf32>\n  %zero =", 1
    )
    + '{-# dialect_resources: { builtin: { w: "0x04000000'
    + np.random.default_rng(1).standard_normal((64, 160), np.float32).tobytes().hex()
    + '" } } #-}'
)
SOFTMAX = """
func.func @main(%a: tensor<300x200xf32>) -> tensor<300x200xf32> {
  %e = tensor.empty() : tensor<300x200xf32>
  %r = linalg.softmax dimension(1) ins(%a : tensor<300x200xf32>) outs(%e : tensor<300x200xf32>)
    -> tensor<300x200xf32>
  return %r : tensor<300x200xf32>
}
"""
A = np.random.default_rng(2).standard_normal((96, 64), np.float32)
B = np.random.default_rng(3).standard_normal((64, 160), np.float32)
X = np.random.default_rng(4).standard_normal((300, 200), np.float32)


@pytest.fixture
def quick(monkeypatch):
    """Fewer pairs, so that tests are short."""
    monkeypatch.setattr(tuning, "PAIRS", 3)
    monkeypatch.setattr(tuning, "ROUND_SECONDS", 0.01)
    monkeypatch.setattr(tuning, "FINAL_SECONDS", 0.01)


@pytest.mark.parametrize(
    ("text", "inputs"), [(MATMUL, [A, B]), (PACKED, [A]), (SOFTMAX, [X])], ids=["a", "packed", "s"]
)
def test_no_candidate_changes_the_result(text, inputs):
    plain = irees.compile(text)
    expected, (kernel,) = plain(*inputs), plain.manifest["kernels"]
    tried = list(itertools.islice(candidates(kernel), 12))
    assert len(tried) >= 3
    effective = []
    for configs in tried:
        program = irees.compile(text, tuning={kernel["key"]: configs})
        np.testing.assert_allclose(program(*inputs), expected, rtol=1e-5, atol=1e-5)
        assert program.manifest["kernels"][0]["tuned"]
        assert program.tuning == {kernel["key"]: configs}
        effective.append(program.manifest["kernels"][0]["configs"])
    assert any(each != kernel["configs"] for each in effective)


@pytest.mark.parametrize("tile", [1, 7, 1000, 0])
def test_any_tile_is_right(tile):
    (kernel,) = irees.compile(SOFTMAX).manifest["kernels"]
    configs = [{"workgroup": [tile] * len(c["workgroup"])} for c in kernel["configs"]]
    program = irees.compile(SOFTMAX, tuning={kernel["key"]: configs})
    np.testing.assert_allclose(program(X), irees.compile(SOFTMAX)(X), rtol=1e-6)
    assert program.manifest["kernels"][0]["configs"][0]["workgroup"][0] == tile % 1000


def test_panels_are_not_cut_and_blocks_are_vectors():
    (kernel,) = irees.compile(PACKED).manifest["kernels"]
    place = next(i for i, c in enumerate(kernel["configs"]) if "block" in c)
    tiles = [{} for _ in kernel["configs"]]
    tiles[0] = {"workgroup": [32, 7]}
    blocks = [{} for _ in kernel["configs"]]
    blocks[place] = {"block": [4, kernel["configs"][place]["block"][1] * 2]}
    for wrong, words in ((tiles, "cuts a panel"), (blocks, "columns does not fit")):
        with collect() as remarks:
            program = irees.compile(irees.import_mlir(PACKED), tuning={kernel["key"]: wrong})
        assert any(words in remark.text for remark in remarks)
        assert program.manifest["kernels"][0]["configs"] == kernel["configs"]
        np.testing.assert_array_equal(program(A), irees.compile(PACKED)(A))


def test_another_number_of_ops_is_a_remark():
    (kernel,) = irees.compile(MATMUL).manifest["kernels"]
    with collect() as remarks:
        program = irees.compile(irees.import_mlir(MATMUL), tuning={kernel["key"]: [{}] * 9})
    assert any("it has 2 ops, but 9 configs" in remark.text for remark in remarks)
    assert not program.manifest["kernels"][0]["tuned"]


@pytest.mark.parametrize(
    "wrong", [3, "{", "[]", {"k": 3}, {"k": [{"tiles": [1]}]}, {"k": [{"workgroup": [-1]}]}]
)
def test_what_is_no_tuning(wrong):
    with pytest.raises(ArgumentError, match="tuning must map keys of dispatches"):
        irees.compile(MATMUL, tuning=wrong)


def test_samples():
    faster = Samples([2.0, 2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 3.0])
    assert faster.gain == 0.5
    assert faster.is_faster()
    assert not Samples([2.0] * 4, [1.99] * 4).is_faster()
    assert not Samples([2.0, 2.0, 2.0], [1.0, 1.9, 2.5]).is_faster()
    assert not Samples().is_faster()


def test_interleave_calls_both_in_turn():
    calls = []

    def one(name, seconds):
        def call():
            calls.append(name)
            return {"k": seconds}

        return call

    found = interleave(one("a", 2.0), one("b", 1.0), 0.0)
    assert found["k"].before == [2.0] * tuning.PAIRS
    assert found["k"].after == [1.0] * tuning.PAIRS
    assert calls[2:6] == ["b", "a", "a", "b"]


def rigged(monkeypatch, verdict):
    """Comparisons that always say the same."""

    def compare(before, after, seconds):
        names = set(before()) & set(after())
        return {name: Samples([1.0] * 5, [verdict] * 5) for name in names}

    monkeypatch.setattr(tuning, "interleave", compare)


def test_what_is_faster_is_kept_and_saved(monkeypatch, tmp_path):
    rigged(monkeypatch, 0.5)
    with collect() as remarks:
        program = irees.tune(SOFTMAX, [X], budget=3.0)
    assert list(program.tuning) == [program.manifest["kernels"][0]["key"]]
    assert any("takes 50% of its time" in remark.text for remark in remarks)
    assert program.tracer is None
    np.testing.assert_allclose(program(X), irees.compile(SOFTMAX)(X), rtol=1e-6)
    program.save(tmp_path / "x.irees")
    assert irees.load(tmp_path / "x.irees").tuning == program.tuning
    again = irees.compile(SOFTMAX, tuning=program.tuning)
    assert again.manifest["kernels"] == program.manifest["kernels"]
    assert "(tuned)" in again.explain()


@pytest.mark.parametrize("verdict", [0.99, 1.0, 2.0])
def test_what_is_not_faster_is_not_kept(monkeypatch, verdict):
    rigged(monkeypatch, verdict)
    assert irees.tune(SOFTMAX, [X], budget=1.0).tuning == {}


def test_a_real_run(quick):
    program = irees.tune(MATMUL, [A, B], budget=1.0)
    np.testing.assert_allclose(program(A, B), A @ B, rtol=1e-4, atol=1e-4)


def test_a_tuned_program_is_tuned_from_its_tuning(quick):
    key = irees.compile(MATMUL).manifest["kernels"][0]["key"]
    chosen = {key: [{"workgroup": [48, 80, 0]}]}
    program = irees.compile(MATMUL, tuning=chosen)
    assert program.tuning == chosen
    again = irees.tune(program, [A, B], budget=0.01)
    assert again.tuning[key]
    np.testing.assert_allclose(again(A, B), A @ B, rtol=1e-4, atol=1e-4)


def test_a_compiled_program_is_no_source():
    program = irees.compile(MATMUL)
    for made in (program, program.functions["main"], irees.compile(MATMUL, target="reference")):
        with pytest.raises(ArgumentError, match="compiled already"):
            irees.compile(made, (A, B))
    with pytest.raises(ArgumentError, match="source of the program is unknown"):
        irees.tune(copy.deepcopy(program), [A, B])


def test_mistakes():
    with pytest.raises(ArgumentError, match="budget is 0"):
        irees.tune(MATMUL, [A, B], budget=0)
    with pytest.raises(ArgumentError, match="no function 'other' to tune"):
        irees.tune(MATMUL, [A, B], function="other")
    with pytest.raises(ArgumentError, match="time_dispatches cannot be tuned with"):
        irees.tune(MATMUL, [A, B], time_dispatches=True)
    with pytest.raises(ArgumentError, match="main takes 2 arguments"):
        irees.tune(MATMUL, [A])


def test_command(quick, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(MATMUL)
    short = ["--benchmark-min-time=2x", "--benchmark-repetitions=1"]
    words = ["bench", "m.mlir", "--tune", "--tune-budget=0.5", *short]
    assert main([*words, "-o", "m.irees"]) == 0
    assert "BM_main" in capsys.readouterr().out
    tuned = irees.load("m.irees")
    assert main([*words, "-o", "m.json"]) == 0
    assert isinstance(json.loads((tmp_path / "m.json").read_text()), dict)
    for file in ("m.irees", "m.json"):
        assert main(["compile", "m.mlir", f"--tuning={file}", "-o", "again.irees"]) == 0
    assert tuned.manifest["kernels"][0]["key"]
    assert main(["bench", "m.irees", "--tune", *short]) == 2
    assert main([*words, "-o", "m.txt"]) == 2
    assert main(["bench", "m.mlir", "-o", "m.irees", *short]) == 2
    capsys.readouterr()
    assert main(["compile", "m.mlir", "--tuning=m.mlir", "-o", "again.irees"]) == 1
    assert "neither a saved program nor JSON" in capsys.readouterr().err
