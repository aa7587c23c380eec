"""
Mutants that `bisect_rate.py --sample` bisects and whose programs it reduces: each with a small
program whose answer it changes.
"""

from __future__ import annotations

PRODUCT = """
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
func.func @main(%a: tensor<24x1100xf32>, %b: tensor<1100x16xf32>, %bias: tensor<16xf32>)
    -> tensor<24x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<24x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<24x16xf32>) -> tensor<24x16xf32>
  %p = linalg.matmul ins(%a, %b : tensor<24x1100xf32>, tensor<1100x16xf32>)
      outs(%z : tensor<24x16xf32>) -> tensor<24x16xf32>
  %r = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p, %bias : tensor<24x16xf32>, tensor<16xf32>) outs(%e : tensor<24x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %m = arith.maximumf %s, %zero : f32
    linalg.yield %m : f32
  } -> tensor<24x16xf32>
  return %r : tensor<24x16xf32>
}
"""
"""A sum of several slices of K, with a bias and a ReLU."""
ROWS = """
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<3x133xf32>) -> (tensor<3x133xf32>, tensor<3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x133xf32>
  %r = linalg.exp ins(%x : tensor<3x133xf32>) outs(%e : tensor<3x133xf32>) -> tensor<3x133xf32>
  %f = tensor.empty() : tensor<3xf32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<3xf32>) -> tensor<3xf32>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%r : tensor<3x133xf32>) outs(%z : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<3xf32>
  return %r, %s : tensor<3x133xf32>, tensor<3xf32>
}
"""
"""Rows of several vectors of any width, and no multiple of one."""
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

COLUMNS = """
#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<77x64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %f = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<77x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<64xf32>
  return %s : tensor<64xf32>
}
"""
"""A reduction of columns, with rows behind the last panel."""
SOFTMAX = """
func.func @main(%x: tensor<3x37xf32>) -> tensor<3x37xf32> {
  %c = arith.constant dense<200.0> : tensor<3x37xf32>
  %y = arith.addf %x, %c : tensor<3x37xf32>
  %e = tensor.empty() : tensor<3x37xf32>
  %r = linalg.softmax dimension(1) ins(%y : tensor<3x37xf32>) outs(%e : tensor<3x37xf32>)
      -> tensor<3x37xf32>
  return %r : tensor<3x37xf32>
}
"""
"""Numbers whose exponentials are infinite."""


def elementwise(body: str, given: str, result: str, size: int) -> str:
    """Returns a program that maps elements `%v` to `%q`."""
    x, r = f"tensor<{size}x{given}>", f"tensor<{size}x{result}>"
    return f"""
func.func @main(%x: {x}) -> {r} {{
  %e = tensor.empty() : {r}
  %r = linalg.map ins(%x : {x}) outs(%e : {r}) (%v: {given}, %o: {result}) {{
    {body}
    linalg.yield %q : {result}
  }}
  return %r : {r}
}}"""


MANY = elementwise("%q = math.exp %v : f32", "f32", "f32", 70001)
"""Several workgroups, the last of another size."""
NARROW = elementwise(
    "%c = arith.constant -3 : i4\n    %s = arith.addi %v, %c : i4\n"
    "    %q = arith.uitofp %s : i4 to f32",
    "i4", "f32", 8,
)  # fmt: skip
"""Integers that are stored in wider ones."""
UPPER = elementwise(
    "%c = arith.constant -3 : i64\n    %l = arith.constant 5 : i64\n"
    "    %s = arith.subi %v, %l : i64\n    %p, %q = arith.mulsi_extended %s, %c : i64",
    "i64", "i64", 8,
)  # fmt: skip
"""The upper half of a product of negative numbers."""

PROGRAMS = {
    "A05": ROWS,
    "A193": COMPLEX,
    "S2d": SOFTMAX,
    "A233": COLUMNS,
    "S7ac": ROWS,
    "S30c": NARROW,
    "S12c": UPPER,
    "A01": MANY,
    "S7l": PRODUCT,
}
"""Name of a mutant => its program."""
