"""Functions that look at data while they are traced."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402
from irees.errors import IreesError  # noqa: E402
from irees.frontends.torch.rewriting import Traceable  # noqa: E402

functional = torch.nn.functional


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_gaussian_nll_loss(full, reduction):
    """A variance is checked when the program runs."""
    x, y, v = torch.randn(3, 4), torch.randn(3, 4), torch.rand(3, 4)

    def program(x, y, v):
        return functional.gaussian_nll_loss(x, y, v, full=full, reduction=reduction)

    with Traceable():
        compiled = irees.compile(program, (x, y, v), target="reference")
    np.testing.assert_allclose(np.asarray(compiled(x, y, v)), program(x, y, v), rtol=1e-5)
    with pytest.raises(IreesError, match="negative"):
        compiled(x, y, -v - 1)


def test_one_hot_up_to_the_largest_class():
    """How many classes there are is known when the program runs."""
    x = torch.tensor([3, 0, 1])

    def program(x):
        return functional.one_hot(x)

    with Traceable():
        compiled = irees.compile(program, (x,), target="reference")
    for given in (x, torch.tensor([5, 2, 2])):
        np.testing.assert_array_equal(np.asarray(compiled(given)), program(given))


def test_unique_consecutive_from_the_last_dim():
    """A negative dim has the shape that it should."""
    x = torch.tensor([[1, 1, 2], [3, 3, 3]])

    def program(x):
        return torch.unique_consecutive(x, dim=-1)

    with Traceable():
        compiled = irees.compile(program, (x,), target="reference")
    np.testing.assert_array_equal(np.asarray(compiled(x)), program(x))
