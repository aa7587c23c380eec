// RUN: xdsl-opt %s -p irees-convert-tm-tensor-to-linalg-ext | filecheck %s

// A sort keeps its operands, and its region ends in the other dialect.
// CHECK-LABEL: func.func @sort
// CHECK:         iree_linalg_ext.sort dimension(1) outs(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xi64>) {
// CHECK:           iree_linalg_ext.yield %{{.*}} : i1
// CHECK:         } -> tensor<4x8xf32>, tensor<4x8xi64>
func.func @sort(%v: tensor<4x8xf32>, %i: tensor<4x8xi64>) -> (tensor<4x8xf32>, tensor<4x8xi64>) {
  %0:2 = tm_tensor.sort dimension(1) outs(%v, %i : tensor<4x8xf32>, tensor<4x8xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %less = arith.cmpf olt, %a, %b : f32
    tm_tensor.yield %less : i1
  } -> tensor<4x8xf32>, tensor<4x8xi64>
  return %0#0, %0#1 : tensor<4x8xf32>, tensor<4x8xi64>
}

// CHECK-LABEL: func.func @scan
// CHECK:         iree_linalg_ext.scan dimension(0) inclusive(true) ins(%{{.*}} : tensor<6xi64>) outs(%{{.*}}, %{{.*}} : tensor<6xi64>, tensor<i64>)
func.func @scan(%x: tensor<6xi64>, %out: tensor<6xi64>, %acc: tensor<i64>) -> tensor<6xi64> {
  %0:2 = tm_tensor.scan dimension(0) inclusive(true) ins(%x : tensor<6xi64>) outs(%out, %acc : tensor<6xi64>, tensor<i64>) {
  ^bb0(%a: i64, %b: i64):
    %sum = arith.addi %a, %b : i64
    tm_tensor.yield %sum : i64
  } -> tensor<6xi64>, tensor<i64>
  return %0#0 : tensor<6xi64>
}

// CHECK-LABEL: func.func @topk
// CHECK:         iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%{{.*}} : tensor<2x6xf32>) outs(%{{.*}}, %{{.*}} : tensor<2x4xf32>, tensor<2x4xi32>)
func.func @topk(%x: tensor<2x6xf32>, %v: tensor<2x4xf32>, %i: tensor<2x4xi32>) -> tensor<2x4xf32> {
  %0:2 = tm_tensor.topk dimension(1) ins(%x : tensor<2x6xf32>) outs(%v, %i : tensor<2x4xf32>, tensor<2x4xi32>) {
  ^bb0(%a: f32, %b: f32):
    %more = arith.cmpf ogt, %a, %b : f32
    tm_tensor.yield %more : i1
  } -> tensor<2x4xf32>, tensor<2x4xi32>
  return %0#0 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @scatter
// CHECK:         iree_linalg_ext.scatter dimension_map = [0, 1] unique_indices(false) ins(%{{.*}}, %{{.*}} : tensor<?xf32>, tensor<?x2xi64>) outs(%{{.*}} : tensor<?x8xf32>)
func.func @scatter(%u: tensor<?xf32>, %i: tensor<?x2xi64>, %o: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0, 1>} unique_indices(false) ins(%u, %i : tensor<?xf32>, tensor<?x2xi64>) outs(%o : tensor<?x8xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// torch-mlir writes a single element as a window of size 1 in each indexed dim.
// CHECK-LABEL: func.func @scatter_window
// CHECK:         %[[U:.*]] = tensor.collapse_shape %{{.*}} {{\[}}[0, 1], [2]] : tensor<5x1x8xf32> into tensor<5x8xf32>
// CHECK:         iree_linalg_ext.scatter dimension_map = [0] unique_indices(true) ins(%[[U]], %{{.*}} : tensor<5x8xf32>, tensor<5x1xi64>) outs(%{{.*}} : tensor<?x8xf32>)
func.func @scatter_window(%u: tensor<5x1x8xf32>, %i: tensor<5x1xi64>, %o: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(true) ins(%u, %i : tensor<5x1x8xf32>, tensor<5x1xi64>) outs(%o : tensor<?x8xf32>) {
  ^bb0(%new: f32, %old: f32):
    tm_tensor.yield %new : f32
  } -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// The scale is 1 / sqrt(64).
// CHECK-LABEL: func.func @attention
// CHECK:         %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK:         iree_linalg_ext.attention {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> ()>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4)>]}
// CHECK-SAME:    ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[SCALE]], %{{.*}} : tensor<2x16x64xf32>, tensor<2x32x64xf32>, tensor<2x32x8xf32>, f32, tensor<2x16x32xf32>)
func.func @attention(%q: tensor<2x16x64xf32>, %k: tensor<2x32x64xf32>, %v: tensor<2x32x8xf32>, %m: tensor<2x16x32xf32>, %o: tensor<2x16x8xf32>) -> tensor<2x16x8xf32> {
  %0 = tm_tensor.attention ins(%q, %k, %v, %m : tensor<2x16x64xf32>, tensor<2x32x64xf32>, tensor<2x32x8xf32>, tensor<2x16x32xf32>) outs(%o : tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  return %0 : tensor<2x16x8xf32>
}
