"""Programs that read a table at places that depend on data: interpreter, every phase and C agree."""

from __future__ import annotations

import numpy as np
import pytest

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
