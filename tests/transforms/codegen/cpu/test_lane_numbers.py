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
