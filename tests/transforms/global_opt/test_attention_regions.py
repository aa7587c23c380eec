"""The region of `iree_linalg_ext.attention` computes with exponents of two, as IREE lowers it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import irees
from irees.target import GPUS

TARGETS = ["reference", "cpu", "cuda-emulated"]
random = np.random.default_rng(5)
CAP = 2.0
SOFT_CAP = f"""%t = math.tanh %score : f32
    %cap = arith.constant {CAP} : f32
    %y = arith.mulf %t, %cap : f32"""
QUERIES, KEYS, FEATURES, VALUES = 5, 70, 8, 16


def program(element: str, config: str = "") -> str:
    """Attention with a soft cap on its scores."""
    maps = ", ".join(
        f"affine_map<(m, n, k, l) -> ({dims})>" for dims in ("m, k", "l, k", "l, n", "", "m, n")
    )
    q, k, v, o = (
        f"tensor<{rows}x{columns}x{kind}>"
        for rows, columns, kind in (
            (QUERIES, FEATURES, element), (KEYS, FEATURES, element),
            (KEYS, VALUES, "f32"), (QUERIES, VALUES, "f32"),
        )
    )  # fmt: skip
    return f"""
func.func @main(%q: {q}, %k: {k}, %v: {v}, %scale: f32) -> {o} {{
  %e = tensor.empty() : {o}
  %r = iree_linalg_ext.attention {{indexing_maps = [{maps}]{config}}}
      ins(%q, %k, %v, %scale : {q}, {k}, {v}, f32) outs(%e : {o}) {{
  ^bb0(%score: f32):
    {SOFT_CAP}
    iree_linalg_ext.yield %y : f32
  }} -> {o}
  return %r : {o}
}}"""


def arguments() -> tuple[np.ndarray, ...]:
    """Queries, keys, values and a scale."""
    sizes = ((QUERIES, FEATURES), (KEYS, FEATURES), (KEYS, VALUES))
    return *(random.standard_normal(n).astype(np.float32) for n in sizes), np.float32(0.7)


def weighted(exponents: np.ndarray, base: float, values: np.ndarray) -> np.ndarray:
    """The values, weighted by powers of a base."""
    powers = base**exponents
    return powers / powers.sum(1, keepdims=True) @ values


@pytest.mark.parametrize("target", TARGETS)
def test_a_soft_cap_limits_exponents_of_two(target):
    q, k, v, scale = arguments()
    capped = CAP * np.tanh(q @ k.T * scale * np.log2(np.e))
    found = irees.compile(program("f32"), target=target)(q, k, v, scale)
    np.testing.assert_allclose(found, weighted(capped, 2.0, v), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_use_exp2_false_limits_scores(target):
    q, k, v, scale = arguments()
    capped = CAP * np.tanh(q @ k.T * scale)
    text = program("f32", ", decomposition_config = {use_exp2 = false}")
    found = irees.compile(text, target=target)(q, k, v, scale)
    np.testing.assert_allclose(found, weighted(capped, np.e, v), rtol=1e-4, atol=1e-5)


def test_a_kernel_that_keeps_no_scores_applies_the_region(monkeypatch):
    monkeypatch.setitem(GPUS, "sm_80", dataclasses.replace(GPUS["sm_80"], l2_bytes=256))
    q, k, v, scale = arguments()
    compiled = irees.compile(program("f32"), target="cuda-emulated")
    assert len(compiled.manifest["launches"]) == 1
    capped = CAP * np.tanh(q @ k.T * scale * np.log2(np.e))
    found = compiled(q, k, v, scale)
    np.testing.assert_allclose(found, weighted(capped, 2.0, v), rtol=1e-4, atol=1e-5)
