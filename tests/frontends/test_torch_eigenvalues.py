"""`torch.linalg.eig` and `eigvals` of general matrices: values in any order, vectors in any phase."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'irees[torch]'")

import irees  # noqa: E402
from irees.errors import RuntimeTrap  # noqa: E402


def jordan(n, value):
    return torch.diag(torch.ones(n - 1), 1) + value * torch.eye(n)


def normal(*shape, kind=torch.float32):
    return torch.randn(*shape, dtype=kind, generator=torch.Generator().manual_seed(3))


MATRICES = {
    "real": normal(2, 4, 4),
    "complex": normal(3, 3, kind=torch.complex64),
    "doubles": normal(8, 8, kind=torch.float64),
    "complex_doubles": normal(2, 3, 3, kind=torch.complex128),
    "numbers": normal(3, 1, 1),
    "a_rotation": torch.tensor([[0.0, -1.0], [1.0, 0.0]]),
    "a_permutation": torch.roll(torch.eye(5), 1, 0),
    "one_vector": jordan(4, 2.0),
    "one_vector_of_many": jordan(9, 3.0),
    "zeros": torch.zeros(3, 3),
    "ones": torch.ones(6, 6),
    "blocks": torch.block_diag(torch.ones(3, 3), torch.zeros(2, 2), torch.eye(3)),
    "triangular": normal(5, 5).triu(),
    "symmetric": normal(5, 5) + normal(5, 5).T,
    "tiny_columns": torch.diag(torch.arange(1.0, 6.0)) + normal(5, 5) * 1e-22,
    "small": normal(4, 4) * 1e-30,
    "large": normal(4, 4) * 1e30,
    "no_rows": torch.zeros(0, 0),
    "no_matrices": torch.zeros(0, 3, 3),
}


def is_close(x, values, vectors):
    """Checks x v = v w, |v| = 1, and that values are those of eager."""
    wanted = torch.linalg.eigvals(x)
    assert values.dtype == wanted.dtype == vectors.dtype
    assert values.shape == wanted.shape
    assert vectors.shape == x.shape
    if not x.numel():
        return
    scale = x.abs().max().clamp(min=1e-37)
    allowed = 30 * x.shape[-1] * torch.finfo(x.dtype).eps
    exact = (x / scale).to(vectors.dtype)
    rest = exact @ vectors - vectors * (values / scale).unsqueeze(-2)
    assert rest.abs().max() < allowed
    torch.testing.assert_close(vectors.norm(dim=-2), torch.ones_like(values.real))
    far = ((values.unsqueeze(-1) - wanted.unsqueeze(-2)) / scale).abs()
    assert max(far.amin(-1).max(), far.amin(-2).max()) < allowed


@pytest.mark.parametrize("name", MATRICES)
def test_values_and_vectors(name):
    x = MATRICES[name]
    values, vectors = irees.compile(torch.linalg.eig, (x,), target="reference")(x)
    is_close(x, values, vectors)
    found = irees.compile(torch.linalg.eigvals, (x,), target="reference")(x)
    torch.testing.assert_close(found, values)


def test_values_through_c_and_dynamo():
    x = MATRICES["real"]
    is_close(x, *irees.compile(torch.linalg.eig, (x,))(x))
    is_close(x, *torch.compile(torch.linalg.eig, backend="irees", options={"fallback": False})(x))


def test_matrices_of_dynamic_sizes():
    n = torch.export.Dim("n", min=1, max=16)
    shapes = ({1: n, 2: n},)
    program = irees.compile(
        torch.linalg.eig, (normal(2, 4, 4),), dynamic_shapes=shapes, target="reference"
    )
    for size in (1, 3, 6):
        is_close(normal(2, size, size), *program(normal(2, size, size)))


def test_numbers_that_are_not_finite_are_refused():
    program = irees.compile(torch.linalg.eig, (torch.ones(2, 2),), target="reference")
    with pytest.raises(RuntimeTrap, match="should not contain infs or NaNs"):
        program(torch.tensor([[1.0, torch.nan], [0.0, 1.0]]))
