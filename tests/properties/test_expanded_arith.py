"""Rare ops on numbers, which are compiled as common ones, give the bits of the interpreter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import irees
from irees.frontends.mlir import import_mlir
from irees.testing import profiles
from irees.testing.oracles import Case, interpret, passes_agree
from irees.transforms.global_opt.convert_elementwise_to_linalg import (
    ConvertElementwiseToLinalgPass,
)
from irees.transforms.global_opt.expand_arith import ExpandArithPass

FACTOR = profiles.load()
COUNT = 16
INTEGERS = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def program(op: str, kind: str, operands: int, results: list[str]) -> str:
    """`op` of every element."""
    types = [f"tensor<{COUNT}x{k}>" for k in (*[kind] * operands, *results)]
    inputs = ", ".join(f"%x{i}: {types[i]}" for i in range(operands))
    names = ", ".join(f"%x{i}" for i in range(operands))
    outputs = ", ".join(types[operands:])
    values = ", ".join(f"%r{i}" for i in range(len(results)))
    text = f'{values} = "{op}"({names}) : ({", ".join(types[:operands])}) -> ({outputs})'
    return (
        f"func.func @main({inputs}) -> ({outputs}) {{\n  {text}\n  return {values} : {outputs}\n}}"
    )


def numbers(kind: str) -> st.SearchStrategy[np.ndarray]:
    """Rows in which the ends of a type, zeros of both signs and NaN are frequent."""
    if kind in INTEGERS:
        return arrays.arrays(INTEGERS[kind], COUNT)
    dtype = np.dtype(FLOATS[kind])
    info = np.finfo(dtype)
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, info.tiny, -info.tiny, info.tiny / 2, info.max]
    some = st.sampled_from([dtype.type(x) for x in ends])
    return arrays.arrays(dtype, COUNT, elements=some | arrays.from_dtype(dtype))


CASES = [
    *(("arith.addui_extended", kind, 2, [kind, "i1"]) for kind in INTEGERS),
    *(("arith.mulsi_extended", kind, 2, [kind, kind]) for kind in INTEGERS),
    *(("arith.mului_extended", kind, 2, [kind, kind]) for kind in INTEGERS),
    *(("arith.maximumnumf", kind, 2, [kind]) for kind in FLOATS),
    *(("arith.minimumnumf", kind, 2, [kind]) for kind in FLOATS),
    *(("math.isnormal", kind, 1, ["i1"]) for kind in FLOATS),
    *(("math.ctlz", kind, 1, [kind]) for kind in INTEGERS),
    *(("math.cttz", kind, 1, [kind]) for kind in INTEGERS),
    ("arith.index_cast", "i1", 1, ["index"]),
]


@pytest.mark.parametrize(("op", "kind", "operands", "results"), CASES)
def test_rare_ops_give_the_same_bits(op, kind, operands, results):
    text = program(op, kind, operands, results)
    module = import_mlir(text)
    compiled = irees.compile(text, fp="strict")
    passes = [ConvertElementwiseToLinalgPass(), ExpandArithPass()]

    @settings(max_examples=10 * FACTOR)
    @given(st.tuples(*[numbers(kind)] * operands))
    def check(inputs):
        assert passes_agree(text, passes, *inputs)[1] == []
        wanted = interpret(module, [Case("main", inputs)])["main"]
        found = compiled(*inputs)
        for a, b in zip(wanted, found if len(results) > 1 else [found], strict=True):
            np.testing.assert_array_equal(b, a)
            if a.dtype.kind == "f":
                numbers_only = ~np.isnan(a)
                np.testing.assert_array_equal(
                    np.signbit(b[numbers_only]), np.signbit(a[numbers_only])
                )

    check()


@pytest.mark.parametrize("op", ["log1p", "rsqrt", "sign", "tan", "expm1"])
def test_rare_complex_ops_are_near(op):
    z = np.array([0, 1, -2, 1j, -0.5j, 1e-6 + 1e-6j, -1.5 + 0.25j, 3 - 2j] * 2, np.complex64)
    text = f"""
func.func @main(%x: tensor<16xcomplex<f32>>) -> tensor<16xcomplex<f32>> {{
  %e = tensor.empty() : tensor<16xcomplex<f32>>
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%x : tensor<16xcomplex<f32>>)
      outs(%e : tensor<16xcomplex<f32>>) {{
  ^bb0(%a: complex<f32>, %o: complex<f32>):
    %0 = complex.{op} %a : complex<f32>
    linalg.yield %0 : complex<f32>
  }} -> tensor<16xcomplex<f32>>
  return %r : tensor<16xcomplex<f32>>
}}"""
    inputs = np.where(z == 0, 1, z) if op == "rsqrt" else z
    (wanted,) = interpret(import_mlir(text), [Case("main", (inputs,))])["main"]
    got = irees.compile(text, fp="strict")(inputs)
    # Seven roundings at most, of parts that are no larger than the whole.
    error = np.abs(got - wanted) / np.maximum(np.abs(wanted), np.finfo(np.float32).tiny)
    assert error.max() <= 8 * np.finfo(np.float32).eps


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_complex_atan2_is_near(element):
    kind = f"complex<{element}>"
    text = f"""
func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{
  %0 = complex.atan2 %a, %b : {kind}
  return %0 : {kind}
}}"""
    compiled = irees.compile(text, fp="strict")
    numbers = [1, -2, 1j, -0.5j, 1e-3 + 2e-3j, -1.5 + 0.25j, 3 - 2j]
    for a, b in itertools.product(numbers, repeat=2):
        squares = complex(b) ** 2 + complex(a) ** 2
        if abs(squares) < 1e-6 or (squares.imag == 0 and squares.real < 0):
            continue  # a pole, or a branch cut on which the sign of zero decides
        wanted = -1j * np.log((b + 1j * a) / np.sqrt(squares))
        assert abs(compiled(a, b) - wanted) <= (1e-5 if element == "f32" else 1e-13) * 10


@pytest.mark.parametrize("other", ["i64", "f64"])
def test_complex_bitcasts_keep_the_bits(other):
    text = f"""
func.func @main(%z: complex<f32>) -> ({other}, complex<f32>) {{
  %0 = complex.bitcast %z : complex<f32> to {other}
  %1 = complex.bitcast %0 : {other} to complex<f32>
  return %0, %1 : {other}, complex<f32>
}}"""
    z = np.complex64(complex(1.5, -0.0))
    dtype = {"i64": np.int64, "f64": np.float64}[other]
    for target in ("cpu", "reference"):
        number, back = irees.compile(text, target=target)(z)
        assert np.asarray(number, dtype).tobytes() == z.tobytes()
        assert np.complex64(back).tobytes() == z.tobytes()
