"""What the host stores in place is seen by nothing that reads the tensor as it was."""

from __future__ import annotations

import numpy as np
import pytest

from irees.frontends.mlir import import_mlir
from irees.testing.oracles import Case, interpret, phases_agree

CONSTANTS = "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index"

FROM_OUTSIDE = """
func.func @main(%x: tensor<4xi32>, %y: tensor<4xi32>, %n: index) -> tensor<4xi32> {
  CONSTANTS
  %s = arith.addi %x, %y : tensor<4xi32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<4xi32>) {
    %e = tensor.extract %a[%i] : tensor<4xi32>
    %t = tensor.insert %e into %s[%i] : tensor<4xi32>
    %z = arith.addi %t, %a : tensor<4xi32>
    scf.yield %z : tensor<4xi32>
  }
  return %r : tensor<4xi32>
}
"""
"""Each turn inserts into the tensor as it was before the loop."""

IN_A_BRANCH = FROM_OUTSIDE.replace(
    "%t = tensor.insert %e into %s[%i] : tensor<4xi32>",
    """%p = arith.cmpi slt, %i, %n : index
    %t = scf.if %p -> (tensor<4xi32>) {
      %u = tensor.insert %e into %s[%i] : tensor<4xi32>
      scf.yield %u : tensor<4xi32>
    } else {
      scf.yield %a : tensor<4xi32>
    }""",
)

TWICE = """
func.func @main(%x: tensor<4xi32>, %y: tensor<4xi32>, %n: index)
    -> (tensor<4xi32>, tensor<4xi32>) {
  CONSTANTS
  %r:3 = scf.while (%a = %x, %i = %c0)
      : (tensor<4xi32>, index) -> (tensor<4xi32>, tensor<4xi32>, index) {
    %c = arith.cmpi slt, %i, %n : index
    scf.condition(%c) %a, %a, %i : tensor<4xi32>, tensor<4xi32>, index
  } do {
  ^bb0(%a: tensor<4xi32>, %b: tensor<4xi32>, %i: index):
    %j = arith.addi %i, %c1 : index
    %e = tensor.extract %y[%i] : tensor<4xi32>
    %t = tensor.insert %e into %a[%i] : tensor<4xi32>
    %z = arith.addi %t, %b : tensor<4xi32>
    scf.yield %z, %j : tensor<4xi32>, index
  }
  %e = tensor.extract %y[%c0] : tensor<4xi32>
  %t = tensor.insert %e into %r#0[%c0] : tensor<4xi32>
  return %t, %r#1 : tensor<4xi32>, tensor<4xi32>
}
"""
"""A loop passes one tensor on as two; its body and what comes after it update the first."""


@pytest.mark.parametrize("text", [FROM_OUTSIDE, IN_A_BRANCH, TWICE])
@pytest.mark.parametrize("turns", [0, 1, 3])
def test_an_element_is_stored_in_place_only_once(text, turns):
    module = import_mlir(text.replace("CONSTANTS", CONSTANTS))
    x, y = np.arange(4, dtype=np.int32), np.full(4, 100, np.int32)
    case = Case("main", (x, y, np.int64(turns)))
    assert phases_agree(module, [case], interpret(module, [case])) == []
