"""An adaptive softmax chooses rows by targets, which are data."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

import irees  # noqa: E402
from irees.errors import RuntimeTrap, UnsupportedError  # noqa: E402


def made():
    torch.manual_seed(0)
    return torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], div_value=2.0)


@pytest.mark.parametrize("rows", [(6,), ()])
def test_targets_of_any_cluster(rows):
    model, x = made(), torch.randn(*rows, 8)
    program = irees.compile(model, (x, torch.randint(0, 20, rows)), target="reference")
    for low, high in ((0, 5), (10, 20), (0, 20)):
        target = torch.randint(low, high, rows)
        want, got = model(x, target), program(x, target)
        torch.testing.assert_close(got.output, want.output)
        torch.testing.assert_close(got.loss, want.loss)


def test_a_target_that_is_no_class_is_a_trap():
    x = torch.randn(2, 8)
    program = irees.compile(made(), (x, torch.tensor([1, 19])), target="reference")
    with pytest.raises(RuntimeTrap, match=r"\[0, 19\]"):
        program(x, torch.tensor([1, 20]))


def test_targets_of_another_rank_are_refused():
    with pytest.raises(UnsupportedError, match="0D or 1D target"):
        irees.compile(made(), (torch.randn(2, 8), torch.ones(2, 1, dtype=torch.long)))


def test_the_most_probable_class():
    model, x = made(), torch.randn(6, 8) * 5
    program = irees.compile(model.predict, (x,), target="reference")
    for each in (x, torch.randn(6, 8)):
        assert program(each).tolist() == model.predict(each).tolist()
