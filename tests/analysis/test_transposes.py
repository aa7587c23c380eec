"""Which elementwise ops read along one loop and write along another."""

from __future__ import annotations

import pytest
from xdsl.dialects.linalg import ops as linalg

from irees.analysis.transposes import crossing_loops
from irees.frontends.mlir import import_mlir

GENERIC = """
func.func @main(%x: tensor<{x}xf32>, %y: tensor<{y}xf32>) -> tensor<4x8xf32> {{
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> ({mx})>, affine_map<(i, j) -> ({my})>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x, %y : tensor<{x}xf32>, tensor<{y}xf32>) outs(%e : tensor<4x8xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf {a}, %b : f32
    linalg.yield %s : f32
  }} -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}}
"""


def crossing(x: str, mx: str, y: str, my: str, a: str = "%a") -> tuple[int, int] | None:
    module = import_mlir(GENERIC.format(x=x, mx=mx, y=y, my=my, a=a))
    (op,) = [o for o in module.walk() if isinstance(o, linalg.GenericOp)]
    return crossing_loops(op)


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        (("8x4", "j, i", "4x8", "i, j"), (0, 1)),
        (("8x4", "j, i", "8x4", "j, i"), (0, 1)),
        # One row for all columns does not move along the output: it is no reason to turn.
        (("4", "i", "4x8", "i, j"), None),
        (("4x8", "i, j", "4x8", "i, j"), None),
        (("8x4x1", "j, i, 0", "4x8", "i, j"), None),
        (("11x1", "j + i, 0", "4x8", "i, j"), None),
    ],
)
def test_crossing_loops(operands, expected):
    assert crossing(*operands) == expected


def test_what_the_body_does_not_read_does_not_count():
    assert crossing("8x4", "j, i", "4x8", "i, j", a="%b") is None
