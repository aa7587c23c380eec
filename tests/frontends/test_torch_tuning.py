"""Programs of PyTorch are timed with the arguments of a call, and what they update stays."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees import tuning

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")


class Counts(torch.nn.Module):
    """Takes a tree, updates an argument and a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, given, *, scale):
        self.calls += 1
        given["total"].add_(1)
        return given["x"] @ given["x"] * scale


def test_a_program_is_tuned_and_explained_without_changing_what_it_updates(monkeypatch):
    monkeypatch.setattr(tuning, "ROUND_SECONDS", 0.01)
    monkeypatch.setattr(tuning, "FINAL_SECONDS", 0.01)
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32))
    given, named = {"x": x, "total": torch.zeros(2)}, {"scale": torch.tensor(2.0)}
    model = Counts()
    program = irees.compile(model, (given,), kwargs=named)
    for source in (program, model):
        tuned = irees.tune(source, (given,), kwargs=named, budget=0.5)
        assert given["total"].tolist() == [0, 0]
        assert tuned.state["calls"].tolist() == program.state["calls"].tolist() == [0]
        tuned.report(inputs=(given,), measure=False)
        np.testing.assert_allclose(tuned(given, **named), x @ x * 2, rtol=1e-5, atol=1e-4)
        assert given["total"].tolist() == [1, 1]
        given["total"].zero_()


def test_explain_takes_the_arguments_of_a_call():
    model = torch.nn.BatchNorm1d(4)
    x = torch.ones(8, 4)
    program = irees.compile(model, (x,), time_dispatches=True)
    before = program.state["running_mean"].copy()
    assert program.explain((x,), as_data=True)["seconds"] > 0
    np.testing.assert_array_equal(program.state["running_mean"], before)
