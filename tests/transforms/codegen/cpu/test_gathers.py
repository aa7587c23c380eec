"""Programs that read a table at places that depend on data: interpreter, every phase and C agree."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.errors import RuntimeTrap
from irees.frontends.mlir import import_mlir
from irees.testing.oracles import Case, compiled_results, differences, interpret, phases_agree
from irees.testing.tolerances import ulps


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("index", ["i32", "i64"])
@pytest.mark.parametrize("size", [1, 15, 16, 33, 100])
def test_table(size, index, dynamic):
    n, t = ("?", "?") if dynamic else (size, 7)
    text = f"""
func.func @main(%t: tensor<{t}xf32>, %i: tensor<{n}x{index}>, %o: tensor<{n}xf32>)
    -> tensor<{n}xf32> {{
  %r = linalg.generic {{
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]
  }} ins(%i : tensor<{n}x{index}>) outs(%o : tensor<{n}xf32>) {{
  ^bb0(%p: {index}, %q: f32):
    %j = arith.index_cast %p : {index} to index
    %v = tensor.extract %t[%j] : tensor<{t}xf32>
    %e = math.exp %v : f32
    linalg.yield %e : f32
  }} -> tensor<{n}xf32>
  return %r : tensor<{n}xf32>
}}
"""
    generator = np.random.default_rng(size)
    table = generator.normal(size=7).astype(np.float32)
    # Places outside of the table are moved inside.
    places = generator.integers(-3, 12, size).astype(f"i{int(index[1:]) // 8}")
    module = import_mlir(text)
    cases = [Case("main", (table, places, np.zeros(size, np.float32)), (ulps(4),))]
    expected = interpret(module, cases)
    np.testing.assert_allclose(expected["main"][0], np.exp(table[np.clip(places, 0, 6)]), rtol=1e-6)
    assert phases_agree(module.clone(), cases, expected) == []
    assert differences(compiled_results(module, cases), expected, cases) == []


def columns(rows: object, extent: object) -> str:
    """out[i, j] = x[i, p[j]], with an assert that each place is in bounds."""
    return f"""
func.func @main(%x: tensor<{rows}x{extent}xf32>, %p: tensor<9xi64>, %o: tensor<{rows}x9xf32>)
    -> tensor<{rows}x9xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<{rows}x{extent}xf32>
  %r = linalg.generic {{
    indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  }} ins(%p : tensor<9xi64>) outs(%o : tensor<{rows}x9xf32>) {{
  ^bb0(%k: i64, %q: f32):
    %at = arith.index_cast %k : i64 to index
    %low = arith.cmpi sge, %at, %c0 : index
    %high = arith.cmpi slt, %at, %n : index
    %inside = arith.andi %low, %high : i1
    cf.assert %inside, "a place is out of bounds"
    %i = linalg.index 0 : index
    %v = tensor.extract %x[%i, %at] : tensor<{rows}x{extent}xf32>
    linalg.yield %v : f32
  }} -> tensor<{rows}x9xf32>
  return %r : tensor<{rows}x9xf32>
}}
"""


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 7, 8])
def test_rows_that_share_places(rows, dynamic):
    text = columns(*("?", "?") if dynamic else (rows, 7))
    generator = np.random.default_rng(rows)
    table = generator.normal(size=(rows, 7)).astype(np.float32)
    places = generator.integers(0, 7, 9)
    module = import_mlir(text)
    cases = [Case("main", (table, places, np.zeros((rows, 9), np.float32)), (ulps(0),))]
    expected = interpret(module, cases)
    np.testing.assert_array_equal(expected["main"][0], table[:, places])
    assert phases_agree(module.clone(), cases, expected) == []
    assert differences(compiled_results(module, cases), expected, cases) == []


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("place", [-1, 7, 1 << 40])
@pytest.mark.parametrize("rows", [1, 4, 5])
def test_a_shared_place_out_of_bounds_is_an_error(rows, place, dynamic):
    program = irees.compile(columns(*("?", "?") if dynamic else (rows, 7)))
    places = np.arange(9) % 7
    places[8] = place
    out = np.zeros((rows, 9), np.float32)
    with pytest.raises(RuntimeTrap, match="a place is out of bounds"):
        program(np.ones((rows, 7), np.float32), places, out)


def test_a_checked_place_is_not_clamped():
    """The condition of the assert selects the place: comparing it again costs two operations."""
    text = "\n".join(map(str, irees.compile(columns(8, 7)).sources.values()))
    kernel = text[text.index("irees_k0_w0") :]
    assert "< 6 ?" not in kernel
    assert kernel.count("*d->trap = ") == 1


@pytest.mark.parametrize("shape", [(8, 3), (4, 1), (1, 4), (5, 2)])
def test_each_jammed_row_has_its_own_index(shape):
    """Values of outer loops are computed before the inner ones, but not those of a jammed row."""
    m, n = shape
    text = f"""
func.func @main(%x: tensor<{m}x{n}x7xf32>, %p: tensor<{n}x9xi64>, %o: tensor<{m}x{n}x9xf32>)
    -> tensor<{m}x{n}x9xf32> {{
  %r = linalg.generic {{
    indexing_maps = [affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
    iterator_types = ["parallel", "parallel", "parallel"]
  }} ins(%p : tensor<{n}x9xi64>) outs(%o : tensor<{m}x{n}x9xf32>) {{
  ^bb0(%k: i64, %q: f32):
    %at = arith.index_cast %k : i64 to index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%i, %j, %at] : tensor<{m}x{n}x7xf32>
    %w = arith.index_cast %i : index to i32
    %f = arith.sitofp %w : i32 to f32
    %s = arith.addf %v, %f : f32
    linalg.yield %s : f32
  }} -> tensor<{m}x{n}x9xf32>
  return %r : tensor<{m}x{n}x9xf32>
}}
"""
    generator = np.random.default_rng(m)
    table = generator.normal(size=(m, n, 7)).astype(np.float32)
    places = generator.integers(-2, 9, (n, 9))
    module = import_mlir(text)
    cases = [Case("main", (table, places, np.zeros((m, n, 9), np.float32)), (ulps(0),))]
    expected = interpret(module, cases)
    assert differences(compiled_results(module, cases), expected, cases) == []
