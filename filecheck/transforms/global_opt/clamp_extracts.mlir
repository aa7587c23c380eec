// RUN: xdsl-opt %s -p irees-clamp-extracts | filecheck %s

// What a body reads at the index of a loop may be shorter than the loop: then the index is moved.
// CHECK-LABEL: func.func @extract
// CHECK-NOT:     cf.assert
// CHECK:         %[[T:.*]] = tensor.dim %t
// CHECK:         %[[LAST:.*]] = arith.subi %[[T]], %{{.*}} : index
// CHECK:         linalg.generic
// CHECK:         %[[I:.*]] = linalg.index 0 : index
// CHECK-NEXT:    %[[ROW:.*]] = arith.minsi %[[I]], %[[LAST]] : index
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[COLUMN:.*]] = arith.minsi %[[I]], %[[ZERO]] : index
// CHECK-NEXT:    tensor.extract %t[%[[ROW]], %[[COLUMN]]]
func.func @extract(%t: tensor<?x1xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%o : tensor<?xf32>) {
  ^bb0(%p: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %t[%i, %i] : tensor<?x1xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// A loop that is as long as what it reads needs nothing.
// CHECK-LABEL: func.func @no_extract
// CHECK-NOT:     arith.minsi
// CHECK:         func.return
func.func @no_extract(%t: tensor<?x4xf32>, %u: tensor<5xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %t, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<?x4xf32>) {
  ^bb0(%p: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%i, %j] : tensor<?x4xf32>
    %w = tensor.extract %u[%j] : tensor<5xf32>
    %x = arith.addf %v, %w : f32
    linalg.yield %x : f32
  } -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
