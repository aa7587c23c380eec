"""Remainders of `irees-expand-math` are exact: they have the bits of C's fmod."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.dialects import get_context
from irees.dialects.irees_target import assign_target
from irees.frontends.mlir import import_mlir
from irees.target import Target
from irees.testing.oracles import Case, interpret
from irees.transforms.codegen.common.expand_math import ExpandMathPass

KINDS = {"f32": (np.float32, np.uint32, 23), "f64": (np.float64, np.uint64, 52)}
EDGES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1e-45, 3e38, 1e308, -3.5]


def text(kind: str, size: int) -> str:
    shape = f"tensor<{size}x{kind}>"
    return f"""#id = affine_map<(i) -> (i)>
func.func @main(%x: {shape}, %y: {shape}) -> {shape} {{
  %e = tensor.empty() : {shape}
  %r = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}}
      ins(%x, %y : {shape}, {shape}) outs(%e : {shape}) {{
  ^bb0(%a: {kind}, %b: {kind}, %o: {kind}):
    %s = arith.remf %a, %b : {kind}
    linalg.yield %s : {kind}
  }} -> {shape}
  return %r : {shape}
}}"""


def pairs(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """All bits, quotients around the limit, quotients next to whole numbers, and edges."""
    dtype, bits, mantissa = KINDS[kind]
    random = np.random.default_rng(0)
    x, y = random.integers(0, np.iinfo(bits).max, (2, 4001), bits, endpoint=True).view(dtype)
    with np.errstate(all="ignore"):
        near = x * dtype(2) ** -random.integers(-2, mantissa + 4, x.size).astype(dtype)
        near *= random.uniform(0.5, 1, x.size).astype(dtype)
        divisors = random.integers(1, 100, 20000).astype(dtype) / dtype(8)
        multiples = divisors * random.integers(1, 5000, divisors.size).astype(dtype)
        beside = np.nextafter(
            multiples, random.choice(np.array([-np.inf, np.inf], dtype), multiples.size)
        )
        edges = [a.ravel() for a in np.meshgrid(EDGES, EDGES)]
        # Each pair of edges fills a vector, so that no other lane decides which way it takes.
        edges = [np.repeat(a, 16).astype(dtype) for a in edges]
        return (
            np.concatenate([edges[0], x, x, multiples, beside]),
            np.concatenate([edges[1], y, near, divisors, -divisors]),
        )


def assert_same(got: np.ndarray, x: np.ndarray, y: np.ndarray, kind: str) -> None:
    with np.errstate(all="ignore"):
        wanted = np.fmod(x, y)
    bits = KINDS[kind][1]
    same = (got.view(bits) == wanted.view(bits)) | (np.isnan(got) & np.isnan(wanted))
    assert same.all(), (x[~same][:5], y[~same][:5], got[~same][:5], wanted[~same][:5])


@pytest.mark.parametrize("fp", ["default", "strict"])
@pytest.mark.parametrize("target", ["cpu", "cpu:generic", "cuda-emulated"])
@pytest.mark.parametrize("kind", KINDS)
def test_remainders_are_exact(kind, target, fp):
    x, y = pairs(kind)
    assert_same(irees.compile(text(kind, x.size), target=target, fp=fp)(x, y), x, y, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_formula_is_exact_in_the_interpreter(kind):
    """Vectors of one lane, so that each pair takes its own way."""
    dtype = KINDS[kind][0]
    module = import_mlir(f"""func.func @main(%x: vector<1x{kind}>, %y: vector<1x{kind}>)
    -> vector<1x{kind}> {{
  %r = arith.remf %x, %y : vector<1x{kind}>
  return %r : vector<1x{kind}>
}}""")
    assign_target(module, Target(features=("fma",)), strict=True, tf32=False)
    ExpandMathPass().apply(get_context(), module)
    assert "math.fma" in str(module)
    x, y = (a[::101] for a in pairs(kind))
    cases = [Case("main", (a.reshape(1), b.reshape(1))) for a, b in zip(x, y, strict=True)]
    with np.errstate(all="ignore"):
        got = [interpret(module, [case])["main"][0] for case in cases]
    assert_same(np.concatenate(got).astype(dtype), x, y, kind)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_remainders_of_integers_have_the_sign_of_the_divisor(dtype):
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    low = np.iinfo(dtype).min
    x = np.append(random.integers(-100, 100, 1001), [low, low, low + 1]).astype(dtype)
    y = np.append(random.integers(1, 100, 1001) * random.choice([-1, 1], 1001), [1, 2, -1])
    x, y = torch.from_numpy(x), torch.from_numpy(y.astype(dtype))
    for f in (torch.remainder, torch.fmod, lambda a, b: a % 7, lambda a, b: a % -7):
        assert torch.equal(irees.compile(f, (x, y))(x, y), f(x, y))
