"""What MLIR refuses is refused where the fault is; its valid forms are not."""

from __future__ import annotations

import pytest

from irees.errors import IreesError
from irees.frontends.mlir import import_mlir

HERE = "// HERE"
"""Ends the line that the error names."""

INVALID: dict[str, tuple[str, str]] = {
    "arith: no bits": (
        "func.func @f(%a: i0) -> i0 {\n %r = arith.addi %a, %a : i0 // HERE\n return %r : i0 }",
        "integers must have a non-zero width",
    ),
    "arith: scalable dims": (
        "func.func @f(%a: vector<[4]xf32>) {\n"
        " %r = arith.extf %a : vector<[4]xf32> to vector<4xf64> // HERE\n return }",
        "same shape",
    ),
    "arith: the bits of an index": (
        "func.func @f(%a: i64) {\n %r = arith.bitcast %a : i64 to index // HERE\n return }",
        "the width of index is unknown",
    ),
    "arith: a sign": (
        "func.func @f() {\n %r = arith.constant dense<1> : tensor<2xui8> // HERE\n return }",
        "must be signless",
    ),
    "cf: arguments in another order": (
        "func.func @f(%a: i32, %x: f32) -> f32 {\n cf.br ^b(%a, %x : i32, f32) // HERE\n"
        "^b(%y: f32, %i: i32):\n return %y : f32 }",
        "type mismatch for bb argument #0 of successor #0",
    ),
    "cf: an argument too few": (
        "func.func @f(%c: i1, %x: f32) -> f32 {\n"
        " cf.cond_br %c, ^b(%x : f32), ^b // HERE\n"
        "^b(%y: f32):\n return %y : f32 }",
        "branch has 0 operands for successor #1, but target block has 1",
    ),
    "cf: a case of another type": (
        "func.func @f(%n: i32, %x: f32) -> f32 {\n"
        " cf.switch %n : i32, [ // HERE\n default: ^b(%x : f32),\n 7: ^b(%n : i32)\n ]\n"
        "^b(%y: f32):\n return %y : f32 }",
        "type mismatch for bb argument #0 of successor #1",
    ),
    "tensor: a shape of unknown length": (
        "func.func @f(%a: tensor<?xf32>, %s: tensor<?xi32>) {\n"
        " %r = tensor.reshape %a(%s) : (tensor<?xf32>, tensor<?xi32>) -> tensor<?x?xf32> // HERE\n"
        " return }",
        "cannot use shape operand with dynamic length",
    ),
    "linalg: a fill of another type": (
        "func.func @f(%v: i16, %o: tensor<2xi32>) {\n"
        " %r = linalg.fill ins(%v : i16) outs(%o : tensor<2xi32>) -> tensor<2xi32> // HERE\n"
        " return }",
        "expected fill value type",
    ),
    "linalg: what a body yields": (
        "func.func @f(%o: tensor<2xf32>) {\n"
        " %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>],"
        ' iterator_types = ["parallel"]} outs(%o : tensor<2xf32>) {\n ^bb0(%a: f32):\n'
        " %c = arith.constant 1 : i32\n linalg.yield %c : i32 // HERE\n } -> tensor<2xf32>\n"
        " return }",
        "type of yield operand 1",
    ),
    "linalg: a product indexed otherwise": (
        "func.func @f(%a: tensor<5x5xf32>) {\n"
        " %r = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (n, k)>, // HERE\n"
        " affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]"
        " ins(%a, %a : tensor<5x5xf32>, tensor<5x5xf32>) outs(%a : tensor<5x5xf32>)"
        " -> tensor<5x5xf32>\n return }",
        "unexpected dim expression",
    ),
    "linalg: a Winograd transform of another shape": (
        "func.func @f(%a: tensor<2x3x3x5xf32>, %o: tensor<6x5x5x2xf32>) {\n"
        " %r = linalg.winograd_filter_transform fmr(F_4_3) ins(%a : tensor<2x3x3x5xf32>) // HERE\n"
        " outs(%o : tensor<6x5x5x2xf32>) -> tensor<6x5x5x2xf32>\n return }",
        "output shape is not expected",
    ),
    "scf: an if that yields too little": (
        "func.func @f(%c: i1, %x: f32) {\n %a, %b = scf.if %c -> (f32, f32) { // HERE\n"
        " scf.yield %x : f32\n } else {\n scf.yield %x, %x : f32, f32\n }\n return }",
        "region branch point has 1 operands",
    ),
    "scf: a loop that does not advance": (
        "func.func @f(%n: index) {\n %s = arith.constant 0 : index\n"
        " scf.parallel (%i) = (%n) to (%n) step (%s) { // HERE\n }\n return }",
        "constant step operand must be positive",
    ),
    "affine: an induction variable as a symbol": (
        "func.func @f() {\n affine.for %i = 0 to 4 {\n"
        " %x = affine.apply affine_map<()[s] -> (s)>()[%i] // HERE\n }\n return }",
        "cannot be used as a symbol",
    ),
    "func: an attribute of no dialect": (
        "func.func @f() -> (f32 {mine = 1}) {  // HERE\n %c = arith.constant 1.0 : f32\n"
        " return %c : f32 }",
        "results may only have dialect attributes",
    ),
    "tensor: too few elements": (
        "func.func @f(%x: i32) {\n"
        ' %r = "tensor.from_elements"(%x) : (i32) -> tensor<2xi32> // HERE\n return }',
        "number of operands and types do not match",
    ),
    "memref: a view beyond the memory": (
        "func.func @f(%m: memref<9xf32>) {\n"
        " %r = memref.subview %m[3] [4] [2] : memref<9xf32> to"
        " memref<4xf32, strided<[2], offset: 3>> // HERE\n return }",
        "runs out-of-bounds: 9 >= 9",
    ),
    "memref: a view of another layout": (
        "func.func @f(%m: memref<7x22xf32>) {\n"
        " %r = memref.subview %m[0, 0] [7, 11] [1, 2] : memref<7x22xf32> to memref<7x11xf32>"
        " // HERE\n return }",
        "expected result type to have sizes",
    ),
    "memref: a global that there is not": (
        "func.func @f() {\n %r = memref.get_global @g : memref<3xf32> // HERE\n return }",
        "the global @g is not defined",
    ),
    "vector: memory read backwards": (
        "func.func @f(%m: memref<9x9xf32, strided<[-9, 1]>>, %i: index) {\n"
        " %r = vector.load %m[%i, %i] : memref<9x9xf32, strided<[-9, 1]>>, vector<4xf32> // HERE\n"
        " return }",
        "strides must be non-negative",
    ),
    "util: a global that there is not": (
        "func.func @f() {\n %r = util.global.load @g : tensor<4xf32> // HERE\n return }",
        "the global @g is not defined",
    ),
    "util: a global of another type": (
        "util.global private @g = dense<1.0> : tensor<2xf32>\nfunc.func @f() {\n"
        " %r = util.global.load @g : tensor<4096xf32> // HERE\n return }",
        "global @g is tensor<2xf32> but load is tensor<4096xf32>",
    ),
    "ml_program: a global of another type": (
        "ml_program.global private mutable @g(dense<1.0> : tensor<2xf32>) : tensor<2xf32>\n"
        "func.func @f() {\n %r = ml_program.global_load @g : tensor<4096xf32> // HERE\n return }",
        "global @g is tensor<2xf32> but load is tensor<4096xf32>",
    ),
    "iree_linalg_ext: an index of no loop": (
        "func.func @f() -> index {\n %r = iree_linalg_ext.index 0 : index // HERE\n"
        " return %r : index }",
        "expected parent op to be one of",
    ),
    "iree_linalg_ext: a mask of another type": (
        "func.func @f(%a: tensor<4xf32>, %o: tensor<4xf32>) {\n"
        " %r = iree_linalg_ext.map_store %a into %o {\n ^bb0(%i: index):\n"
        " %m = arith.constant 1 : i32\n iree_linalg_ext.yield %i, %m : index, i32 // HERE\n"
        " } : tensor<4xf32> into tensor<4xf32> -> tensor<4xf32>\n return }",
        "expected the region to yield 2 values",
    ),
    "encoding: no layouts": (
        "#e = #iree_encoding.layout<[]> // HERE\n"
        "func.func @f(%a: tensor<4xf32, #e>) {\n return }",
        "expected non-empty layouts",
    ),
    "a map with a constant beyond 64 bits": (
        "func.func @f(%a: index) -> index {\n"
        " %r = affine.apply affine_map<(d0) -> (d0 + 18446744073709551617)>(%a) // HERE\n"
        " return %r : index }",
        "integer constant out of range: 18446744073709551617",
    ),
    "a loop to a bound beyond 64 bits": (
        "func.func @f() {\n affine.for %i = 0 to 9223372036854775808 { // HERE\n }\n return }",
        "integer constant out of range: 9223372036854775808",
    ),
    "an index beyond 64 bits": (
        "func.func @f() {\n %r = arith.constant 9223372036854775808 : index // HERE\n return }",
        "integer constant out of range: 9223372036854775808",
    ),
    "a function without a body": (
        "func.func @f() {} // HERE", "expected non-empty function body",
    ),
    "a public declaration": (
        "func.func @f(f32) -> f32 // HERE", "declaration cannot have public visibility",
    ),
    "memref: a kind of update that does not exist": (
        "func.func @f(%x: i32, %b: memref<1xi32>, %i: index) {\n"
        ' %r = "memref.atomic_rmw"(%x, %b, %i) <{kind = -1 : i64}> // HERE\n'
        " : (i32, memref<1xi32>, index) -> i32\n return }",
        "kind -1 is not one of 0 to 15",
    ),
    "memref: a global of no memref": (
        "memref.global @f : i32 // HERE\n", "expected the type of a memref.global to be a memref",
    ),
    "linalg: a yield of an argument of another type": (
        "func.func @f(%a: tensor<f32>) {\n"
        " %r = linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []}"
        " outs(%a : tensor<f32>) {\n ^bb(%i: i1):\n linalg.yield %i : i1 // HERE\n"
        " } -> tensor<f32>\n return }",
        "type of yield operand 1 (i1) doesn't match",
    ),
    "linalg: a mapper with an argument of another type": (
        "func.func @f(%a: tensor<4xf32>) {\n"
        " %r = linalg.map ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) // HERE\n"
        " (%x: f64, %o: f32) {\n linalg.yield %x : f64\n }\n return }",
        "",
    ),
    "a buffer of vectors that is used wrongly": (
        "func.func @f(%m: memref<2xvector<4xf32>>, %i: index, %v: vector<8xf32>) {\n"
        " vector.store %v, %m[%i] : memref<2xvector<4xf32>>, vector<8xf32> // HERE\n return }",
        "should match",
    ),
    "a value that nobody defines": (
        "func.func @f() {\n %r = arith.addf %x, %x : f32 // HERE\n return }",
        "%x",
    ),
    "a token that is missing at the end of a line": (
        "func.func @f() {\n %r = arith.constant // HERE\n return }", "attribute expected",
    ),
    "an op that cannot be made": (
        "func.func @f(%a: tensor<1xf32>) {\n"
        " %r = tensor.concat dim(0) %a, %a : (tensor<1xf32>, tensor<1xf32>)"
        " -> tensor<2x1xf32> // HERE\n return }",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", INVALID)
def test_faults_are_refused_where_they_are(kind):
    text, message = INVALID[kind]
    line = next(n for n, each in enumerate(text.split("\n"), 1) if HERE in each)
    with pytest.raises(IreesError) as error:
        import_mlir(text, name="x")
    assert message in str(error.value)
    assert str(error.value).startswith(f"x:{line}:"), str(error.value)


VALID = {
    "a rank-reduced view": "func.func @f(%m: memref<8x16xf32>) {\n %r = memref.subview %m[2, 0]"
    " [1, 16] [1, 1] : memref<8x16xf32> to memref<16xf32, strided<[1], offset: 32>>\n return }",
    "a symbol of a nested loop": "func.func @f(%n: index) {\n affine.for %i = 0 to 4 {\n"
    " %m = arith.addi %n, %n : index\n affine.for %j = 0 to affine_map<()[s] -> (s)>()[%m] {\n"
    " }\n }\n return }",
    "a transposed product": "func.func @f(%a: tensor<5x5xf32>) {\n"
    " %r = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>,"
    " affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]"
    " ins(%a, %a : tensor<5x5xf32>, tensor<5x5xf32>) outs(%a : tensor<5x5xf32>)"
    " -> tensor<5x5xf32>\n return }",
    "blanks in a shape": "func.func @f(%m: memref<2 x ? x f32>, %t: tensor<8 x f32>) {\n return }",
    "dynamic tiles": "func.func @f(%a: tensor<?x?xf32>, %o: tensor<?x?x?x?xf32>, %t: index) {\n"
    " %r = linalg.pack %a inner_dims_pos = [0, 1] inner_tiles = [%t, %t] into %o :"
    " tensor<?x?xf32> -> tensor<?x?x?x?xf32>\n return }",
}


@pytest.mark.parametrize("kind", VALID)
def test_valid_forms_stay(kind):
    import_mlir(VALID[kind])
