// RUN: xdsl-opt %s -p irees-decompose-exp-reduction | filecheck %s

// The maximum, the powers, the sum so far made smaller, and the body over them.
// CHECK-LABEL: func.func @sum
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x8xf32>) outs(%m : tensor<?xf32>)
// CHECK:           arith.maximumf
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} ins(%x, %[[M]] : tensor<?x8xf32>, tensor<?xf32>) outs(%{{.*}} : tensor<?x8xf32>)
// CHECK:           math.exp2
// CHECK:         %[[F:.*]] = linalg.generic {{.*}} ins(%m, %[[M]] : tensor<?xf32>, tensor<?xf32>) outs(%{{.*}} : tensor<?xf32>)
// CHECK:           math.exp2
// CHECK:         %[[T:.*]] = linalg.generic {{.*}} ins(%s, %[[F]] : tensor<?xf32>, tensor<?xf32>) outs(%{{.*}} : tensor<?xf32>)
// CHECK:           arith.mulf
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[P]], %[[M]] : tensor<?x8xf32>, tensor<?xf32>) outs(%[[T]] : tensor<?xf32>)
// CHECK:           arith.addf
// CHECK:         func.return %[[M]], %[[S]]
func.func @sum(%x: tensor<?x8xf32>, %m: tensor<?xf32>, %s: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %r:2 = iree_linalg_ext.exp_reduction {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = [#iree_linalg_ext.iterator_type<parallel>, #iree_linalg_ext.iterator_type<reduction>], exp_reduced_operands = [1]} ins(%x : tensor<?x8xf32>) outs(%m, %s : tensor<?xf32>, tensor<?xf32>) {
  ^bb0(%p: f32, %max: f32, %sum: f32):
    %add = arith.addf %p, %sum : f32
    iree_linalg_ext.yield %max, %add : f32, f32
  } -> tensor<?xf32>, tensor<?xf32>
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xf32>
}

// The index of a loop has no meaning between two of the ops.
// CHECK-LABEL: func.func @no_index
// CHECK:         iree_linalg_ext.exp_reduction
func.func @no_index(%x: tensor<8xf32>, %m: tensor<f32>, %s: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %r:2 = iree_linalg_ext.exp_reduction {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> ()>], iterator_types = [#iree_linalg_ext.iterator_type<reduction>], exp_reduced_operands = [1]} ins(%x : tensor<8xf32>) outs(%m, %s : tensor<f32>, tensor<f32>) {
  ^bb0(%p: f32, %max: f32, %sum: f32):
    %i = iree_linalg_ext.index 0 : index
    %j = arith.index_cast %i : index to i32
    %k = arith.sitofp %j : i32 to f32
    %q = arith.mulf %p, %k : f32
    %add = arith.addf %q, %sum : f32
    iree_linalg_ext.yield %max, %add : f32, f32
  } -> tensor<f32>, tensor<f32>
  return %r#0, %r#1 : tensor<f32>, tensor<f32>
}

// The region leaves out the old maximum, which a row of nothing keeps.
// CHECK-LABEL: func.func @exponentials
// CHECK:         irees.keep
// CHECK-NOT:     irees.keep
func.func @exponentials(%x: tensor<4x?xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = iree_linalg_ext.exp_reduction {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = [#iree_linalg_ext.iterator_type<parallel>, #iree_linalg_ext.iterator_type<reduction>], exp_reduced_operands = [1]} ins(%x : tensor<4x?xf32>) outs(%m, %s : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%e: f32, %a: f32, %b: f32):
    %t = arith.addf %b, %e : f32
    iree_linalg_ext.yield %e, %t : f32, f32
  } -> tensor<4xf32>, tensor<4xf32>
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
