"""Configs of a program are ignored with a remark: they cannot make wrong code."""

from __future__ import annotations

import numpy as np
import pytest

import irees

CONFIGS = [
    "#iree_codegen.lowering_config<{workgroup = [3]}>",
    "#iree_codegen.lowering_config<{workgroup = [-1, 0, 7], group = 9}>",
    "#iree_cpu.lowering_config<distribution = [3, 5], vector_common_parallel = [1, [8]]>",
]


@pytest.mark.parametrize("config", CONFIGS)
def test_a_config_is_ignored_with_a_remark(config):
    text = f"""
func.func @main(%x: tensor<37x5xf32>) -> tensor<37x5xf32> {{
  %e = tensor.empty() : tensor<37x5xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"],
      lowering_config = {config}}} ins(%x : tensor<37x5xf32>) outs(%e : tensor<37x5xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  }} -> tensor<37x5xf32>
  return %r : tensor<37x5xf32>
}}"""
    x = np.arange(37 * 5, dtype=np.float32).reshape(37, 5)
    program = irees.compile(text)
    np.testing.assert_array_equal(program(x), 2 * x)
    assert any(
        "it configures IREE's code generation" in said for said in program.manifest["remarks"]
    )
