"""What no pass takes is refused with its place and the way out, never erased."""

from __future__ import annotations

import pytest

import irees
from irees.errors import UnsupportedError

BUFFERS = "memref<4x4xf32>, memref<4x4xf32>"
PROGRAMS = {
    "named": f"""func.func @f(%a: memref<4x4xf32>, %b: memref<4x4xf32>, %c: memref<4x4xf32>) {{
  linalg.matmul ins(%a, %b : {BUFFERS}) outs(%c : memref<4x4xf32>)
  return
}}""",
    "generic": """func.func @f(%a: memref<4xf32>, %c: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%a : memref<4xf32>) outs(%c : memref<?xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}""",
    "extension": """func.func @f(%a: memref<4xi32>) {
  iree_linalg_ext.sort dimension(0) outs(%a : memref<4xi32>) {
  ^bb0(%x: i32, %y: i32):
    %c = arith.cmpi slt, %x, %y : i32
    iree_linalg_ext.yield %c : i1
  }
  return
}""",
    "access": """func.func @f(%a: memref<4xf32>, %i: index) -> f32 {
  %x = memref.load %a[%i] : memref<4xf32>
  return %x : f32
}""",
    "signature": "func.func @f(%a: memref<4xf32>) -> memref<4xf32> { return %a : memref<4xf32> }",
}
LINES = {"named": 2, "generic": 2, "extension": 2, "access": 2, "signature": 1}


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
@pytest.mark.parametrize("kind", PROGRAMS)
def test_programs_on_buffers_are_refused(kind, target):
    with pytest.raises(UnsupportedError) as error:
        irees.compile(PROGRAMS[kind], target=target)
    text = str(error.value)
    assert text.startswith(f"<text>:{LINES[kind]}:")
    assert "programs on buffers are not compiled: this op has a memref<" in text
    assert "write the op on tensors" in text


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
        "2:2: .*integers with a sign are not compiled: this op has a tensor<4xsi32>; use a type",
    ),
    "a tensor of vectors": (
        "func.func @f(%a: tensor<4xvector<4xf32>>) {\n return\n}",
        "tensors of vector<4xf32> are not compiled",
    ),
    "a module beside a function": (
        "module {\n func.func @f() {\n return\n}\n}\nfunc.func @g() {\n return\n}",
        "1:1: .*a module inside of another op is not compiled; move its functions",
    ),
    "a module in a function": (
        "func.func @g() {\n module {\n}\n return\n}", "2:2: .*a module inside of another op",
    ),
    "tensors in the body of an op": (
        BODY, "6:5: .*linalg.exp: the body of linalg.generic computes one element",
    ),
    "the index of a tile": (TILE, "5:5: .*the index of the tile of iree_linalg_ext.custom_op"),
}  # fmt: skip


UNSUPPORTED["numbers that no machine has"] = (
    "func.func @f(%a: tensor<4xf128>) {\n return\n}",
    "numbers of type f128 are not compiled",
)
UNSUPPORTED["complex numbers of integers"] = (
    "func.func @f(%a: tensor<2xcomplex<i8>>) -> tensor<2xcomplex<i8>> {\n"
    " return %a : tensor<2xcomplex<i8>>\n}",
    "no C type for complex<i8>; use complex<f32> or complex<f64>",
)


@pytest.mark.parametrize("kind", UNSUPPORTED)
def test_what_no_pass_takes_is_refused(kind):
    text, message = UNSUPPORTED[kind]
    with pytest.raises(UnsupportedError, match=message):
        irees.compile(text)
