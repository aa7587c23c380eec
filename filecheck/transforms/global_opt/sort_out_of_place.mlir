// RUN: irees opt %s -p 'irees-assign-target{target="cuda:sm_80"},irees-sort-out-of-place' | filecheck %s

// The second operand is its positions: only the first one is an input.
// CHECK-LABEL: func.func @positions
// CHECK:         iree_linalg_ext.sort dimension(1) positions([1]) ins(%x : tensor<64x4096xf32>) outs(%[[V:.*]], %[[I:.*]] : tensor<64x4096xf32>, tensor<64x4096xi64>)
func.func @positions(%x: tensor<64x4096xf32>) -> (tensor<64x4096xf32>, tensor<64x4096xi64>) {
  %e = tensor.empty() : tensor<64x4096xi64>
  %i = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<64x4096xi64>) {
  ^bb0(%o: i64):
    %d = linalg.index 1 : index
    %c = arith.index_cast %d : index to i64
    linalg.yield %c : i64
  } -> tensor<64x4096xi64>
  %s:2 = iree_linalg_ext.sort dimension(1) outs(%x, %i : tensor<64x4096xf32>, tensor<64x4096xi64>) {
  ^bb0(%a: f32, %b: f32, %p: i64, %q: i64):
    %l = arith.cmpf ole, %a, %b : f32
    iree_linalg_ext.yield %l : i1
  } -> tensor<64x4096xf32>, tensor<64x4096xi64>
  return %s#0, %s#1 : tensor<64x4096xf32>, tensor<64x4096xi64>
}

// These are the positions along the other dim, so they are read; sizes may be unknown.
// CHECK-LABEL: func.func @other_dim
// CHECK:         tensor.empty(%{{.*}}) : tensor<?x8xf32>
// CHECK:         iree_linalg_ext.sort dimension(1) ins(%x, %i : tensor<?x8xf32>, tensor<?x8xi64>) outs(
func.func @other_dim(%x: tensor<?x8xf32>, %e: tensor<?x8xi64>) -> tensor<?x8xi64> {
  %i = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<?x8xi64>) {
  ^bb0(%o: i64):
    %d = linalg.index 0 : index
    %c = arith.index_cast %d : index to i64
    linalg.yield %c : i64
  } -> tensor<?x8xi64>
  %s:2 = iree_linalg_ext.sort dimension(1) outs(%x, %i : tensor<?x8xf32>, tensor<?x8xi64>) {
  ^bb0(%a: f32, %b: f32, %p: i64, %q: i64):
    %l = arith.cmpf oge, %a, %b : f32
    iree_linalg_ext.yield %l : i1
  } -> tensor<?x8xf32>, tensor<?x8xi64>
  return %s#1 : tensor<?x8xi64>
}

// Keys of four bits have no digits.
// CHECK-LABEL: func.func @no_digits
// CHECK-NEXT:    iree_linalg_ext.sort dimension(0) outs(%x : tensor<9xi4>)
func.func @no_digits(%x: tensor<9xi4>) -> tensor<9xi4> {
  %s = iree_linalg_ext.sort dimension(0) outs(%x : tensor<9xi4>) {
  ^bb0(%a: i4, %b: i4):
    %l = arith.cmpi sle, %a, %b : i4
    iree_linalg_ext.yield %l : i1
  } -> tensor<9xi4>
  return %s : tensor<9xi4>
}
