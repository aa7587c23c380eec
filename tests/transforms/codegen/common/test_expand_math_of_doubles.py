"""The errors that `irees-expand-math` promises for f64, over all exponents, and special values."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import irees

FUNCTIONS = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh, "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log10": np.log10, "log1p": np.log1p,
    "log2": np.log2, "sin": np.sin, "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
}  # fmt: skip
# The table in the pass: the largest error in units of the last place.
LARGEST_ERROR = {
    "acos": 2, "acosh": 2, "asin": 2, "asinh": 2, "atan": 2, "atanh": 2, "cos": 1, "cosh": 2,
    "exp": 1, "exp2": 1, "expm1": 2, "log": 1, "log10": 3, "log1p": 1, "log2": 2, "sin": 1,
    "sinh": 2, "tan": 2, "tanh": 2, "rsqrt": 1, "erf": 1, "erfc": 4,
}  # fmt: skip
BY_LIBM = {"erf": 1, "erfc": 2}
"""Functions that numpy lacks in a wider type, and the errors of libm in f64 (glibc's manual)."""

needs_longdouble = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="numpy's longdouble is no wider than f64 here"
)


@cache
def program(fp: str = "default"):
    text = "".join(
        f"""
func.func @{name}(%x: tensor<?xf64>, %o: tensor<?xf64>) -> tensor<?xf64> {{
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%x : tensor<?xf64>) outs(%o : tensor<?xf64>) {{
  ^bb0(%a: f64, %b: f64):
    %c = math.{name} %a : f64
    linalg.yield %c : f64
  }} -> tensor<?xf64>
  return %r : tensor<?xf64>
}}
"""
        for name in FUNCTIONS
    )
    return irees.compile(text, fp=fp)


def apply(name: str, x: np.ndarray, fp: str = "default") -> np.ndarray:
    return program(fp).functions[name](x, np.zeros_like(x))


@cache
def samples() -> np.ndarray:
    """Both signs, all exponents with subnormals, and dense middles; a number is left over."""
    random = np.random.default_rng(0)
    exponents = np.repeat(np.arange(2047, dtype=np.uint64), 16) << np.uint64(52)
    mantissas = random.integers(0, 1 << 52, exponents.size, dtype=np.uint64)
    mantissas[::16], mantissas[1::16], mantissas[2::16] = 0, 1, (1 << 52) - 1
    parts = [
        (exponents | mantissas).view(np.float64),
        random.uniform(0, 30, 20001),
        random.uniform(0, 750, 10001),
        1 + random.uniform(-0.5, 0.5, 20001),
        random.uniform(0, 1, 20001),
        np.arange(1, 2000) * np.pi / 4,
    ]
    positive = np.concatenate(parts)
    return np.concatenate([positive, -positive, [0.0, -0.0, np.inf, -np.inf, np.nan]])


def exact_of(name: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return FUNCTIONS[name](x if name in BY_LIBM else x.astype(np.longdouble))


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance in units of the last place of the exact value, rounded to f64."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float64)
        largest = np.nextafter(np.finfo(np.float64).max, 0)
        spacing = np.spacing(np.minimum(np.abs(rounded), largest)).astype(np.longdouble)
        distance = np.abs(got.astype(np.longdouble) - exact) / spacing
    return np.where(got == rounded, 0, distance)


@needs_longdouble
@pytest.mark.parametrize("fp", ["default", "strict"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_at_most_that_of_the_table(name, fp):
    x = samples()
    got, exact = apply(name, x, fp), exact_of(name, x)
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float64)
    assert np.array_equal(np.isnan(got), np.isnan(rounded))
    assert np.array_equal(np.isinf(got), np.isinf(rounded))
    zeros = (got == 0) & (rounded == 0)
    assert np.array_equal(np.signbit(got[zeros]), np.signbit(rounded[zeros]))
    ordinary = np.isfinite(rounded)
    # Half a unit is what rounding alone costs.
    most = LARGEST_ERROR[name] + BY_LIBM.get(name, 0) + 0.5
    assert float(np.max(ulps(got[ordinary], exact[ordinary]))) <= most


def test_vectors_and_scalars_give_the_same_bits():
    for name in FUNCTIONS:
        x = samples()[::997]
        if name in ("sin", "cos", "tan"):
            # A large angle sends its whole vector to libm.
            x = x[np.abs(x) < 1 << 20]
        whole = apply(name, x, "strict")
        alone = np.concatenate([apply(name, x[i : i + 1], "strict") for i in range(60)])
        same = whole[:60].view(np.int64) == alone.view(np.int64)
        assert np.all(same | (np.isnan(alone) & np.isnan(whole[:60]))), name


@needs_longdouble
@pytest.mark.parametrize("fp", ["default", "strict"])
def test_angles_near_multiples_of_a_quarter_turn(fp):
    """Whose difference cancels all bits of the reduced angle: continued fractions of pi find them."""
    near = np.array([np.pi / 2, np.pi, 355.0, 710.0, 103993.0, 208341.0, 833719.0 / 2, 1e6])
    near = np.concatenate([near, np.arange(1, 600000, 599) * (np.pi / 2)])
    near = near[near < 1 << 20]
    for name in ("sin", "cos", "tan"):
        assert np.max(ulps(apply(name, near, fp), exact_of(name, near))) <= LARGEST_ERROR[name] + 1


@needs_longdouble
@pytest.mark.parametrize("fp", ["default", "strict"])
def test_angles_of_all_quadrants(fp):
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, -5e-324, 1e308, -1e308]
    random = np.random.default_rng(0)
    edges += list(random.standard_normal(60) * 10.0 ** random.integers(-200, 200, 60))
    y, x = (a.ravel() for a in np.meshgrid(edges, edges))
    kind = f"tensor<{x.size}xf64>"
    text = f"""#id = affine_map<(i) -> (i)>
func.func @main(%y: {kind}, %x: {kind}) -> {kind} {{
  %e = tensor.empty() : {kind}
  %r = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}}
      ins(%y, %x : {kind}, {kind}) outs(%e : {kind}) {{
  ^bb0(%a: f64, %b: f64, %o: f64):
    %s = math.atan2 %a, %b : f64
    linalg.yield %s : f64
  }} -> {kind}
  return %r : {kind}
}}"""
    got = irees.compile(text, fp=fp)(y, x)
    exact = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    assert np.array_equal(np.isnan(got), np.isnan(exact))
    known = ~np.isnan(exact)
    assert np.array_equal(np.signbit(got[known]), np.signbit(exact[known]))
    normal = known & ((np.abs(exact) > 1e-307) | (exact == 0))
    assert float(np.max(ulps(got[normal], exact[normal]))) <= 2.5


@pytest.mark.parametrize("target", ["cpu:generic", "cuda-emulated"])
def test_strict_bits_are_those_of_every_target(target):
    x = samples()[::97]
    names = [name for name in FUNCTIONS if name not in ("sin", "cos", "tan")]
    shape = f"tensor<{x.size}xf64>"
    kinds = ", ".join([shape] * len(names))
    ids = ", ".join(["#id"] * (len(names) + 1))
    body = "\n".join(f"    %{name} = math.{name} %a : f64" for name in names)
    outs = ", ".join(f"%o{i}: f64" for i in range(len(names)))
    text = f"""#id = affine_map<(i) -> (i)>
func.func @main(%x: {shape}) -> ({kinds}) {{
  %e = tensor.empty() : {shape}
  %r:{len(names)} = linalg.generic {{indexing_maps = [{ids}], iterator_types = ["parallel"]}}
      ins(%x : {shape}) outs({", ".join(["%e"] * len(names))} : {kinds}) {{
  ^bb0(%a: f64, {outs}):
{body}
    linalg.yield {", ".join(f"%{n}" for n in names)} : {", ".join(["f64"] * len(names))}
  }} -> ({kinds})
  return {", ".join(f"%r#{i}" for i in range(len(names)))} : {kinds}
}}"""
    mine = irees.compile(text, fp="strict")(x)
    other = irees.compile(text, target=target, fp="strict")(x)
    for name, a, b in zip(names, mine, other, strict=True):
        same = (a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))
        assert same.all(), (name, x[~same][:3], a[~same][:3], b[~same][:3])
