"""Convolutions of images that have no dim of channels."""

from __future__ import annotations

import numpy as np

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.testing.oracles import Case, interpret
from irees.transforms import load_pass

GREY = """
#image = affine_map<(c, h, w, y, x) -> (h + y, w + x)>
#filter = affine_map<(c, h, w, y, x) -> (c, y, x)>
#out = affine_map<(c, h, w, y, x) -> (c, h, w)>
#all = affine_map<(c, h, w) -> (c, h, w)>
func.func @main(%x: tensor<9x8xf32>) -> tensor<16x7x6xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<2.0> : tensor<16x3x3xf32>
  %e = tensor.empty() : tensor<16x7x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x7x6xf32>) -> tensor<16x7x6xf32>
  %r = linalg.generic {indexing_maps = [#image, #filter, #out],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<9x8xf32>, tensor<16x3x3xf32>) outs(%f : tensor<16x7x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<16x7x6xf32>
  %m = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%r : tensor<16x7x6xf32>) outs(%e : tensor<16x7x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<16x7x6xf32>
  return %m : tensor<16x7x6xf32>
}
"""


def test_a_grey_image_stays_and_its_output_has_blocks_of_channels():
    case = Case("main", (np.arange(72, dtype=np.float32).reshape(9, 8),))
    module = import_mlir(GREY)
    load_pass("irees-generalize-linalg-named-ops")().apply(get_context(), module)
    before = interpret(module, [case])["main"]
    load_pass("irees-assign-target")(facts="vector_bytes=32").apply(get_context(), module)
    load_pass("irees-propagate-blocked-layouts")(copy_flops=0).apply(get_context(), module)
    module.verify()
    assert "tensor<2x7x6x8xf32>" in str(module)
    after = interpret(module, [case])["main"]
    assert np.array_equal(before[0], after[0])
