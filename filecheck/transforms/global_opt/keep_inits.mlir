// RUN: xdsl-opt %s -p irees-keep-inits | filecheck %s

// Two points write to one element, and some are not written: the last wins, and they are kept.
// CHECK-LABEL: func.func @halves
// CHECK:         linalg.generic {{.*}}iterator_types = ["reduction"]
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT:      %[[K:.*]] = irees.keep %[[A]], %[[B]] : f32
// CHECK-NEXT:      linalg.yield %[[K]] : f32
func.func @halves(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i floordiv 2)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// A diagonal is a part of the output, of which each point writes another element.
// CHECK-LABEL: func.func @diagonal
// CHECK:         iterator_types = ["parallel"]
// CHECK:         irees.keep
func.func @diagonal(%x: tensor<4xf32>, %o: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%o : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// A reduction of no points leaves its init.
// CHECK-LABEL: func.func @last_of_none
// CHECK:         irees.keep
func.func @last_of_none(%x: tensor<4x?xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x?xf32>) outs(%o : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// What writes each element once needs nothing, and what adds to its init says so already.
// CHECK-LABEL: func.func @no_transpose
// CHECK:         iterator_types = ["parallel", "parallel"]
// CHECK-NOT:     irees.keep
// CHECK:         iterator_types = ["reduction"]
// CHECK-NOT:     irees.keep
func.func @no_transpose(%x: tensor<4x?xf32>, %o: tensor<?x4xf32>, %y: tensor<?xf32>, %s: tensor<f32>) -> (tensor<?x4xf32>, tensor<f32>) {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x?xf32>) outs(%o : tensor<?x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?x4xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%y : tensor<?xf32>) outs(%s : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<f32>
  return %r, %t : tensor<?x4xf32>, tensor<f32>
}

// The only element of a dim of size 1 is all of it: sums that keep their dim stay parallel.
// CHECK-LABEL: func.func @no_kept_dim
// CHECK:         iterator_types = ["parallel", "reduction"]
// CHECK:         iterator_types = ["parallel"]
// CHECK-NOT:     irees.keep
func.func @no_kept_dim(%x: tensor<?x8xf32>, %s: tensor<?x1xf32>, %y: tensor<?xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>) {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x8xf32>) outs(%s : tensor<?x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<?x1xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, 0)>], iterator_types = ["parallel"]} ins(%y : tensor<?xf32>) outs(%s : tensor<?x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?x1xf32>
  return %r, %t : tensor<?x1xf32>, tensor<?x1xf32>
}

// A reduction that yields an input keeps its init by a row of nothing.
// CHECK-LABEL: func.func @last_of_a_row
// CHECK:         irees.keep
func.func @last_of_a_row(%x: tensor<4x?xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.reduce ins(%x : tensor<4x?xf32>) outs(%o : tensor<4xf32>) dimensions = [1] (%a: f32, %b: f32) {
    linalg.yield %a : f32
  }
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @no_sum_of_a_row
// CHECK-NOT:     irees.keep
func.func @no_sum_of_a_row(%x: tensor<4x?xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.reduce {arith.addf} ins(%x : tensor<4x?xf32>) outs(%o : tensor<4xf32>) dimensions = [1]
  return %r : tensor<4xf32>
}
