"""A fixed sample of PyTorch's modules, higher-order and custom operators, and the page about them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")
pytest.importorskip("expecttest", reason="the database needs expecttest: make test-models")
sys.path.insert(0, str(Path(__file__).parent))
import modules
import operators_page

SAMPLE = (
    "nn.Conv2d.train#1", "nn.BatchNorm2d.train#0", "nn.LSTM.train#0", "nn.Softmax.eval#0",
    "hop.map.nested#0", "hop.cond.simple#0", "custom.NumpyMulCustomOp#0",
)  # fmt: skip


def judged(name, backend):
    cases = modules.all_cases(2, modules.part_of(name))
    return modules.judged(backend, *next(case for each, case in cases if each == name))


@pytest.mark.parametrize("name", SAMPLE)
def test_sample(name):
    found = judged(name, "irees")
    assert found["verdict"] == "PASS", found
    assert "note" not in found
    assert ("fallbacks" in found) == ("custom" in name)


def doubled(graph, inputs):
    """A back end that is wrong by a factor of 2 where a result is one float tensor."""
    return lambda *args: tuple(2 * t for t in graph(*args))


def test_wrong_results_are_seen():
    assert judged("nn.Tanh.eval#0", doubled)["verdict"] == "WRONG"


def test_a_case_without_a_graph_is_empty():
    assert judged("hop.register_hook.simple#0", "irees")["verdict"] == "EMPTY"


def test_the_page(tmp_path):
    passed, failed = {"verdict": "PASS", "why": ""}, {"verdict": "ERROR", "why": "a | b"}
    (tmp_path / "modules.json").write_text(
        json.dumps(
            {
                "nn.A.eval#0": {"irees": {**passed, "fallbacks": ["x"]}, "inductor": passed},
                "nn.B.train#0": {"irees": failed, "inductor": passed},
                "hop.c#0": {"irees": passed, "inductor": failed},
                "custom.d#0": {b: {"verdict": "EAGER", "why": ""} for b in ("irees", "inductor")},
            }
        )
    )
    page = operators_page.modules(tmp_path, "")
    assert "| modules, eval | 1 | 1 | 1 | 1 of 1 (100.0%) | 0 | 0 | 1 |" in page
    assert "| all | 3 | 2 | 2 | 1 of 2 (50.0%) | 0 | 0 | 1 |" in page
    assert "| nn.B.train#0 | error | pass | a / b |" in page
    assert "| hop.c#0 | pass | error | a / b |" in page
    assert not operators_page.modules(tmp_path / "none", "")
