"""`torch.linalg.lstsq`: ranks, residuals, dynamic sizes and gradients against eager."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'irees[torch]'")

import irees  # noqa: E402
from irees.errors import RuntimeTrap  # noqa: E402

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def deficient(kind=torch.float32):
    """Matrices of rank 1 and 3."""
    torch.manual_seed(0)
    return torch.stack([torch.ones(5, 3, dtype=kind), torch.randn(5, 3, dtype=kind)])


@pytest.mark.parametrize("kind", [torch.float32, torch.complex128])
@pytest.mark.parametrize("driver", DRIVERS)
def test_every_result_of_every_driver(driver, kind):
    for x in (deficient(kind)[1], deficient(kind)[1].mT):
        y = torch.randn(x.shape[0], 2, dtype=kind)

        def solve(x, y):
            return tuple(torch.linalg.lstsq(x, y, driver=driver))

        found = irees.compile(solve, (x, y), target="reference")(x, y)
        for mine, theirs in zip(found, solve(x, y), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_matrices_without_full_rank_have_the_solution_of_least_norm():
    x, y = deficient(), torch.randn(2, 5)

    def solve(x, y):
        found = torch.linalg.lstsq(x, y, driver="gelsd")
        return found.solution, found.rank, found.singular_values

    found = irees.compile(solve, (x, y), target="reference")(x, y)
    for mine, theirs in zip(found, solve(x, y), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_residuals_of_matrices_without_full_rank_are_refused():
    def residuals(x, y):
        return torch.linalg.lstsq(x, y, driver="gelsd").residuals

    x, y = deficient(), torch.randn(2, 5, 2)
    program = irees.compile(residuals, (x, y), target="reference")
    with pytest.raises(RuntimeTrap, match="a matrix without full rank has no residuals"):
        program(x, y)


def test_rows_of_any_number():
    rows = torch.export.Dim("rows", min=4, max=64)

    def solve(x, y):
        return torch.linalg.lstsq(x, y).solution

    example = torch.randn(8, 3), torch.randn(8, 2)
    program = irees.compile(solve, example, dynamic_shapes=({0: rows}, {0: rows}))
    for n in (8, 4, 33):
        x, y = torch.randn(n, 3), torch.randn(n, 2)
        torch.testing.assert_close(program(x, y), solve(x, y), rtol=1e-4, atol=1e-4)


def test_gradients_by_torch_compile():
    def loss(x, y):
        return torch.linalg.lstsq(x, y).solution.square().sum()

    given = [torch.randn(6, 3, requires_grad=True), torch.randn(6, 2, requires_grad=True)]
    wanted = torch.autograd.grad(loss(*given), given)
    compiled = torch.compile(loss, backend="irees", options={"fallback": False})
    found = torch.autograd.grad(compiled(*given), given)
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3)
