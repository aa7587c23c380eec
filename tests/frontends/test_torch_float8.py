"""Floats of one byte: every code, and roundings to each, against eager."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402
from irees.errors import ArgumentError  # noqa: E402

KINDS = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
BY_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda k: str(k).rpartition("_")[2])
TARGETS = pytest.mark.parametrize("target", ["reference", "cpu"])


def every_code(kind):
    return torch.arange(256, dtype=torch.uint8).view(kind)


def roundings(kind):
    """Each number of the format, the middles between neighbours, and what lies beside these."""
    numbers = every_code(kind).float()
    numbers = numbers[numbers.isfinite()].sort()[0]
    middles = (numbers[1:] + numbers[:-1]) / 2
    around = [torch.nextafter(middles, middles + s) for s in (-1, 1)]
    odd = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e30, -1e30, 1e-30])
    beyond = torch.tensor([449.0, 464, 465, 480, 57345, 61440, 65536, 241, 248, 256])
    return torch.cat([numbers, middles, *around, odd, beyond, -beyond])


def bits(value):
    return (value if isinstance(value, torch.Tensor) else torch.as_tensor(value)).view(torch.uint8)


@TARGETS
@BY_KIND
def test_every_code_is_widened_exactly(kind, target):
    x = every_code(kind)
    for wide in (torch.float32, torch.float16, torch.float64):
        got = irees.compile(lambda x, w=wide: x.to(w), (x,), target=target)(x)
        torch.testing.assert_close(got, x.to(wide), rtol=0, atol=0, equal_nan=True)


@TARGETS
@BY_KIND
def test_numbers_round_to_the_code_that_eager_has(kind, target):
    x = roundings(kind)
    for given in (x, x.double(), x.bfloat16()):
        got = irees.compile(lambda x: x.to(kind), (given,), target=target)(given)
        assert got.dtype == kind
        want = given.to(kind)
        same = (bits(got) == bits(want)) | (got.float().isnan() & want.float().isnan())
        assert same.all(), (given[~same], got[~same], want[~same])


@TARGETS
def test_constants_weights_and_moves(target):
    kind = torch.float8_e4m3fn

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(5, 4).to(kind), requires_grad=False)
            self.one = torch.nn.Parameter(torch.tensor([1.5]).to(kind), requires_grad=False)

        def forward(self, x, cache):
            cache = torch.cat([cache, x.to(kind)])[:, ::2].transpose(0, 1)
            full = torch.full((2,), 3.3, dtype=kind)
            return cache, x @ self.weight.float() + self.one.float(), full, cache.view(torch.uint8)

    model = Model()
    given = torch.randn(3, 5), torch.randn(2, 5).to(kind)
    got, want = irees.compile(model, given, target=target)(*given), model(*given)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        if g.dtype == torch.float32:
            torch.testing.assert_close(g, w)
        else:
            np.testing.assert_array_equal(bits(g).numpy(), bits(w.contiguous()).numpy())


@TARGETS
@pytest.mark.parametrize("by_row", [False, True])
def test_scaled_products(by_row, target):
    x, y = (torch.randn(16, 32).to(torch.float8_e4m3fn) for _ in range(2))
    scales = (torch.rand(16, 1), torch.rand(1, 16)) if by_row else (torch.rand(()), torch.rand(()))
    bias = torch.randn(16).bfloat16()

    def program(x, y, *scales):
        return torch._scaled_mm(x, y.t(), *scales, bias=bias, out_dtype=torch.bfloat16)

    given = (x, y, *scales)
    got = irees.compile(program, given, target=target)(*given)
    want = (x.float() @ y.float().t()) * scales[0] * scales[1] + bias.float()
    torch.testing.assert_close(got, want.bfloat16(), rtol=1e-2, atol=1e-3)


def test_a_cache_of_one_byte_is_updated_where_it_lies():
    def step(cache, x):
        cache[1] = x.to(cache.dtype)
        return cache.float().sum()

    mine, theirs = (torch.zeros(4, 3, dtype=torch.float8_e5m2) for _ in range(2))
    x = torch.randn(3)
    compiled = irees.compile(step, (mine.clone(), x))
    torch.testing.assert_close(compiled(mine, x), step(theirs, x))
    assert torch.equal(bits(mine), bits(theirs))
    fast = torch.compile(step, backend="irees", options={"fallback": False})
    torch.testing.assert_close(fast(mine, 2 * x), step(theirs, 2 * x))
    assert torch.equal(bits(mine), bits(theirs))


def test_another_type_of_one_byte_is_refused_by_name():
    x = torch.zeros(3).to(torch.float8_e5m2)
    compiled = irees.compile(lambda x: x.float(), (x,))
    for wrong in (torch.zeros(3, dtype=torch.int8), torch.zeros(3).to(torch.float8_e4m3fn)):
        with pytest.raises(ArgumentError, match=r"'x'.*must have float8_e5m2"):
            compiled(wrong)


def test_a_saved_program_takes_arrays_of_ml_dtypes(tmp_path):
    x = torch.zeros(3).to(torch.float8_e5m2)
    irees.compile(lambda x: (x.float() * 2).to(x.dtype), (x,)).save(str(tmp_path / "p.irees"))
    code = (
        "import irees, sys, numpy as np, ml_dtypes; p = irees.load(sys.argv[1]);"
        "r = p(np.ones(3, ml_dtypes.float8_e5m2)); print(r.dtype, r.tolist(), 'torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "p.irees")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.split() == ["float8_e5m2", "[2.0,", "2.0,", "2.0]", "False"], done.stderr
