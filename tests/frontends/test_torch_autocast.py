"""Autocast in `irees.compile`: results have the dtypes that they have in eager."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

import irees  # noqa: E402

OPERATORS = {
    "matmul": lambda x, w: x @ w,
    "einsum": lambda x, w: torch.einsum("bij,jk->bik", x, w),
    "einsum without a product": lambda x, w: torch.einsum("bij->bi", x),
    "inner": torch.inner,
    "tensordot": lambda x, w: torch.tensordot(x, w, 1),
    "multi_dot": lambda x, w: torch.linalg.multi_dot([w, w, w]),
    "matrix_power": lambda x, w: torch.matrix_power(w, 3),
    "mixed": lambda x, w: torch.einsum("bij,jk->bik", x.bfloat16(), w),
    "wide inside": lambda x, w: torch.nn.functional.pad(x @ w, (1, 1), mode="replicate"),
    "wide loss": lambda x, w: torch.nn.functional.nll_loss(w @ w, torch.tensor([0, 1, 3, 2])),
    "narrow inside": lambda x, w: torch.nn.functional.pad(x @ w, (1, 1)),
    "conversions": lambda x, w: (x.to(torch.bfloat16), torch.zeros_like(x, dtype=torch.bfloat16)),
    "region in a region": lambda x, w: torch.cond(
        x.sum() > 0, lambda x, w: torch.inner(x, w) * 2, lambda x, w: torch.inner(x, w), (x, w)
    ),
}


class Cast(nn.Module):
    """A function in a region of autocast."""

    def __init__(self, function, enabled=True):
        super().__init__()
        self.function, self.enabled = function, enabled

    def forward(self, *args):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.enabled):
            return self.function(*args)


def check(module, args, **options):
    found = irees.compile(module, args, target="reference", **options)(*args)
    expected = copy.deepcopy(module)(*args)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("name", OPERATORS)
def test_composite_operators_are_cast_inside(name, enabled):
    torch.manual_seed(0)
    if enabled and name.startswith("region"):
        pytest.skip("PyTorch cannot trace it")
    if not enabled and name == "mixed":
        pytest.skip("eager refuses it")
    check(Cast(OPERATORS[name], enabled), (torch.randn(2, 4, 4), torch.randn(4, 4)))


def test_a_region_without_autocast_in_one_with():
    def f(x, w):
        with torch.autocast("cpu", enabled=False):
            exact = torch.inner(x, w)
        return exact, torch.inner(x, w)

    check(Cast(f), (torch.randn(2, 4, 4), torch.randn(4, 4)))


@pytest.mark.parametrize("name", [name for name in OPERATORS if not name.startswith("region")])
def test_autocast_around_the_compilation_is_a_part_of_the_program(name):
    torch.manual_seed(0)
    args, layer = (torch.randn(2, 4, 4), torch.randn(4, 4)), nn.Conv1d(4, 2, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        check(OPERATORS[name], args)
        found = irees.compile(layer, args[:1], target="reference")(args[0])
    assert found.dtype is torch.bfloat16
    assert "forward" not in vars(layer)


def test_an_exported_program_is_left_as_it_is():
    args = torch.randn(2, 4, 4), torch.randn(4, 4)
    exported = torch.export.export(Cast(torch.inner), args)
    before = str(exported)
    irees.compile(exported, target="reference")
    assert str(exported) == before


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"])
def test_recurrent_layers(kind):
    torch.manual_seed(0)
    layer, linear = getattr(nn, kind)(4, 4), nn.Linear(4, 4)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.linear = layer, linear

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                found = self.layer(x)
                first = found if isinstance(found, torch.Tensor) else found[0]
                return found, first.float() * 2, self.linear(first) + first

    x = torch.randn(3, 4) if "Cell" in kind else torch.randn(5, 3, 4)
    check(Model(), (x,))
    if "Cell" not in kind:
        check(Model(), (x,), dynamic_shapes=({0: Dim("time")},))
