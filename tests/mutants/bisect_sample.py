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

LOOP = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  cf.br ^head(%c0, %x : i32, tensor<4xf32>)
^head(%i: i32, %v: tensor<4xf32>):
  %t = arith.addf %v, %x : tensor<4xf32>
  %p = arith.cmpi slt, %i, %c3 : i32
  cf.cond_br %p, ^body, ^exit
^body:
  %j = arith.addi %i, %c1 : i32
  cf.br ^head(%j, %t : i32, tensor<4xf32>)
^exit:
  return %t : tensor<4xf32>
}
"""
"""A loop of basic blocks, whose last value is used after it."""
REVERSED = """
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = arith.constant dense_resource<w> : tensor<4x3xf32>
  %last = arith.constant 3 : index
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} outs(%e : tensor<3x4xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.subi %last, %j : index
    %v = tensor.extract %w[%k, %i] : tensor<4x3xf32>
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  %s = arith.mulf %r, %x : tensor<3x4xf32>
  return %s : tensor<3x4xf32>
}
{-#
  dialect_resources: { builtin: { w: "0x04000000\
0000803f0000004000004040000080400000a0400000c0400000e04000000041\
00001041000020410000304100004041" } }
#-}
"""
"""Weights that are transposed and reversed."""
SIBLINGS = """
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#one = affine_map<(i) -> (i)>
func.func @main(%x: tensor<4x8xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  %n = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%s : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%n : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  return %m : tensor<4xf32>
}
"""
"""Two reductions of one tensor, the second of which reads the first."""
STACKED = """
func.func @main(%a: tensor<5x1xf32>, %b: tensor<5x1xf32>) -> tensor<5x2xf32> {
  %c = tensor.concat dim(1) %a, %b : (tensor<5x1xf32>, tensor<5x1xf32>) -> tensor<5x2xf32>
  return %c : tensor<5x2xf32>
}
"""
"""Columns that are stacked."""
TIED = """
func.func @main(%a: tensor<16x8xf32>, %b: tensor<8x8xf32>, %u: tensor<1x8xf32>)
    -> (tensor<16x8xf32>, tensor<128xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16x8xf32>) -> tensor<16x8xf32>
  %x = linalg.matmul ins(%a, %b : tensor<16x8xf32>, tensor<8x8xf32>)
      outs(%z : tensor<16x8xf32>) -> tensor<16x8xf32>
  %v = tensor.collapse_shape %x [[0, 1]] : tensor<16x8xf32> into tensor<128xf32>
  %y = tensor.insert_slice %u into %x[5, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<16x8xf32>
  return %y, %v : tensor<16x8xf32>, tensor<128xf32>
}
"""
"""A matrix of which one row is replaced, and whose old value is returned as a vector."""
EXCHANGED = """
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>)
    -> (tensor<8xf32> {irees.updates = 1 : index}, tensor<8xf32> {irees.updates = 0 : index}) {
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}
"""
"""Two arguments that are exchanged."""
CHAIN = """
func.func @main(%x: tensor<20x20xf32>, %y: tensor<20x20xf32>) -> tensor<20x20xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x20xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<20x20xf32>) -> tensor<20x20xf32>
  %a = linalg.matmul ins(%x, %y : tensor<20x20xf32>, tensor<20x20xf32>)
      outs(%z : tensor<20x20xf32>) -> tensor<20x20xf32>
  %b = linalg.matmul ins(%y, %x : tensor<20x20xf32>, tensor<20x20xf32>)
      outs(%z : tensor<20x20xf32>) -> tensor<20x20xf32>
  %c = linalg.matmul ins(%a, %b : tensor<20x20xf32>, tensor<20x20xf32>)
      outs(%z : tensor<20x20xf32>) -> tensor<20x20xf32>
  %d = linalg.matmul ins(%c, %a : tensor<20x20xf32>, tensor<20x20xf32>)
      outs(%z : tensor<20x20xf32>) -> tensor<20x20xf32>
  return %d : tensor<20x20xf32>
}
"""
"""Temporaries that live at the same time."""
SORTED = """
func.func @main(%x: tensor<9xf32>) -> tensor<9xf32> {
  %c = arith.constant dense<[9.0, 0.0, 5.0, 7.0, 2.0, 8.0, 1.0, 6.0, 3.0]> : tensor<9xf32>
  %y = arith.addf %x, %c : tensor<9xf32>
  %s = iree_linalg_ext.sort dimension(0) outs(%y : tensor<9xf32>) {
  ^bb0(%a: f32, %b: f32):
    %l = arith.cmpf ole, %a, %b : f32
    iree_linalg_ext.yield %l : i1
  } -> tensor<9xf32>
  return %s : tensor<9xf32>
}
"""
"""A sort of no power of two of elements."""
SMALL_PRODUCT = """
func.func @main(%a: tensor<32x131xbf16>, %b: tensor<131x32xbf16>) -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %p = linalg.matmul ins(%a, %b : tensor<32x131xbf16>, tensor<131x32xbf16>)
      outs(%z : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %p : tensor<32x32xf32>
}
"""
"""A product whose reduction no step divides."""
REMAINDER = elementwise(
    "%c = arith.constant 0x7F800000 : f32\n    %q = arith.remf %v, %c : f32", "f32", "f32", 8
)
"""A remainder by infinity."""
WINDOWS = """
#x = affine_map<(b, i, j, u, v) -> (b, i + u, j + v)>
#k = affine_map<(b, i, j, u, v) -> (u, v)>
#r = affine_map<(b, i, j, u, v) -> (b, i, j)>
func.func @main(%x: tensor<2x9x10xf32>, %o: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %k = tensor.empty() : tensor<5x3xf32>
  %r = linalg.generic {indexing_maps = [#x, #k, #r],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %k : tensor<2x9x10xf32>, tensor<5x3xf32>) outs(%o : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %n = arith.negf %a : f32
    %m = arith.maximumf %c, %n : f32
    linalg.yield %m : f32
  } -> tensor<2x5x8xf32>
  return %r : tensor<2x5x8xf32>
}
"""
"""The maxima of windows of two axes."""

MIXED_SIGNS = """
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @main(%a: tensor<24x64xi8>, %b: tensor<64x32xi8>) -> tensor<24x32xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<24x32xi32>
  %z = linalg.fill ins(%zero : i32) outs(%e : tensor<24x32xi32>) -> tensor<24x32xi32>
  %r = linalg.generic {indexing_maps = [#a, #b, #c],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<24x64xi8>, tensor<64x32xi8>) outs(%z : tensor<24x32xi32>) {
  ^bb0(%x: i8, %y: i8, %o: i32):
    %p = arith.extsi %x : i8 to i32
    %q = arith.extui %y : i8 to i32
    %m = arith.muli %p, %q : i32
    %s = arith.addi %m, %o : i32
    linalg.yield %s : i32
  } -> tensor<24x32xi32>
  return %r : tensor<24x32xi32>
}
"""
"""A product of signed numbers by unsigned ones."""
SHARED_ROW = PRODUCT.replace("x16xf32", "x64xf32").replace("<16xf32", "<64xf32")
"""A product with a bias of several vectors."""

PROGRAMS = {
    "S8c": MIXED_SIGNS,
    "S7f": SHARED_ROW,
    "A309": ROWS,
    "A193": COMPLEX,
    "S2d": SOFTMAX,
    "A233": COLUMNS,
    "S7ac": ROWS,
    "S30c": NARROW,
    "S12c": UPPER,
    "A01": MANY,
    "S7l": PRODUCT,
    "S12a": LOOP,
    "A288": REVERSED,
    "S11f": SIBLINGS,
    "A284": STACKED,
    "S13a": TIED,
    "S13c": EXCHANGED,
    "A10": CHAIN,
    "A12": SORTED,
    "A256": REMAINDER,
    "S9d": SMALL_PRODUCT,
    "A279": WINDOWS,
}
"""Name of a mutant => its program."""
