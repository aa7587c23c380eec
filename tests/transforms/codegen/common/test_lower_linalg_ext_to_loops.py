"""What lit cannot say of loops: that no access of theirs is outside, for any size."""

from __future__ import annotations

import numpy as np
import pytest

from irees.frontends.mlir import import_mlir
from irees.testing.oracles import Case, interpret, phases_agree

TOPK = """
func.func @main(%x: tensor<?x?xf32>, %v: tensor<?x?xf32>, %i: tensor<?x?xi64>) -> (tensor<?x?xf32>, tensor<?x?xi64>) {
  %s:2 = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%x : tensor<?x?xf32>) outs(%v, %i : tensor<?x?xf32>, tensor<?x?xi64>) {
  ^bb0(%a: f32, %b: f32):
    %more = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %more : i1
  } -> tensor<?x?xf32>, tensor<?x?xi64>
  return %s#0, %s#1 : tensor<?x?xf32>, tensor<?x?xi64>
}
"""


@pytest.mark.parametrize(("n", "k"), [(5, 0), (5, 1), (5, 5), (0, 0)])
def test_the_first_k_of_a_row(n, k):
    module = import_mlir(TOPK)
    x = np.random.default_rng(0).integers(-3, 4, (3, n)).astype(np.float32)
    cases = [Case("main", (x, np.zeros((3, k), np.float32), np.zeros((3, k), np.int64)))]
    assert phases_agree(module, cases, interpret(module, cases)) == []
