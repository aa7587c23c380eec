"""Remainders are exact, and those that a program computes itself are what the interpreter says."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import irees

TARGETS = ["reference", "cpu", "cuda-emulated"]
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
COUNT = 67
random = np.random.default_rng(8)


def program(body: str, kind: str) -> str:
    """%r of %a and %b, of every element."""
    tensor = f"tensor<{COUNT}x{kind}>"
    return f"""
func.func @main(%x: {tensor}, %y: {tensor}) -> {tensor} {{
  %e = tensor.empty() : {tensor}
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
      affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%x, %y : {tensor}, {tensor}) outs(%e : {tensor}) {{
  ^bb0(%a: {kind}, %b: {kind}, %o: {kind}):
    {body.replace("T", kind)}
    linalg.yield %r : {kind}
  }} -> {tensor}
  return %r : {tensor}
}}"""


def operands(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Dividends of all sizes, quotients too large for the mantissa among them."""
    dtype = np.dtype(DTYPES[kind])
    largest = float(ml_dtypes.finfo(dtype).max)
    x = random.standard_normal(COUNT) * 10.0 ** random.integers(-3, 4, COUNT)
    x[:4] = largest, -largest, largest / 3, 0.3
    y = random.standard_normal(COUNT)
    y[:4] = 1.7, 1.7, -0.9, 0.1
    return x.astype(dtype), y.astype(dtype)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", DTYPES)
def test_remf_is_exact(kind, target):
    x, y = operands(kind)
    got = irees.compile(program("%r = arith.remf %a, %b : T", kind), target=target)(x, y)
    want = np.fmod(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_array_equal(got.astype(np.float64), want)


ROUNDED = {
    name: f"%w = math.{name} %q : T"
    for name in ("trunc", "floor", "ceil", "round", "roundeven")
} | {
    f"{cast} i{bits}": f"""%i = arith.{cast} %q : T to i{bits}
    %w = arith.sitofp %i : i{bits} to T"""
    for cast in ("fptosi", "fptoui") for bits in (16, 32, 64)
}  # fmt: skip


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("rounding", ROUNDED)
def test_a_multiple_is_rounded_before_it_is_taken_off(rounding, kind):
    text = program(
        f"""%q = arith.divf %a, %b : T
    {ROUNDED[rounding]}
    %p = arith.mulf %w, %b : T
    %r = arith.subf %a, %p : T""",
        kind,
    )
    x, y = operands(kind)
    with np.errstate(over="ignore", invalid="ignore"):
        want = irees.compile(text, target="reference")(x, y)
        np.testing.assert_array_equal(irees.compile(text)(x, y), want)
