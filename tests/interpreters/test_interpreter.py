"""What the interpreter says where MLIR says nothing, and that it is exact."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from clock import at_most

import irees
from irees.errors import RuntimeTrap, UnsupportedError
from irees.frontends.mlir import import_mlir
from irees.interpreters import Interpreter, evaluate
from irees.interpreters.math import fma
from irees.interpreters.special import erf, erfc


def scalar(op: str, kind: str, result: str, *arguments):
    names = ", ".join(f"%{c}: {kind}" for c in "abc"[: len(arguments)])
    op = op if "%r = " in op else f"%r = {op}"
    text = f"func.func @main({names}) -> {result} {{\n {op}\n return %r : {result}\n}}"
    return Interpreter(import_mlir(text)).call("main", *arguments)[0]


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("divsi", 7, 0, -1), ("divsi", -128, -1, -128), ("divsi", -7, 2, -3),
        ("remsi", 7, 0, 7), ("remsi", -128, -1, 0), ("remsi", -7, 2, -1),
        ("divui", -1, 2, 127), ("divui", 5, 0, -1), ("remui", -1, 16, 15),
        ("floordivsi", -7, 2, -4), ("floordivsi", 7, 0, -1), ("ceildivsi", 7, 2, 4),
        ("ceildivsi", -7, 2, -3), ("ceildivui", -1, 2, -128), ("shli", 1, 8, 0),
        ("shrsi", -5, 200 - 256, -1), ("shrui", -1, 1, 127), ("addi", 127, 1, -128),
        ("muli", 16, 16, 0), ("maxui", -1, 1, -1), ("minsi", -1, 1, -1),
    ],
)  # fmt: skip
def test_integers_are_total(op, a, b, expected):
    text = f"arith.{op} %a, %b : i8"
    assert scalar(text, "i8", "i8", np.int8(a), np.int8(b)) == expected
    arrays = np.array([a, a], np.int8), np.array([b, b], np.int8)
    module = import_mlir(
        "func.func @main(%a: tensor<2xi8>, %b: tensor<2xi8>) -> tensor<2xi8> {\n"
        f" %r = arith.{op} %a, %b : tensor<2xi8>\n return %r : tensor<2xi8>\n}}"
    )
    assert Interpreter(module).call("main", *arrays)[0].tolist() == [expected, expected]


@pytest.mark.parametrize(
    ("op", "x", "to", "expected"),
    [
        ("fptosi", np.nan, "i8", 0), ("fptosi", 1e9, "i8", 127), ("fptosi", -1e9, "i8", -128),
        ("fptoui", -1.0, "i8", 0), ("fptoui", 1e9, "i8", -1), ("fptosi", -1.9, "i32", -1),
        ("fptosi", np.inf, "i64", 2**63 - 1), ("fptosi", 2147483647.0, "i32", 2**31 - 1),
    ],
)  # fmt: skip
def test_floats_saturate(op, x, to, expected):
    assert scalar(f"arith.{op} %a : f32 to {to}", "f32", to, np.float32(x)) == expected


def test_f32_is_f32_and_bf16_rounds_after_every_op():
    big = np.float32(16777216.0)
    assert scalar("arith.addf %a, %b : f32", "f32", "f32", big, np.float32(1)) == big
    assert np.isinf(scalar("arith.mulf %a, %a : f32", "f32", "f32", np.float32(1e30)))
    b = ml_dtypes.bfloat16
    assert scalar("arith.addf %a, %b : bf16", "bf16", "bf16", b(256), b(1)) == b(256)


def test_zeros_and_nan():
    negative = scalar("arith.minimumf %a, %b : f32", "f32", "f32", np.float32(0), np.float32(-0.0))
    assert np.signbit(negative)
    assert np.isnan(
        scalar("arith.maximumf %a, %b : f32", "f32", "f32", np.float32(1), np.float32(np.nan))
    )
    assert (
        scalar("arith.maxnumf %a, %b : f32", "f32", "f32", np.float32(1), np.float32(np.nan)) == 1
    )


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_half_a_power_is_no_square_root(kind):
    for x, expected in ((-np.inf, np.inf), (-0.0, 0.0), (4.0, 2.0), (-4.0, np.nan)):
        got = scalar(f"math.powf %a, %b : {kind}", kind, kind, x, 0.5)
        assert np.array_equal(got, expected, equal_nan=True)
        assert np.isnan(expected) or not np.signbit(got)


def test_fma_rounds_once():
    a = np.float32(1 + 2**-12)
    exact = np.float32(float(a) * float(a) - 1.0)
    assert fma(a, a, np.float32(-1)) == exact
    x = np.float64(1 + 2**-27)
    assert fma(x, x, np.float64(-1)) == 2**-26 + 2**-54


def test_erf():
    import math

    x = np.linspace(-6, 6, 2001)
    assert np.allclose(erf(x), [math.erf(v) for v in x], rtol=4e-16, atol=0)
    assert np.allclose(erfc(x), [math.erfc(v) for v in x], rtol=1e-14, atol=0)


def test_an_index_outside_reads_the_nearest_element():
    module = import_mlir(
        """
        func.func @main(%t: tensor<3xf32>, %i: index) -> (f32, tensor<3xf32>) {
          %0 = tensor.extract %t[%i] : tensor<3xf32>
          %1 = tensor.insert %0 into %t[%i] : tensor<3xf32>
          return %0, %1 : f32, tensor<3xf32>
        }"""
    )
    t = np.array([1, 2, 3], np.float32)
    assert Interpreter(module).call("main", t, 7)[0] == 3
    value, same = Interpreter(module).call("main", t, -7)
    assert value == 1
    assert same.tolist() == [1, 2, 3]


def test_the_address_of_a_view_is_that_of_its_allocation():
    module = import_mlir(
        """
        func.func @main(%x: memref<8xf32>) -> (index, index) {
          %v = memref.subview %x[3] [2] [1] : memref<8xf32> to memref<2xf32, strided<[1], offset: 3>>
          %b, %o, %n, %s = memref.extract_strided_metadata %v : memref<2xf32, strided<[1], offset: 3>>
              -> memref<f32>, index, index, index
          %p = memref.extract_aligned_pointer_as_index %v
              : memref<2xf32, strided<[1], offset: 3>> -> index
          return %p, %o : index, index
        }"""
    )
    x = np.arange(8, dtype=np.float32)
    assert Interpreter(module).call("main", x) == (x.ctypes.data, 3)


def test_traps_and_unknown_ops_say_where():
    module = import_mlir(
        """
        func.func @main(%c: i1) {
          cf.assert %c, "must hold"
          return
        }"""
    )
    Interpreter(module).call("main", True)
    with pytest.raises(RuntimeTrap, match="must hold"):
        Interpreter(module).call("main", False)
    with pytest.raises(UnsupportedError, match=r"gpu\.wait"):
        scalar('"gpu.wait"() : () -> ()\n%r = arith.addi %a, %a : i8', "i8", "i8", np.int8(1))


GATHER = """
#row = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%at: tensor<{n}xi64>, %table: tensor<8x{n}xf32>, %e: tensor<{n}x{n}xf32>)
    -> tensor<{n}x{n}xf32> {{
  %zero = arith.constant 0 : i64
  %eight = arith.constant 8 : i64
  %0 = linalg.generic {{indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%at : tensor<{n}xi64>) outs(%e : tensor<{n}x{n}xf32>) {{
  ^bb0(%a: i64, %o: f32):
    %below = arith.cmpi slt, %a, %eight : i64
    cf.assert %below, "too large"
    %above = arith.cmpi sge, %a, %zero : i64
    cf.assert %above, "negative"
    %i = arith.index_cast %a : i64 to index
    %j = linalg.index 1 : index
    %x = tensor.extract %table[%i, %j] : tensor<8x{n}xf32>
    linalg.yield %x : f32
  }} -> tensor<{n}x{n}xf32>
  return %0 : tensor<{n}x{n}xf32>
}}"""


def test_several_assertions_cost_no_loop_and_the_first_point_that_fails_is_told():
    n = 512
    gather = Interpreter(import_mlir(GATHER.format(n=n)))
    table, empty = np.arange(8 * n, dtype=np.float32).reshape(8, n), np.empty((n, n), np.float32)
    with at_most(1.0):
        np.testing.assert_array_equal(
            gather.call("main", np.arange(n) % 8, table, empty)[0], table[np.arange(n) % 8]
        )
    for bad, message in (([-1, 8], "negative"), ([8, -1], "too large"), ([1, -1], "negative")):
        with pytest.raises(RuntimeTrap, match=message):
            gather.call("main", np.resize(bad, n), table, empty)


def test_constants_fold_at_numpy_speed():
    module = import_mlir(
        """
        func.func @main(%a: tensor<3072x768xf32>, %e: tensor<768x3072xf32>)
            -> tensor<768x3072xf32> {
          %0 = linalg.transpose ins(%a : tensor<3072x768xf32>) outs(%e : tensor<768x3072xf32>)
              permutation = [1, 0]
          return %0 : tensor<768x3072xf32>
        }"""
    )
    op = next(o for o in module.walk() if o.name == "linalg.transpose")
    a = np.arange(3072 * 768, dtype=np.float32).reshape(3072, 768)
    with at_most(1.0):
        (result,) = evaluate(op, [a, np.empty((768, 3072), np.float32)])
    assert np.array_equal(result, a.T)


def test_a_long_chain_keeps_the_order_of_the_loop():
    module = import_mlir(
        """
        func.func @main(%a: tensor<70000xf32>, %o: tensor<f32>) -> tensor<f32> {
          %0 = linalg.reduce { arith.addf } ins(%a : tensor<70000xf32>) outs(%o : tensor<f32>)
              dimensions = [0]
          return %0 : tensor<f32>
        }"""
    )
    a = np.random.default_rng(0).normal(size=70000).astype(np.float32)
    expected = np.float32(0)
    for x in a:
        expected = expected + x
    (result,) = Interpreter(module).call("main", a, np.zeros((), np.float32))
    assert result == expected


@pytest.mark.parametrize("element", ["i32", "f32"])
def test_arguments_may_have_another_byte_order(element):
    kind = f"tensor<3x{element}>"
    text = f"func.func @main(%x: {kind}) -> {kind} {{ return %x : {kind} }}"
    dtype = np.dtype(f"{element[0]}4")
    given = np.arange(3, dtype=dtype.newbyteorder(">"))
    (by_interpreter,) = Interpreter(import_mlir(text)).call("main", given)
    by_program = irees.compile(text, target="reference")(given)
    for result in (by_interpreter, by_program):
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, [0, 1, 2])
    void = given.astype(dtype).view("V4")  # numpy.save stores bf16 and the like so
    np.testing.assert_array_equal(irees.compile(text, target="reference")(void), [0, 1, 2])
