"""Mutants that `bisect_rate.py --sample` bisects, each with a program whose answer it changes."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
PRODUCT = """
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
func.func @main(%a: tensor<24x1100xf32>, %b: tensor<1100x37xf32>, %bias: tensor<37xf32>)
    -> tensor<24x37xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<24x37xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<24x37xf32>) -> tensor<24x37xf32>
  %p = linalg.matmul ins(%a, %b : tensor<24x1100xf32>, tensor<1100x37xf32>)
      outs(%z : tensor<24x37xf32>) -> tensor<24x37xf32>
  %r = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p, %bias : tensor<24x37xf32>, tensor<37xf32>) outs(%e : tensor<24x37xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %m = arith.maximumf %s, %zero : f32
    linalg.yield %m : f32
  } -> tensor<24x37xf32>
  return %r : tensor<24x37xf32>
}
"""
"""A sum of several slices of K, with a bias and a ReLU."""
ROWS = """
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<3x37xf32>) -> (tensor<3x37xf32>, tensor<3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x37xf32>
  %r = linalg.exp ins(%x : tensor<3x37xf32>) outs(%e : tensor<3x37xf32>) -> tensor<3x37xf32>
  %f = tensor.empty() : tensor<3xf32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<3xf32>) -> tensor<3xf32>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%r : tensor<3x37xf32>) outs(%z : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<3xf32>
  return %r, %s : tensor<3x37xf32>, tensor<3xf32>
}
"""
"""Rows that are no multiple of a vector."""
COMPLEX = """
func.func @main(%x: tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>> {
  %c = complex.constant [2.0 : f32, 3.0 : f32] : complex<f32>
  %e = tensor.empty() : tensor<8xcomplex<f32>>
  %r = linalg.map ins(%x : tensor<8xcomplex<f32>>) outs(%e : tensor<8xcomplex<f32>>)
    (%v: complex<f32>, %o: complex<f32>) {
      %p = complex.mul %v, %c : complex<f32>
      linalg.yield %p : complex<f32>
    }
  return %r : tensor<8xcomplex<f32>>
}
"""
"""A complex constant."""

PROGRAMS = {
    "S7l": PRODUCT,
    "A05": ROWS,
    "A193": COMPLEX,
    "S2b": (EXAMPLES / "resnet_tiny.mlir").read_text(),
}
"""Name of a mutant => its program."""
