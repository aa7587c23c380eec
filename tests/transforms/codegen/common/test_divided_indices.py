"""Tiles of rows that an index divides: a view of a tile begins where a block does."""

from __future__ import annotations

import numpy as np
import pytest

import irees

TARGETS = ["cpu", "cuda-emulated"]


def unpack(rows: int, columns: int, inner: tuple[int, int]) -> str:
    """linalg.unpack of rows that are no whole number of blocks."""
    outer = [-(-n // t) for n, t in zip((rows, columns), inner, strict=True)]
    source = f"tensor<{outer[0]}x{outer[1]}x{inner[0]}x{inner[1]}xi32>"
    return f"""
func.func @main(%x: {source}) -> tensor<{rows}x{columns}xi32> {{
  %e = tensor.empty() : tensor<{rows}x{columns}xi32>
  %r = linalg.unpack %x inner_dims_pos = [0, 1] inner_tiles = [{inner[0]}, {inner[1]}] into %e
      : {source} -> tensor<{rows}x{columns}xi32>
  return %r : tensor<{rows}x{columns}xi32>
}}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("rows", "columns", "inner"),
    [(100, 250, (32, 16)), (1000, 7, (32, 4)), (513, 129, (24, 10)), (4099, 3, (64, 2))],
)
def test_unpack(rows, columns, inner, target):
    outer = [-(-n // t) for n, t in zip((rows, columns), inner, strict=True)]
    x = np.arange(np.prod([*outer, *inner]), dtype=np.int32).reshape(*outer, *inner)
    whole = x.transpose(0, 2, 1, 3).reshape(outer[0] * inner[0], outer[1] * inner[1])
    found = irees.compile(unpack(rows, columns, inner), target=target)(x)
    np.testing.assert_array_equal(found, whole[:rows, :columns])


MAPS = ["(i floordiv 7)", "(i mod 13)", "((i floordiv 4) mod 9)", "((i * 3 + 1) floordiv 5)"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("index", MAPS)
def test_any_division(index, target):
    count, extent = 10007, 6007
    text = f"""
func.func @main(%x: tensor<{extent}xi32>) -> tensor<{count}xi32> {{
  %e = tensor.empty() : tensor<{count}xi32>
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> ({index})>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%x : tensor<{extent}xi32>)
      outs(%e : tensor<{count}xi32>) {{
  ^bb0(%a: i32, %o: i32):
    linalg.yield %a : i32
  }} -> tensor<{count}xi32>
  return %r : tensor<{count}xi32>
}}"""
    x = np.arange(extent, dtype=np.int32)
    at = eval(index.replace("floordiv", "//").replace("mod", "%"), {"i": np.arange(count)})
    np.testing.assert_array_equal(irees.compile(text, target=target)(x), x[at])
