"""`irees-expand-casts` gives what the interpreter does, on all targets and in all lanes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.errors import ArgumentError
from irees.remarks import collect
from irees.target import Target

F32 = np.float32


def skip_unless_it_runs(target: str) -> None:
    """Skips what the processor cannot run."""
    try:
        if target != "cuda-emulated" and Target.parse(target).missing_features():
            pytest.skip(f"this machine does not run {target}")
    except ArgumentError:
        pytest.skip(f"{target} is of another family of processors")


def cast_of(size: int, source: str, target: str, op: str) -> str:
    """A program that applies an op on `%a` to all elements."""
    return f"""#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<{size}x{source}>) -> tensor<{size}x{target}> {{
  %e = tensor.empty() : tensor<{size}x{target}>
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}}
      ins(%x : tensor<{size}x{source}>) outs(%e : tensor<{size}x{target}>) {{
  ^bb0(%a: {source}, %o: {target}):
    %s = {op}
    linalg.yield %s : {target}
  }} -> tensor<{size}x{target}>
  return %r : tensor<{size}x{target}>
}}"""


@pytest.mark.parametrize("target", ["cpu", "cpu:generic", "cpu:x86-64-v3", "cuda-emulated"])
@pytest.mark.parametrize("bits", [1, 8, 16, 32, 64])
@pytest.mark.parametrize("kind", ["fptosi", "fptoui"])
@pytest.mark.parametrize("source", ["f32", "f64", "f16"])
def test_casts_to_integers_saturate_in_all_lanes(kind, bits, target, source):
    """As the interpreter has them: the nearest integer of what is out of range, 0 of NaN."""
    skip_unless_it_runs(target)
    dtype = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[source]
    edges = [
        s * (2.0**e + d)
        for s in (1, -1)
        for e in (7, 8, 15, 16, 20, 24, 31, 32, 47, 50, 51, 52, 53, 62, 63, 64)
        for d in (-1, -0.5, 0, 1, 2.0 ** (e - 23), -(2.0 ** (e - 24)), -(2.0 ** (e - 53)))
    ]
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 3.4e38, -3.4e38, 1e-45]
    wide = np.random.default_rng(0).uniform(-1.2, 1.2, 500) * 2.0**64
    steps = np.linspace(-70000, 70000, 1003), np.linspace(-3e9, 3e9, 997)
    with np.errstate(over="ignore"):
        x = np.concatenate([edges, odd, wide, wide / 2**32, *steps]).astype(dtype)
    text = cast_of(x.size, source, f"i{bits}", f"arith.{kind} %a : {source} to i{bits}")
    wanted = irees.compile(text, target="reference")(x)
    with collect() as remarks:
        program = irees.compile(text, target=target)
    assert not [r.text for r in remarks if "no vector" in r.text]
    assert np.array_equal(program(x), wanted)


@pytest.mark.parametrize("target", ["cpu", "cpu:generic", "cpu:x86-64-v3", "cuda-emulated"])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("body", ["%a", "%clamped"])
def test_the_least_integer_is_chosen_in_all_lanes(body, source, bits, target):
    """PyTorch's cast: what is out of range and NaN becomes the least integer, as on x86."""
    skip_unless_it_runs(target)
    dtype = {"f32": np.float32, "f64": np.float64}[source]
    bound = 2.0 ** (bits - 1)
    edges = [
        s * (bound + d * bound * 2.0**-e) for s in (1, -1) for d in (-1, 0, 1) for e in (22, 52)
    ]
    odd = [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        0.5,
        -0.999,
        62.9,
        63.0,
        63.5,
        3.4e38,
        -3.4e38,
        1e-45,
    ]
    x = np.concatenate([edges, odd, np.linspace(-100, 100, 999)]).astype(dtype)
    op = f"""arith.select %in, %i, %least : i{bits}
    %least = arith.constant {-(1 << bits - 1)} : i{bits}
    %bound = arith.constant {bound} : {source}
    %zero = arith.constant 0.0 : {source}
    %most = arith.constant 63.0 : {source}
    %above = arith.cmpf oge, %a, %zero : {source}
    %below = arith.cmpf ole, %a, %most : {source}
    %inside = arith.andi %above, %below : i1
    %clamped = arith.select %inside, %a, %zero : {source}
    %in = arith.cmpf olt, {body}, %bound : {source}
    %i = arith.fptosi {body} : {source} to i{bits}"""
    first, *rest = op.splitlines()
    steps = "\n".join(rest).strip() + "\n    %s = "
    text = cast_of(x.size, source, f"i{bits}", first).replace("%s = ", steps)
    given = np.where((x >= 0) & (x <= 63), x, 0) if body == "%clamped" else x
    fits = (given < bound) & (given >= -bound)
    wanted = np.where(fits, given, 0).astype(f"i{bits // 8}")
    wanted[~fits] = -(1 << bits - 1)
    assert np.array_equal(irees.compile(text, target="reference")(x), wanted)
    assert np.array_equal(irees.compile(text, target=target)(x), wanted)


@pytest.mark.parametrize("target", ["cpu", "cpu:generic", "cpu:x86-64-v3", "cuda-emulated"])
@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_halves_are_f64_in_all_lanes(half, target):
    """f64 => f16 is rounded once, at ties, too; f64 => bf16 goes through f32."""
    skip_unless_it_runs(target)
    narrow = np.float16 if half == "f16" else ml_dtypes.bfloat16
    every = np.arange(1 << 16).astype(np.uint16).view(narrow)
    text = cast_of(every.size, half, "f64", f"arith.extf %a : {half} to f64")
    with np.errstate(invalid="ignore"):
        values = every.astype(float)
    np.testing.assert_array_equal(irees.compile(text, target=target)(every), values)
    finite = np.sort(every[np.isfinite(every.astype(np.float32))].astype(float))
    with np.errstate(over="ignore", invalid="ignore"):
        ties = (finite[:-1] + finite[1:]) / 2
        near = [np.nextafter(ties, s) for s in (-np.inf, np.inf)]
        odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 65519.99, 65520.0, 1e300, -1e300, 5e-324, 2e-8]
        x = np.concatenate([finite, ties, *near, ties * (1 + 2.0**-40), odd])
        text = cast_of(x.size, "f64", half, f"arith.truncf %a : f64 to {half}")
        wanted = irees.compile(text, target="reference")(x)
        with collect() as remarks:
            program = irees.compile(text, target=target)
        got = program(x)
    assert not [r.text for r in remarks if "no vector" in r.text]
    assert np.array_equal(np.isnan(got.astype(float)), np.isnan(x))
    known = ~np.isnan(x)
    assert np.array_equal(got[known].view(np.uint16), wanted[known].view(np.uint16))


def test_one_half_is_an_f64():
    """Outside of vectors, too; gcc 12 would call a library function."""
    text = """func.func @main(%x: tensor<f16>) -> tensor<f64> {
  %a = tensor.extract %x[] : tensor<f16>
  %w = arith.extf %a : f16 to f64
  %r = tensor.from_elements %w : tensor<f64>
  return %r : tensor<f64>
}"""
    program = irees.compile(text)
    for value in (1.5, -65504.0, 6e-8, -0.0, float("inf")):
        assert program(np.array(value, np.float16))[()] == np.float64(np.float16(value))


KNOWN = {
    "clamped": ("maximumf", -128.0, 127.0, ""),
    "clamped and whole": ("maximumf", -128.0, 127.0, "math.roundeven"),
    "at the edges": ("maximumf", -4194303.0, 4194303.0, ""),
    "beyond the edges": ("maximumf", -5000000.0, 5000000.0, "math.floor"),
    "fractions": ("maximumf", -0.75, 200.5, ""),
    "beyond the edges of f64": ("maximumf", -3e15, 3e15, "math.trunc"),
    "half open": ("minimumf", 100.0, 3e9, "math.ceil"),
}
"""Outer and inner bound, and how the number is rounded before."""


@pytest.mark.parametrize("bits", [1, 8, 16, 32, 64])
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("cast", ["fptosi", "fptoui"])
@pytest.mark.parametrize("known", KNOWN)
def test_casts_of_numbers_in_a_known_range(known, bits, kind, cast):
    """What is known to be in range is not clamped again; NaN stays 0."""
    first, low, high, rounding = KNOWN[known]
    second = "minimumf" if first == "maximumf" else "maximumf"
    edges = [s * (b + d) for s in (1, -1) for b in (abs(low), abs(high)) for d in (-1, -0.5, 0, 1)]
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 0.999, 1.5, 2.5, -2.5, 3.4e38, 1e-45]
    x = np.concatenate([edges, odd, np.linspace(-9e6, 9e6, 1003), np.linspace(-6e15, 6e15, 99)])
    x = x.astype(F32 if kind == "f32" else np.float64)
    rounded = f"{rounding} %a : {kind}" if rounding else f"arith.negf %a : {kind}"
    op = f"""arith.{cast} %c : {kind} to i{bits}
    %w = {rounded}
    %low = arith.constant {low} : {kind}
    %high = arith.constant {high} : {kind}
    %b = arith.{first} %w, %low : {kind}
    %c = arith.{second} %b, %high : {kind}"""
    last, *before = op.split("\n")
    text = cast_of(x.size, kind, f"i{bits}", last).replace(
        "    %s =", "\n".join(before) + "\n    %s ="
    )
    wanted = irees.compile(text, target="reference")(x)
    assert np.array_equal(irees.compile(text)(x), wanted)


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3", "cpu:generic"])
@pytest.mark.parametrize("low", ["oge", "ogt", "ole", "une"])
@pytest.mark.parametrize("most", [63.0, 5e6, 3e15])
def test_casts_of_numbers_that_are_selected_in_a_range(most, low, target):
    """Only comparisons that bound the chosen number count, and none holds for NaN."""
    skip_unless_it_runs(target)
    op = f"""%zero = arith.constant 0.0 : f32
    %most = arith.constant {most} : f32
    %one = arith.constant 1.0 : f32
    %n = math.floor %a : f32
    %f = arith.addf %n, %one : f32
    %b = arith.cmpf {low}, %f, %zero : f32
    %c = arith.cmpf ole, %f, %most : f32
    %d = arith.andi %b, %c : i1
    %w = arith.select %d, %f, %zero : f32
    arith.fptosi %w : f32 to i64"""
    *before, last = op.split("\n")
    text = cast_of(1000, "f32", "i64", last.strip())
    text = text.replace("    %s =", "\n".join(before) + "\n    %s =")
    edges = [np.nan, np.inf, -np.inf, -0.0, -1.0, 0.0, 63.0, 62.5, 64.0, 5e6, 3e9, -3e9, 3e15, 1e30]
    x = np.resize(np.array(edges, F32), 1000)
    wanted = irees.compile(text, target="reference")(x)
    assert np.array_equal(irees.compile(text, target=target)(x), wanted)
