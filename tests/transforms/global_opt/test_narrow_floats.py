"""Floats of at most 8 bits as element types of MLIR text: every code, against ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.dialects import get_context
from irees.errors import UnsupportedError
from irees.frontends.mlir.importer import import_mlir
from irees.runtime.dtypes import DTYPES
from irees.transforms.global_opt.store_narrow_types import StoreNarrowTypesPass
from irees.transforms.utils.narrow_floats import EXPONENT_ONLY, FORMATS

TARGETS = ["reference", "cpu", "cuda-emulated"]
KINDS = [*FORMATS, EXPONENT_ONLY]
WIDER = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
random = np.random.default_rng(11)


def elementwise(line: str, inputs: list[str], output: str) -> str:
    """`line` computes %r of %a, and of %b where there are two inputs."""
    names = ["%a", "%b"][: len(inputs)]
    types = [f"tensor<?x{kind}>" for kind in (*inputs, output)]
    arguments = ", ".join(f"{n}s: {t}" for n, t in zip(names, types))
    maps = ", ".join(["affine_map<(i) -> (i)>"] * len(types))
    block = ", ".join(f"{n}: {k}" for n, k in zip([*names, "%o"], [*inputs, output], strict=True))
    return f"""
func.func @main({arguments}) -> {types[-1]} {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %as, %c0 : {types[0]}
  %e = tensor.empty(%n) : {types[-1]}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins({", ".join(f"{n}s" for n in names)} : {", ".join(types[:-1])}) outs(%e : {types[-1]}) {{
  ^bb0({block}):
    {line}
    linalg.yield %r : {output}
  }} -> {types[-1]}
  return %r : {types[-1]}
}}"""


def codes(kind: str) -> np.ndarray:
    """Every code of a format."""
    bits = FORMATS[kind].bits if kind in FORMATS else 8
    return np.arange(1 << bits, dtype=np.uint8).view(DTYPES[kind])


def bits(value: np.ndarray) -> np.ndarray:
    """The bytes of elements."""
    return value.view(np.uint8)


def same(got: np.ndarray, want: np.ndarray) -> None:
    """The same numbers, zeros of the same sign, NaN at the same places."""
    got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


def roundings(kind: str, dtype: type) -> np.ndarray:
    """Every number of a format, the middles between neighbours, what lies beside, and beyond."""
    numbers = codes(kind).astype(np.float64)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    with np.errstate(all="ignore"):
        middles = ((numbers[1:] + numbers[:-1]) / 2).astype(dtype)
        around = [np.nextafter(middles, dtype(s)) for s in (-np.inf, np.inf)]
        largest = numbers[-1] * np.array([1, 1.01, 1.07, 1.13, 1.3, 2])
        odd = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-30, -1e-30]
        some = random.standard_normal(200) * 3
        return np.concatenate(
            [numbers.astype(dtype), middles, *around, *(x.astype(dtype) for x in
             (largest, -largest, np.array(odd), some))]
        )  # fmt: skip


def nearest(x: np.ndarray, kind: str) -> np.ndarray:
    """An f64 rounded once: ml_dtypes rounds it to f32 first, which is made odd here."""
    if x.dtype == np.float64:
        with np.errstate(all="ignore"):
            near = x.astype(np.float32)
        back = near.astype(np.float64)
        near = np.where(np.abs(back) > np.abs(x), np.nextafter(near, np.float32(0)), near)
        number = near.view(np.int32) | (back != x)
        x = np.where(np.isfinite(x), number.astype(np.int32).view(np.float32), near)
    with np.errstate(all="ignore"):
        return x.astype(DTYPES[kind])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_code_is_widened_exactly(kind, target):
    x = codes(kind)
    for wide in ("f32", "f64", "f16"):
        text = elementwise(f"%r = arith.extf %a : {kind} to {wide}", [kind], wide)
        got = irees.compile(text, target=target)(x)
        with np.errstate(over="ignore"):
            same(got, x.astype(np.float32).astype(WIDER[wide]))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_rounded_once(kind, target):
    for wide in ("f32", "f64"):
        x = roundings(kind, WIDER[wide])
        text = elementwise(f"%r = arith.truncf %a : {wide} to {kind}", [wide], kind)
        got = irees.compile(text, target=target)(x)
        assert got.dtype == DTYPES[kind]
        np.testing.assert_array_equal(bits(got), bits(nearest(x, kind)))


BINARY = {
    "addf": lambda a, b: a + b, "subf": lambda a, b: a - b, "mulf": lambda a, b: a * b,
    "divf": lambda a, b: a / b, "maximumf": np.maximum, "minimumf": np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f4E2M1FN"])
def test_arithmetic_is_that_of_f32_rounded(kind, target):
    x = codes(kind)
    a, b = np.repeat(x, len(x)), np.tile(x, len(x))
    for name, f in BINARY.items():
        text = elementwise(f"%r = arith.{name} %a, %b : {kind}", [kind, kind], kind)
        got = irees.compile(text, target=target)(a, b)
        with np.errstate(all="ignore"):
            want = f(a.astype(np.float32), b.astype(np.float32)).astype(DTYPES[kind])
        either = got.astype(np.float32), want.astype(np.float32)
        # Of maxima of zeros with two signs numpy takes any.
        np.testing.assert_array_equal(*either, err_msg=name)
    less = elementwise(f"%r = arith.cmpf olt, %a, %b : {kind}", [kind, kind], "i1")
    got = irees.compile(less, target=target)(a, b)
    np.testing.assert_array_equal(got, a.astype(np.float32) < b.astype(np.float32))


@pytest.mark.parametrize("target", TARGETS)
def test_casts_from_and_to_integers(target):
    x = np.arange(-20, 20, dtype=np.int8)
    text = elementwise("%r = arith.sitofp %a : i8 to f8E5M2", ["i8"], "f8E5M2")
    same(irees.compile(text, target=target)(x), x.astype(np.float32).astype(DTYPES["f8E5M2"]))
    narrow = """%s = arith.trunci %a : i8 to i4
    %r = arith.uitofp %s : i4 to f8E4M3FN"""
    got = irees.compile(elementwise(narrow, ["i8"], "f8E4M3FN"), target=target)(x)
    same(got, (x & 15).astype(np.float32).astype(DTYPES["f8E4M3FN"]))
    back = """%s = arith.fptoui %a : f8E4M3FN to i4
    %r = arith.extui %s : i4 to i8"""
    numbers = np.array([0, 1, 2.5, 15, 16, 448, -3], DTYPES["f8E4M3FN"])
    got = irees.compile(elementwise(back, ["f8E4M3FN"], "i8"), target=target)(numbers)
    np.testing.assert_array_equal(got, [0, 1, 2, 15, 15, 15, 0])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "integer"), [("f8E4M3FN", "i8"), ("f4E2M1FN", "i4")])
def test_bits_are_those_of_ml_dtypes(kind, integer, target):
    x = codes(kind)
    to = f"""%s = arith.bitcast %a : {kind} to {integer}
    {f"%r = arith.extui %s : {integer} to i8" if integer != "i8" else "%r = arith.addi %s, %s : i8"}"""
    got = irees.compile(elementwise(to, [kind], "i8"), target=target)(x)
    np.testing.assert_array_equal(got, bits(x).view(np.int8) * (2 if integer == "i8" else 1))
    back = f"""%s = arith.trunci %a : i16 to {integer}
    %r = arith.bitcast %s : {integer} to {kind}"""
    got = irees.compile(elementwise(back, ["i16"], kind), target=target)(bits(x).astype(np.int16))
    np.testing.assert_array_equal(bits(got), bits(x))


MOVES = """
func.func @main(%x: tensor<2x3xf8E5M2>, %s: f8E5M2) -> (tensor<3x3xf8E5M2>, f8E5M2, tensor<2xf4E2M1FN>) {
  %w = arith.constant dense<[[1.0, -2.0, 0x7C]]> : tensor<1x3xf8E5M2>
  %c = arith.constant dense<[6.0, -0.5]> : tensor<2xf4E2M1FN>
  %r = tensor.concat dim(0) %x, %w : (tensor<2x3xf8E5M2>, tensor<1x3xf8E5M2>) -> tensor<3x3xf8E5M2>
  return %r, %s, %c : tensor<3x3xf8E5M2>, f8E5M2, tensor<2xf4E2M1FN>
}"""


@pytest.mark.parametrize("target", TARGETS)
def test_constants_scalars_and_moves_keep_their_types(target):
    kind = DTYPES["f8E5M2"]
    x = np.arange(6).reshape(2, 3).astype(kind)
    moved, scalar, constant = irees.compile(MOVES, target=target)(x, kind.type(1.5))
    same(moved, np.concatenate([x, np.array([[1, -2, np.inf]], kind)]))
    assert float(scalar) == 1.5
    assert constant.dtype == DTYPES["f4E2M1FN"]
    same(constant, np.array([6, -0.5], DTYPES["f4E2M1FN"]))


MATMUL = """
func.func @main(%a: tensor<?x16xf8E4M3FN>, %b: tensor<16x8xf8E4M3FN>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x16xf8E4M3FN>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>)
      outs(%z : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}"""


@pytest.mark.parametrize("target", TARGETS)
def test_products_of_narrow_floats(target):
    a, b = (random.standard_normal(n).astype(DTYPES["f8E4M3FN"]) for n in ((5, 16), (16, 8)))
    got = irees.compile(MATMUL, target=target)(a, b)
    np.testing.assert_allclose(got, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-5)


def test_a_rounding_mode_is_refused_with_the_way_out():
    text = elementwise("%r = arith.truncf %a downward : f32 to f8E5M2", ["f32"], "f8E5M2")
    with pytest.raises(UnsupportedError, match=r"rounding .*downward.* to f8E5M2"):
        irees.compile(text)


@pytest.mark.parametrize("kind", ["f8E4M3FN", "i4"])
@pytest.mark.parametrize(
    ("op", "result"),
    [("reduction <add>, %v : {v} into {e}", "{e}"), ("bitcast %v : {v} to {v}", "{v}")],
)
def test_arithmetic_on_vectors_is_refused(kind, op, result):
    names = {"v": f"vector<8x{kind}>", "e": kind}
    text = f"""
    func.func private @f(%v: {names["v"]}) -> {result.format(**names)} {{
      %r = vector.{op.format(**names)}
      return %r : {result.format(**names)}
    }}
    """
    module = import_mlir(text)
    with pytest.raises(UnsupportedError, match=f"arithmetic on vectors of {kind}"):
        StoreNarrowTypesPass().apply(get_context(), module)
