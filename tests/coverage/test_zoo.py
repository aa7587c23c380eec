"""A fixed sample of the zoo: one quick model of each kind."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")
sys.path.insert(0, str(Path(__file__).parent))
import zoo

SAMPLE = (
    ("transformers/bert", "program"), ("transformers/llama", "program"),
    ("transformers/t5", "program"), ("transformers/mixtral", "compile"),
    ("transformers/mamba", "program"), ("transformers/vit", "program"),
    ("diffusers/transformer_temporal", "program"), ("torch/lstm_tagger", "program"),
    ("torch/gcn", "compile"), ("torch/pointnet", "program"), ("torch/crf", "program"),
    ("torch/nerf", "compile"), ("torch/gaussian_process", "program"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "mode"), SAMPLE)
def test_sample(name: str, mode: str) -> None:
    package = name.partition("/")[0]
    if find_spec(package) is None:
        pytest.skip(f"needs {package}: pip install {package}")
    found = zoo.verdict(name, mode)
    assert found["verdict"] == "PASS", found


def test_names_are_distinct_and_many() -> None:
    names = zoo.all_names()
    assert len(names) == len(set(names)) >= 150


def test_a_result_as_near_to_f64_as_eager_is_right() -> None:
    import torch

    exact = {"x": torch.tensor([1.0, 2.0], dtype=torch.float64), "n": torch.tensor([3])}
    eager = {"x": torch.tensor([1.0, 2.25]), "n": torch.tensor([3])}
    for error, near in ((0.5, True), (0.75, False), (float("nan"), False)):
        got = {"x": torch.tensor([1.0, 2.0 - error]), "n": torch.tensor([3])}
        assert zoo.all_as_near(got, eager, exact) == near
        assert not zoo.all_as_near({**got, "n": torch.tensor([4])}, eager, exact)


def test_a_page_reads_as_it_was_written(tmp_path: Path) -> None:
    results = {
        "torch/a": {
            "program": {"verdict": "PASS", "seconds": 1.5},
            "compile": {"verdict": "PASS", "seconds": 2.0, "fallbacks": [""]},
            "iree": {"verdict": "ERROR", "stage": "", "why": "", "seconds": 3.0},
        },
        "timm/b": {"program": {"verdict": "UNSUPPORTED", "stage": "export", "why": "a | b < c"}},
    }
    zoo.write_page(tmp_path / "page.md", results)
    assert zoo.read_page(tmp_path / "page.md") == results
