// RUN: xdsl-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: expected no `ins` operands, or one per `outs` operand
func.func @sort(%v: tensor<4xf32>) {
  %0 = iree_linalg_ext.sort dimension(0) ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%v : tensor<4xf32>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf olt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4xf32>
  return
}

// -----

// CHECK: expected `positions` to be increasing numbers of `outs`
func.func @no_such_operand(%v: tensor<4xf32>, %i: tensor<4xi64>) {
  %0:2 = iree_linalg_ext.sort dimension(0) positions([2]) ins(%v : tensor<4xf32>) outs(%v, %i : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%l: f32, %m: f32, %p: i64, %q: i64):
    %c = arith.cmpf olt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4xf32>, tensor<4xi64>
  return
}

// -----

// CHECK: expected `positions` only with `ins`
func.func @in_place(%v: tensor<4xf32>, %i: tensor<4xi64>) {
  %0:2 = iree_linalg_ext.sort dimension(0) positions([1]) outs(%v, %i : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%l: f32, %m: f32, %p: i64, %q: i64):
    %c = arith.cmpf olt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4xf32>, tensor<4xi64>
  return
}

// -----

// CHECK: expected the `outs` in `positions` to have integer elements
func.func @float_positions(%v: tensor<4xf32>, %i: tensor<4xf32>) {
  %0:2 = iree_linalg_ext.sort dimension(0) positions([1]) ins(%v : tensor<4xf32>) outs(%v, %i : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%l: f32, %m: f32, %p: f32, %q: f32):
    %c = arith.cmpf olt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4xf32>, tensor<4xf32>
  return
}

// -----

// CHECK: dimension must be within [0, 1), but is 1
func.func @scan(%v: tensor<4xf32>, %a: tensor<f32>) {
  %0:2 = iree_linalg_ext.scan dimension(1) inclusive(true) ins(%v : tensor<4xf32>) outs(%v, %a : tensor<4xf32>, tensor<f32>) {
  ^bb0(%l: f32, %m: f32):
    iree_linalg_ext.yield %l : f32
  } -> tensor<4xf32>, tensor<f32>
  return
}

// -----

// CHECK: output dimension must be positive and not exceed input, got 8 > 4
func.func @topk(%v: tensor<4xf32>, %k: tensor<8xf32>) {
  %0 = iree_linalg_ext.topk_v2 dimension(0) ins(%v : tensor<4xf32>) outs(%k : tensor<8xf32>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf olt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<8xf32>
  return
}

// -----

// CHECK: dimension map is invalid: it must be a permutation of [0, index depth)
func.func @scatter(%o: tensor<8x4xf32>, %u: tensor<3x8xf32>, %x: tensor<3x1xi32>) {
  %0 = iree_linalg_ext.scatter dimension_map = [1] unique_indices(true) ins(%u, %x : tensor<3x8xf32>, tensor<3x1xi32>) outs(%o : tensor<8x4xf32>) {
  ^bb0(%l: f32, %m: f32):
    iree_linalg_ext.yield %l : f32
  } -> tensor<8x4xf32>
  return
}

// -----

// CHECK: expected the region to yield 2 values of types index, f32
func.func @map_load(%o: tensor<8xf32>) {
  %0 = iree_linalg_ext.map_load %o into %o {
  ^bb0(%i: index):
    iree_linalg_ext.yield %i : index
  } : tensor<8xf32> into tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

// CHECK: expected coefficients of rank 1 of the operands' elements
func.func @fft_coefficients(%a: tensor<2x8xf32>, %w: tensor<4x2xf32>, %s: index) {
  %r, %i = iree_linalg_ext.fft ins(%s, %w, %w : index, tensor<4x2xf32>, tensor<4x2xf32>) outs(%a, %a : tensor<2x8xf32>, tensor<2x8xf32>) : tensor<2x8xf32>, tensor<2x8xf32>
  return
}

// -----

// CHECK: expected elements to be floating point numbers
func.func @fft_integers(%a: tensor<2x8xi32>, %s: index) {
  %r, %i = iree_linalg_ext.fft ins(%s : index) outs(%a, %a : tensor<2x8xi32>, tensor<2x8xi32>) : tensor<2x8xi32>, tensor<2x8xi32>
  return
}
