"""The errors that `irees-expand-math` promises, over all exponents, and its special values."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import irees
from irees.dialects import get_context
from irees.errors import ArgumentError
from irees.frontends.mlir import import_mlir
from irees.remarks import collect
from irees.target import Target
from irees.testing.oracles import Case, interpret
from irees.transforms.codegen.common.expand_math import ExpandMathPass

F32 = np.float32
FUNCTIONS = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
# The table in the pass: the largest error in units of the last place.
LARGEST_ERROR = {
    "exp": 1, "exp2": 1, "expm1": 2, "log": 1, "log10": 2, "log1p": 2, "log2": 2, "tanh": 2,
    "acos": 4, "asin": 4, "atan": 4, "cos": 2, "cosh": 4, "sin": 2, "sinh": 4, "tan": 4,
    "acosh": 2, "asinh": 2, "atanh": 2, "erf": 37, "erfc": 4, "rsqrt": 1,
}  # fmt: skip


@cache
def program(fp: str = "default"):
    unary = "".join(
        f"""
func.func @{name}(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {{
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %c = math.{name} %a : f32
    linalg.yield %c : f32
  }} -> tensor<?xf32>
  return %r : tensor<?xf32>
}}
"""
        for name in FUNCTIONS
    )
    powers = "".join(
        f"""
func.func @{kind}{power}(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {{
  %p = arith.constant {constant}
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %c = math.{kind} %a, %p : f32{suffix}
    linalg.yield %c : f32
  }} -> tensor<?xf32>
  return %r : tensor<?xf32>
}}
"""
        for power in (2, 3, 5)
        for kind, constant, suffix in (
            ("powf", f"{power}.0 : f32", ""), ("fpowi", f"{power} : i32", ", i32"),
        )
    )  # fmt: skip
    return irees.compile(unary + powers, fp=fp)


def apply(name: str, x: np.ndarray, fp: str = "default") -> np.ndarray:
    # One more than whole vectors, so that the scalar form is used too.
    return program(fp).functions[name](x, np.zeros_like(x))


@cache
def samples() -> np.ndarray:
    """Both signs, all exponents with subnormals, 64 mantissas each, and a dense middle."""
    random = np.random.default_rng(0)
    exponents = np.repeat(np.arange(255, dtype=np.uint32), 64) << 23
    mantissas = random.integers(0, 1 << 23, exponents.size, dtype=np.uint32)
    mantissas[::64], mantissas[1::64], mantissas[2::64] = 0, 1, (1 << 23) - 1
    magnitudes = (exponents | mantissas).view(F32)
    middle = random.uniform(0, 110, 40001).astype(F32)
    near_one = (1 + random.uniform(-0.5, 0.5, 20001)).astype(F32)
    positive = np.concatenate([magnitudes, middle, near_one])
    return np.concatenate([positive, -positive])


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance in units of the last place of the exact value, rounded to f32."""
    with np.errstate(over="ignore"):
        rounded = exact.astype(F32)
    largest = np.nextafter(np.finfo(F32).max, F32(0))
    spacing = np.spacing(np.minimum(np.abs(rounded), largest))
    with np.errstate(invalid="ignore"):
        distance = np.abs(got.astype(np.float64) - exact) / spacing
    return np.where(got == rounded, 0, distance)


def worst(name: str, x: np.ndarray, fp: str = "default") -> float:
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name](x.astype(np.float64))
    keep = np.isfinite(exact)
    return float(np.max(ulps(apply(name, x, fp)[keep], exact[keep])))


@pytest.mark.parametrize("fp", ["default", "strict"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_at_most_that_of_the_table(name, fp):
    # Half a unit is what rounding alone costs.
    assert worst(name, samples(), fp) <= LARGEST_ERROR[name] + 0.5


def test_erf_is_within_four_units_above_the_smallest():
    x = samples()
    assert worst("erf", x[np.abs(x) > 1e-30]) <= 4.5


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("exp", [(np.nan, np.nan), (np.inf, np.inf), (-np.inf, 0.0), (0.0, 1.0), (-0.0, 1.0),
                 (89.0, np.inf), (1e30, np.inf), (-1e30, 0.0), (-104.0, 0.0)]),
        ("log", [(np.nan, np.nan), (np.inf, np.inf), (-np.inf, np.nan), (0.0, -np.inf),
                 (-0.0, -np.inf), (1.0, 0.0), (-1.0, np.nan), (-1e-45, np.nan)]),
        ("exp2", [(np.nan, np.nan), (np.inf, np.inf), (-np.inf, 0.0), (0.0, 1.0), (-0.0, 1.0),
                  (128.0, np.inf), (127.0, 2.0**127), (-149.0, 2.0**-149), (-150.5, 0.0),
                  (1e30, np.inf), (-1e30, 0.0), (10.0, 1024.0)]),
        ("expm1", [(np.nan, np.nan), (np.inf, np.inf), (-np.inf, -1.0), (0.0, 0.0),
                   (-0.0, -0.0), (89.0, np.inf), (1e30, np.inf), (-1e30, -1.0),
                   (1e-45, 1e-45), (-1e-45, -1e-45)]),
        ("log2", [(np.nan, np.nan), (np.inf, np.inf), (-np.inf, np.nan), (0.0, -np.inf),
                  (-0.0, -np.inf), (1.0, 0.0), (8.0, 3.0), (2.0**-149, -149.0),
                  (2.0**127, 127.0), (-1.0, np.nan)]),
        ("log10", [(np.nan, np.nan), (np.inf, np.inf), (-np.inf, np.nan), (0.0, -np.inf),
                   (-0.0, -np.inf), (1.0, 0.0), (-1.0, np.nan)]),
        ("log1p", [(np.nan, np.nan), (np.inf, np.inf), (-np.inf, np.nan), (0.0, 0.0),
                   (-0.0, -0.0), (-1.0, -np.inf), (-1.5, np.nan), (1e-45, 1e-45),
                   (-1e-45, -1e-45)]),
        ("tanh", [(np.nan, np.nan), (np.inf, 1.0), (-np.inf, -1.0), (0.0, 0.0), (-0.0, -0.0),
                  (20.0, 1.0)]),
        ("erf", [(np.nan, np.nan), (np.inf, 1.0), (-np.inf, -1.0), (0.0, 0.0), (-0.0, -0.0),
                 (5.0, 1.0)]),
        ("rsqrt", [(np.nan, np.nan), (np.inf, 0.0), (-np.inf, np.nan), (0.0, np.inf),
                   (-0.0, -np.inf), (4.0, 0.5), (-1.0, np.nan)]),
    ],
)  # fmt: skip
def test_special_values(name, cases):
    x, want = np.array(cases * 9, F32).T.copy()
    got = apply(name, x)
    assert np.array_equal(got, want, equal_nan=True), list(zip(x, got, want))[: len(cases)]
    assert np.array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])


def test_subnormal_results_are_rounded_not_flushed():
    x = np.linspace(-103.9, -87.4, 1001).astype(F32)
    got = apply("exp", x)
    assert np.all(got > 0)
    assert float(np.max(ulps(got, np.exp(x.astype(np.float64))))) <= 1.5


@pytest.mark.parametrize("kind", ["powf", "fpowi"])
@pytest.mark.parametrize("power", [2, 3, 5])
def test_whole_powers(kind, power):
    x = np.concatenate([np.linspace(-9, 9, 1003).astype(F32), [F32(0), F32(-0.0), F32(np.nan)]])
    got = apply(f"{kind}{power}", x)
    exact = x.astype(np.float64) ** power
    assert float(np.nanmax(ulps(got, exact))) <= 1.5
    assert np.isnan(got[-1])


POWERS = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 1.5, -1.5, math.inf, -math.inf, math.nan,
          1e-40, -1e-40, 1e38, -1e38, 16777216.0, -16777215.0, 8388607.5, 1e-3, 127.0, 128.0, -149.0,
          -150.0, 0.99999994, 1.0000001]  # fmt: skip


@pytest.mark.parametrize(
    ("exponent", "fp", "target"),
    [
        (None, "strict", "cpu"), (None, "default", "cpu:generic"),
        *((e, "default", "cpu") for e in [None, *POWERS, 1.7, -2.5, 100.0, 101.0]),
    ],
)  # fmt: skip
def test_powers(exponent, fp, target):
    """
    Every base with every exponent, and with a known one, which needs fewer cases. Small whole ones
    are products, with another error.
    """
    if exponent in (2, 3):
        exponent += 2
    x, y = (a.ravel() for a in np.meshgrid(np.array(POWERS, F32), np.array(POWERS, F32)))
    random = np.random.default_rng(0)
    near_one = random.uniform(0.9, 1.1, 4001)
    bases = [x, np.exp(random.uniform(-80, 80, 40001)), near_one]
    x = np.concatenate(bases).astype(F32)
    exponents = [y, random.uniform(-3, 3, 40001), random.uniform(-800, 800, near_one.size)]
    y = np.concatenate(exponents).astype(F32)
    known = "" if exponent is None else f"%n = arith.constant 0x{bits_of(exponent):08X} : f32"
    kind = "tensor<?xf32>"
    text = f"""#id = affine_map<(i) -> (i)>
func.func @main(%x: {kind}, %y: {kind}, %o: {kind}) -> {kind} {{
  {known}
  %r = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}}
      ins(%x, %y : {kind}, {kind}) outs(%o : {kind}) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = math.powf %a, {"%n" if known else "%b"} : f32
    linalg.yield %p : f32
  }} -> {kind}
  return %r : {kind}
}}"""
    if exponent is not None:
        y = np.full_like(x, exponent)
    got = irees.compile(text, target=target, fp=fp)(x, y, np.zeros_like(x))
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
        wanted = exact.astype(F32)
    finite = np.isfinite(wanted) & (wanted != 0)
    assert float(np.max(ulps(got[finite], exact[finite]), initial=0)) <= 0.51
    assert np.array_equal(got[~finite], wanted[~finite], equal_nan=True)
    numbers = ~np.isnan(wanted)
    assert np.array_equal(np.signbit(got[numbers]), np.signbit(wanted[numbers]))


def bits_of(number: float) -> int:
    return int(np.array(number, F32).view(np.uint32))


def test_vectors_and_scalars_give_the_same_bits():
    x = samples()[::7]
    for name in FUNCTIONS:
        whole = apply(name, x)
        alone = np.concatenate([apply(name, x[i : i + 1]) for i in range(0, 200)])
        assert np.array_equal(whole[:200].view(np.uint32), alone.view(np.uint32))


@pytest.mark.parametrize("target", ["cpu", "cpu:generic", "cuda-emulated"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_classes_of_floats(name, dtype, target):
    kind = f"tensor<?xf{np.dtype(dtype).itemsize * 8}>"
    text = f"""#id = affine_map<(i) -> (i)>
func.func @main(%x: {kind}, %o: tensor<?xi1>) -> tensor<?xi1> {{
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}}
      ins(%x : {kind}) outs(%o : tensor<?xi1>) {{
  ^bb0(%a: {kind[9:-1]}, %b: i1):
    %c = math.{name} %a : {kind[9:-1]}
    linalg.yield %c : i1
  }} -> tensor<?xi1>
  return %r : tensor<?xi1>
}}"""
    large = np.finfo(dtype).max
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, large, -large, 1e-45, 0.0, -0.0] * 7, dtype)
    program = irees.compile(text, target=target)
    assert np.array_equal(program(x, np.zeros(x.shape, bool)), getattr(np, name)(x))


@pytest.mark.parametrize("target", ["cpu", "cpu:generic", "cpu:x86-64-v3"])
def test_every_width_has_the_same_bits(target):
    """Instructions of one processor stand in for arithmetic of others, special values included."""
    try:
        if Target.parse(target).missing_features():
            pytest.skip(f"this machine does not run {target}")
    except ArgumentError:
        pytest.skip(f"{target} is of another family of processors")
    edges = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1.0, -103.9, 88.9, -95.0, 89.5]
    x, y = (a.ravel().astype(np.float32) for a in np.meshgrid(edges, edges))
    kind = f"tensor<{x.size}xf32>"
    text = f"""#id = affine_map<(i) -> (i)>
func.func @main(%x: {kind}, %y: {kind}) -> ({kind}, {kind}, {kind}) {{
  %e = tensor.empty() : {kind}
  %r:3 = linalg.generic {{indexing_maps = [#id, #id, #id, #id, #id],
      iterator_types = ["parallel"]}} ins(%x, %y : {kind}, {kind})
      outs(%e, %e, %e : {kind}, {kind}, {kind}) {{
  ^bb0(%a: f32, %b: f32, %o: f32, %p: f32, %q: f32):
    %s = arith.maximumf %a, %b : f32
    %t = arith.minimumf %a, %b : f32
    %less = arith.cmpf olt, %a, %b : f32
    %u = arith.select %less, %b, %a : f32
    linalg.yield %s, %t, %u : f32, f32, f32
  }} -> ({kind}, {kind}, {kind})
  return %r#0, %r#1, %r#2 : {kind}, {kind}, {kind}
}}"""
    got = irees.compile(text, target=target, fp="strict")(x, y)
    for mine, wanted in zip(got, irees.compile(text, target="reference")(x, y), strict=True):
        same = (mine.view(np.int32) == wanted.view(np.int32)) | (np.isnan(mine) & np.isnan(wanted))
        assert same.all(), (x[~same], y[~same], mine[~same], wanted[~same])
    powers = f"""func.func @main(%x: {kind}) -> {kind} {{
  %e = tensor.empty() : {kind}
  %r = linalg.exp ins(%x : {kind}) outs(%e : {kind}) -> {kind}
  return %r : {kind}
}}"""
    mine = irees.compile(powers, target=target, fp="strict")(x)
    wanted = irees.compile(powers, target="cpu:generic", fp="strict")(x)
    assert np.array_equal(mine, wanted, equal_nan=True)


@pytest.mark.parametrize("fp", ["default", "strict"])
@pytest.mark.parametrize(("kind", "half"), [("f32", 12), ("f64", 27)])
def test_a_multiply_add_rounds_once(kind, half, fp):
    """(1 + 2^-h)^2 - 1 - 2^(1-h) is 2^(-2h), which the product alone has no room for."""
    shape = f"tensor<37x{kind}>"
    text = f"""#id = affine_map<(i) -> (i)>
func.func @main(%x: {shape}, %c: {shape}) -> {shape} {{
  %e = tensor.empty() : {shape}
  %r = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}}
      ins(%x, %c : {shape}, {shape}) outs(%e : {shape}) {{
  ^bb0(%a: {kind}, %b: {kind}, %o: {kind}):
    %s = math.fma %a, %a, %b : {kind}
    linalg.yield %s : {kind}
  }} -> {shape}
  return %r : {shape}
}}"""
    dtype = {"f32": np.float32, "f64": np.float64}[kind]
    x = np.full(37, 1 + 2.0**-half, dtype)
    c = np.full(37, -1 - 2.0 ** (1 - half), dtype)
    for target in ("cpu", "cpu:generic", "cuda-emulated"):
        got = irees.compile(text, target=target, fp=fp)(x, c)
        assert np.array_equal(got, np.full(37, 2.0 ** (-2 * half), dtype)), target


def test_powers_beside_f64_have_half_as_many_lanes():
    """Vectors of 8 lanes look up a table of 16, one by one."""
    text = """#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<83xf32>, %o: tensor<83xf64>) -> tensor<83xf64> {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<83xf32>) outs(%o : tensor<83xf64>) {
  ^bb0(%a: f32, %b: f64):
    %s = math.exp %a : f32
    %t = arith.extf %s : f32 to f64
    linalg.yield %t : f64
  } -> tensor<83xf64>
  return %r : tensor<83xf64>
}"""
    x = np.append(np.linspace(-80, 80, 80), [np.nan, np.inf, -np.inf]).astype(F32)
    got = irees.compile(text)(x, np.zeros(83))
    assert np.array_equal(got[80:], [np.nan, np.inf, 0], equal_nan=True)
    np.testing.assert_allclose(got[:80], np.exp(x[:80].astype(np.float64)), rtol=1.3e-7)


def test_powers_by_a_table_are_right_on_machines_without_lookups_too():
    """The arithmetic of AVX-512 as the interpreter has it, over all exponents and what is none."""
    edges = [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e9, -1e9, 1e7, 88.73, -103.9, -104, 0.0, -0.0]
    x = np.concatenate([samples()[::5], np.array(edges, F32)])
    kind = f"tensor<{x.size}xf32>"
    module = import_mlir(f"""#id = affine_map<(i) -> (i)>
func.func @main(%x: {kind}) -> {kind} {{
  %e = tensor.empty() : {kind}
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}}
      ins(%x : {kind}) outs(%e : {kind}) {{
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  }} -> {kind}
  return %r : {kind}
}}""")
    ExpandMathPass().apply(get_context(), module)
    with np.errstate(all="ignore"):
        got = interpret(module, [Case("main", (x,))])["main"][0]
        exact = np.exp(x.astype(np.float64))
        rounded = exact.astype(F32)
    ordinary = np.isfinite(exact)
    assert float(np.max(ulps(got[ordinary], exact[ordinary]))) <= LARGEST_ERROR["exp"] + 0.5
    special = ~ordinary | np.isinf(rounded) | (rounded == 0)
    assert np.array_equal(got[special], rounded[special], equal_nan=True)
    assert not np.signbit(got[~np.isnan(got)]).any()


@pytest.mark.parametrize(("kind", "power", "told"), [("fpowi", 3, 0), ("fpowi", 5, 1)])
def test_small_powers_have_a_vector_form(kind, power, told):
    text = f"""#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {{
  %p = arith.constant {power} : i32
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %c = math.{kind} %a, %p : f32, i32
    linalg.yield %c : f32
  }} -> tensor<64xf32>
  return %r : tensor<64xf32>
}}"""
    with collect() as remarks:
        program = irees.compile(import_mlir(text))
    assert sum(f"math.{kind} differs per lane" in r.text for r in remarks) == told
    x = np.linspace(-2, 2, 64).astype(F32)
    np.testing.assert_allclose(program(x), x.astype(np.float64) ** power, rtol=3e-7)


@pytest.mark.parametrize("fp", ["default", "strict"])
def test_angles_of_all_quadrants(fp):
    """With zeros of both signs, infinities and NaN, as C99 Annex F has them."""
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 3e38, -3e38, 1e-30]
    random = np.random.default_rng(0)
    edges += list(random.standard_normal(60) * 10.0 ** random.integers(-20, 20, 60))
    y, x = (a.ravel().astype(F32) for a in np.meshgrid(edges, edges))
    kind = f"tensor<{x.size}xf32>"
    text = f"""#id = affine_map<(i) -> (i)>
func.func @main(%y: {kind}, %x: {kind}) -> {kind} {{
  %e = tensor.empty() : {kind}
  %r = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}}
      ins(%y, %x : {kind}, {kind}) outs(%e : {kind}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = math.atan2 %a, %b : f32
    linalg.yield %s : f32
  }} -> {kind}
  return %r : {kind}
}}"""
    got = irees.compile(text, fp=fp)(y, x)
    exact = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    assert np.array_equal(np.isnan(got), np.isnan(exact))
    known = ~np.isnan(exact)
    assert np.array_equal(np.signbit(got[known]), np.signbit(exact[known]))
    normal = known & ((np.abs(exact) > 1e-37) | (exact == 0))
    assert float(np.max(ulps(got[normal], exact[normal]))) <= 4.5
