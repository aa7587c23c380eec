// RUN: xdsl-opt %s -p irees-inline-custom-ops | filecheck %s

// The region stands in the place of the op, on the whole of each operand.
// CHECK-LABEL: func.func @inlined
// CHECK-NEXT:    %[[A:.*]] = tensor.cast %x : tensor<4x8xf32> to tensor<?x?xf32>
// CHECK-NEXT:    %[[B:.*]] = tensor.cast %o : tensor<4x8xf32> to tensor<?x?xf32>
// CHECK-NEXT:    %[[E:.*]] = linalg.exp ins(%[[A]] : tensor<?x?xf32>) outs(%[[B]] : tensor<?x?xf32>)
// CHECK-NEXT:    %[[R:.*]] = tensor.cast %[[E]] : tensor<?x?xf32> to tensor<4x8xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @inlined(%x: tensor<4x8xf32>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = iree_linalg_ext.custom_op {indexing_maps = [affine_map<(d0) -> (d0, 0)>, affine_map<(d0) -> (d0, 0)>], iterator_types = [#iree_linalg_ext.iterator_type<parallel>]} ins(%x : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>) {
  ^bb0(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>):
    %0 = linalg.exp ins(%a : tensor<?x?xf32>) outs(%b : tensor<?x?xf32>) -> tensor<?x?xf32>
    iree_linalg_ext.yield %0 : tensor<?x?xf32>
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// A dynamic type needs no cast; a tile may be yielded as it came.
// CHECK-LABEL: func.func @as_it_is
// CHECK-NEXT:    func.return %x
func.func @as_it_is(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = iree_linalg_ext.custom_op {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = [#iree_linalg_ext.iterator_type<parallel>]} ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: tensor<?xf32>, %b: tensor<?xf32>):
    iree_linalg_ext.yield %a : tensor<?xf32>
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// It wants to know which tile it is.
// CHECK-LABEL: func.func @no_index
// CHECK:         iree_linalg_ext.custom_op
func.func @no_index(%o: tensor<?xf32>) -> tensor<?xf32> {
  %r = iree_linalg_ext.custom_op {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = [#iree_linalg_ext.iterator_type<parallel>]} outs(%o : tensor<?xf32>) {
  ^bb0(%a: tensor<?xf32>):
    %i = iree_linalg_ext.index 0 : index
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    %0 = linalg.fill ins(%f : f32) outs(%a : tensor<?xf32>) -> tensor<?xf32>
    iree_linalg_ext.yield %0 : tensor<?xf32>
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
