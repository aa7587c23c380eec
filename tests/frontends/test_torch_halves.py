"""f64 becomes f16 and bf16 through f32, as in PyTorch: numbers of a program, and tensors."""

from __future__ import annotations

import pytest

import irees

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

ABOVE_A_TIE = {torch.bfloat16: 1 + 2**-8 + 2**-40, torch.float16: 1 + 2**-11 + 2**-40}
"""Rounded once, these are above 1; f32 rounds them to the tie, whose even neighbour is 1."""

PROGRAMS = {
    "full": lambda x, v: torch.full((3,), v, dtype=x.dtype),
    "fill": lambda x, v: x.masked_fill(x > 0, v),
    "cast": lambda x, v: (x.double() * v).to(x.dtype),
    "linspace": lambda x, v: torch.linspace(v, 2 * v, 3, dtype=x.dtype),
    "compare": lambda x, v: torch.full_like(x, v) == v,
}


@pytest.mark.parametrize("half", ABOVE_A_TIE, ids=["bf16", "f16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_rounded_as_in_pytorch(name, half):
    x, value = torch.ones(3, dtype=half), ABOVE_A_TIE[half]
    run = PROGRAMS[name]
    got = irees.compile(lambda x: run(x, value), (x,))(x)
    assert got.dtype == run(x, value).dtype
    assert torch.equal(got, run(x, value))
