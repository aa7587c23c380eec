"""What a program asserts is asserted, also about elements and results that nothing reads."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.errors import RuntimeTrap

MATRIX = "tensor<4x8xf32>"
CHECKED = f"""  %e = tensor.empty() : {MATRIX}
  %r = linalg.generic {{
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  }} ins(%x : {MATRIX}) outs(%e : {MATRIX}) {{
  ^bb0(%a: f32, %o: f32):
    %c = arith.cmpf oge, %a, %zero : f32
    cf.assert %c, "negative"
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }} -> {MATRIX}
"""
COLUMN = f"""  %f = tensor.empty() : tensor<4xf32>
  %q = linalg.generic {{
    indexing_maps = [affine_map<(i) -> (i, 0)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  }} ins(%r : {MATRIX}) outs(%f : tensor<4xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %n = math.absf %a : f32
    linalg.yield %n : f32
  }} -> tensor<4xf32>
"""
GATHER = f"""  %e = tensor.empty() : {MATRIX}
  %r = linalg.generic {{
    indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]
  }} outs(%e : {MATRIX}) {{
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %a = tensor.extract %x[%i, %j] : {MATRIX}
    %c = arith.cmpf oge, %a, %zero : f32
    cf.assert %c, "negative"
    linalg.yield %a : f32
  }} -> {MATRIX}
"""
LOOP = """  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %v = vector.load %x[%i, %c0] : memref<4x8xf32>, vector<8xf32>
    %a = vector.extract %v[7] : f32 from vector<8xf32>
    %c = arith.cmpf oge, %a, %zero : f32
    cf.assert %c, "negative"
  }
"""


def program(body: str, result: str, kind: str) -> str:
    """A function of `%x` that returns a value."""
    return f"""func.func @main(%x: {MATRIX}) -> {kind} {{
  %zero = arith.constant 0.0 : f32
{body}  return {result} : {kind}
}}"""


PROGRAMS = {
    "unread result": program(CHECKED, "%x", MATRIX),
    "rows": program(
        CHECKED
        + f"  %q = tensor.extract_slice %r[0, 0] [2, 8] [1, 1] : {MATRIX} to tensor<2x8xf32>\n",
        "%q",
        "tensor<2x8xf32>",
    ),
    "column": program(CHECKED + COLUMN, "%q", "tensor<4xf32>"),
    "gather in order": program(GATHER, "%r", MATRIX),
    "loop": "func.func @main(%x: memref<4x8xf32>) {\n  %zero = arith.constant 0.0 : f32\n"
    + LOOP
    + "  return\n}",
}


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_elements_are_checked(name, target):
    compiled = irees.compile(PROGRAMS[name], target=target)
    x = np.ones((4, 8), np.float32)
    compiled(x)
    x[3, 7] = -1
    with pytest.raises(RuntimeTrap, match="negative"):
        compiled(x)


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_loops_that_write_nothing_are_nothing(target):
    text = PROGRAMS["loop"].replace('    cf.assert %c, "negative"\n', "")
    irees.compile(text, target=target)(np.ones((4, 8), np.float32))
