"""A comparison with the index of a vectorized loop, for every predicate, number and side."""

from __future__ import annotations

import numpy as np
import pytest

import irees

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
EDGES = [0, 1, -1, 2, 7, 8, 15, 16, 17, 44, 45, 46, -16, 2**31 - 1, 2**31, -(2**31), 2**32, 2**32 + 3,
         2**62, -(2**62), 2**63 - 1, -(2**63), -(2**63) + 1]  # fmt: skip


@pytest.mark.parametrize("target", ["cpu", "cpu:generic"])
@pytest.mark.parametrize("kind", ["index", "i64"])
@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_number_of_each_row_and_the_column(predicate, kind, target):
    cast = "index" if kind == "index" else "i64"
    column = "%j" if kind == "index" else "%k"
    to_index = "%n = arith.index_cast %a : i64 to index" if kind == "index" else ""
    number = "%n" if kind == "index" else "%a"
    text = f"""#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<?xi64>, %o: tensor<?x45xf32>) -> (tensor<?x45xf32>, tensor<?x45xf32>) {{
  %one = arith.constant 1.0 : f32
  %r:2 = linalg.generic {{indexing_maps = [#row, #all, #all],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x : tensor<?xi64>) outs(%o, %o : tensor<?x45xf32>, tensor<?x45xf32>) {{
  ^bb0(%a: i64, %b: f32, %c: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    {to_index}
    %l = arith.cmpi {predicate}, {number}, {column} : {cast}
    %r = arith.cmpi {predicate}, {column}, {number} : {cast}
    %s = arith.select %l, %one, %b : f32
    %t = arith.select %r, %one, %c : f32
    linalg.yield %s, %t : f32, f32
  }} -> (tensor<?x45xf32>, tensor<?x45xf32>)
  return %r#0, %r#1 : tensor<?x45xf32>, tensor<?x45xf32>
}}"""
    x, o = np.array(EDGES, np.int64), np.zeros((len(EDGES), 45), np.float32)
    rows, columns = x[:, None], np.arange(45, dtype=np.int64)[None]
    if predicate.startswith("u"):
        rows, columns = rows.astype(np.uint64), columns.astype(np.uint64)
    compare = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
               "gt": np.greater, "ge": np.greater_equal}[predicate[-2:]]  # fmt: skip
    left, right = irees.compile(text, target=target)(x, o)
    assert np.array_equal(left, compare(rows, columns))
    assert np.array_equal(right, compare(columns, rows))


@pytest.mark.parametrize("target", ["cpu", "cpu:generic", "cpu:x86-64-v3"])
@pytest.mark.parametrize("factor", [3, -7, 2654435761, 2**48, 2**48 + 1, 2**62 + 1, -(2**63)])
def test_multiples_of_the_column(factor, target):
    """They wrap, in every lane, whether the vector is known by its first lane or not."""
    text = f"""#id = affine_map<(j) -> (j)>
func.func @main(%x: tensor<77xi64>) -> tensor<77xi64> {{
  %f = arith.constant {factor} : i64
  %e = tensor.empty() : tensor<77xi64>
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}}
      ins(%x : tensor<77xi64>) outs(%e : tensor<77xi64>) {{
  ^bb0(%a: i64, %o: i64):
    %j = linalg.index 0 : index
    %k = arith.index_cast %j : index to i64
    %m = arith.muli %k, %f : i64
    %n = arith.subi %m, %f : i64
    %s = arith.xori %n, %a : i64
    linalg.yield %s : i64
  }} -> tensor<77xi64>
  return %r : tensor<77xi64>
}}"""
    x = np.arange(77, dtype=np.int64) * 12345
    with np.errstate(over="ignore"):
        wanted = (np.arange(-1, 76) * np.int64(factor)) ^ x
    assert np.array_equal(irees.compile(text, target=target)(x), wanted)


@pytest.mark.parametrize("step", [2, 3, 5, -1, -4])
@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
def test_loads_at_multiples_of_the_column(step, target):
    """exp(x[i, 2 + step * j]) and, between other dims, exp(y[i, j, 1])."""
    first = 2 if step > 0 else 2 - 44 * step
    width = 3 + 44 * abs(step)
    text = f"""#all = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<6x{width}xf32>, %y: tensor<6x45x2xf32>) -> tensor<6x45xf32> {{
  %step = arith.constant {step} : index
  %first = arith.constant {first} : index
  %one = arith.constant 1 : index
  %e = tensor.empty() : tensor<6x45xf32>
  %r = linalg.generic {{indexing_maps = [#all], iterator_types = ["parallel", "parallel"]}}
      outs(%e : tensor<6x45xf32>) {{
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %m = arith.muli %j, %step : index
    %p = arith.addi %m, %first : index
    %a = tensor.extract %x[%i, %p] : tensor<6x{width}xf32>
    %b = tensor.extract %y[%i, %j, %one] : tensor<6x45x2xf32>
    %c = math.exp %a : f32
    %s = arith.subf %c, %b : f32
    linalg.yield %s : f32
  }} -> tensor<6x45xf32>
  return %r : tensor<6x45xf32>
}}"""
    chosen = np.random.default_rng(0)
    x = chosen.standard_normal((6, width), dtype=np.float32)
    y = chosen.standard_normal((6, 45, 2), dtype=np.float32)
    wanted = np.exp(x[:, first + step * np.arange(45)]) - y[:, :, 1]
    np.testing.assert_allclose(
        irees.compile(text, target=target)(x, y), wanted, rtol=1e-5, atol=1e-5
    )
