"""What no pass takes is refused with its place and the way out, never erased."""

from __future__ import annotations

import pytest

import irees
from irees.errors import UnsupportedError

PROGRAMS = {
    "vector": (
        2,
        """func.func @f(%a: memref<4xf32>, %i: index) -> vector<4xf32> {
  %x = vector.load %a[%i] : memref<4xf32>, vector<4xf32>
  return %x : vector<4xf32>
}""",
        "a value that a kernel computes is used outside of it",
    ),
    "cast": (
        2,
        """func.func @f(%a: memref<4xf32>) -> f32 {
  %v = memref.reinterpret_cast %a to offset: [0], sizes: [4], strides: [1]
      : memref<4xf32> to memref<4xf32>
  %i = arith.constant 0 : index
  %x = memref.load %v[%i] : memref<4xf32>
  return %x : f32
}""",
        "memref.reinterpret_cast on a memref is not supported",
    ),
    "strided": (
        1,
        "func.func @f(%a: memref<4xf32, strided<[2]>>) { return }",
        "argument 0 is a memref<4xf32, strided<[2]>>, but must be contiguous",
    ),
    "while": (
        4,
        """func.func @f(%a: memref<4xi1>) {
  %c0 = arith.constant 0 : index
  %i1 = arith.constant false
  %r = scf.while (%i = %c0) : (index) -> index {
    %x = memref.load %a[%i] : memref<4xi1>
    scf.condition(%x) %i : index
  } do {
  ^bb0(%i: index):
    linalg.fill ins(%i1 : i1) outs(%a : memref<4xi1>)
    scf.yield %i : index
  }
  return
}""",
        "scf.while on a memref is not supported",
    ),
    "chosen": (
        2,
        """func.func @f(%a: memref<4xf32>, %b: memref<4xf32>, %p: i1) -> memref<4xf32> {
  %s = arith.select %p, %a, %b : memref<4xf32>
  return %s : memref<4xf32>
}""",
        "arith.select on a memref is not supported",
    ),
}


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
@pytest.mark.parametrize("kind", PROGRAMS)
def test_what_has_no_form_on_tensors_is_refused(kind, target):
    line, program, message = PROGRAMS[kind]
    with pytest.raises(UnsupportedError) as error:
        irees.compile(program, target=target)
    text = str(error.value)
    assert text.startswith(f"<text>:{line}:")
    assert message in text
    assert text.partition("; ")[2]


BODY = """func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%e : tensor<4xf32>) {
  ^bb0(%x: f32):
    %s = linalg.exp ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %i = linalg.index 0 : index
    %v = tensor.extract %s[%i] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""
TILE = """func.func @f(%o: tensor<?xf32>) -> tensor<?xf32> {
  %r = iree_linalg_ext.custom_op {indexing_maps = [affine_map<(d0) -> (d0)>],
      iterator_types = [#iree_linalg_ext.iterator_type<parallel>]} outs(%o : tensor<?xf32>) {
  ^bb0(%a: tensor<?xf32>):
    %i = iree_linalg_ext.index 0 : index
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    %0 = linalg.fill ins(%f : f32) outs(%a : tensor<?xf32>) -> tensor<?xf32>
    iree_linalg_ext.yield %0 : tensor<?xf32>
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}"""
UNSUPPORTED = {
    "a sign": (
        "func.func @f(%a: tensor<4xsi32>) -> tensor<4xsi32> {\n return %a : tensor<4xsi32>\n}",
        "2:2: .*integer types with signedness are not supported: .*tensor<4xsi32>; use a type",
    ),
    "a tensor of vectors": (
        "func.func @f(%a: tensor<4xvector<4xf32>>) {\n return\n}",
        "tensors of vector<4xf32> are not supported",
    ),
    "a buffer of vectors": (
        "func.func @f(%a: memref<4xvector<4xf32>>) {\n return\n}",
        "1:1: .*buffers of vector<4xf32> are not supported",
    ),
    "a module beside a function": (
        "module {\n func.func @f() {\n return\n}\n}\nfunc.func @g() {\n return\n}",
        "1:1: .*a module nested in another op is not supported; move its functions",
    ),
    "a module in a function": (
        "func.func @g() {\n module {\n}\n return\n}", "2:2: .*a module nested in another op",
    ),
    "tensors in the body of an op": (
        BODY, "6:5: .*linalg.exp: the body of linalg.generic computes one element",
    ),
    "the index of a tile": (TILE, "5:5: .*the tile index of iree_linalg_ext.custom_op"),
}  # fmt: skip


UNSUPPORTED["numbers that no machine has"] = (
    "func.func @f(%a: tensor<4xf128>) {\n return\n}",
    "numbers of type f128 are not supported",
)
UNSUPPORTED["complex numbers of integers"] = (
    "func.func @f(%a: tensor<2xcomplex<i8>>) -> tensor<2xcomplex<i8>> {\n"
    " return %a : tensor<2xcomplex<i8>>\n}",
    "numbers of type complex<i8> are not supported; use complex<f32>",
)
UNSUPPORTED["complex numbers of narrow floats"] = (
    "func.func @f(%a: complex<f8E5M2>) -> complex<f8E5M2> {\n"
    " %0 = complex.neg %a : complex<f8E5M2>\n return %0 : complex<f8E5M2>\n}",
    "1:1: .*numbers of type complex<f8E5M2> are not supported",
)


@pytest.mark.parametrize("kind", UNSUPPORTED)
def test_what_no_pass_takes_is_refused(kind):
    text, message = UNSUPPORTED[kind]
    with pytest.raises(UnsupportedError, match=message):
        irees.compile(text)
