// RUN: xdsl-opt %s -p irees-collapse-dimensions | filecheck %s

// The loops over the pixels of an image become one; the batch stays dynamic.
// CHECK-LABEL: func.func @pixels
// CHECK-NEXT:    %[[C:.*]] = tensor.collapse_shape %x [[0], [1], [2, 3]] : tensor<?x64x14x14xf32> into tensor<?x64x196xf32>
// CHECK-NEXT:    flow.dispatch.region
// CHECK-NEXT:      linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[C]] : tensor<?x64x196xf32>)
func.func @pixels(%x: tensor<?x64x14x14xf32>, %o: tensor<?x64xf32>, %n: index) -> tensor<?x64xf32> {
  %r = flow.dispatch.region -> (tensor<?x64xf32>{%n}) {
    %s = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x : tensor<?x64x14x14xf32>) outs(%o : tensor<?x64xf32>) {
    ^bb0(%p: f32, %q: f32):
      %1 = arith.addf %p, %q : f32
      linalg.yield %1 : f32
    } -> tensor<?x64xf32>
    flow.return %s : tensor<?x64xf32>
  }
  return %r : tensor<?x64xf32>
}

// An elementwise op of the same region gets the same loop, and its result is expanded outside.
// CHECK-LABEL: func.func @together
// CHECK-NEXT:    %[[C:.*]] = tensor.collapse_shape %x [[0], [1, 2]] : tensor<4x7x8xf32> into tensor<4x56xf32>
// CHECK-NEXT:    %[[R:.*]], %{{.*}} = flow.dispatch.region -> (tensor<4x56xf32>, tensor<4xf32>) {
// CHECK-NEXT:      %[[E:.*]] = tensor.empty() : tensor<4x56xf32>
// CHECK-NEXT:      %[[A:.*]] = linalg.generic {{.*}} ins(%[[C]] : tensor<4x56xf32>) outs(%[[E]] : tensor<4x56xf32>)
// CHECK:           linalg.generic {{.*}} ins(%[[A]] : tensor<4x56xf32>) outs(%o : tensor<4xf32>)
// CHECK:         tensor.expand_shape %[[R]] [[0], [1, 2]] output_shape [4, 7, 8] : tensor<4x56xf32> into tensor<4x7x8xf32>
func.func @together(%x: tensor<4x7x8xf32>, %o: tensor<4xf32>) -> (tensor<4x7x8xf32>, tensor<4xf32>) {
  %r:2 = flow.dispatch.region -> (tensor<4x7x8xf32>, tensor<4xf32>) {
    %e = tensor.empty() : tensor<4x7x8xf32>
    %a = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<4x7x8xf32>) outs(%e : tensor<4x7x8xf32>) {
    ^bb0(%p: f32, %q: f32):
      %1 = math.absf %p : f32
      linalg.yield %1 : f32
    } -> tensor<4x7x8xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%a : tensor<4x7x8xf32>) outs(%o : tensor<4xf32>) {
    ^bb0(%p: f32, %q: f32):
      %1 = arith.addf %p, %q : f32
      linalg.yield %1 : f32
    } -> tensor<4xf32>
    flow.return %a, %s : tensor<4x7x8xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4x7x8xf32>, tensor<4xf32>
}

// A reader of the other order keeps the dims of the value apart, and so the loops of its sum.
// CHECK-LABEL: func.func @no_transpose
// CHECK-NOT:     collapse_shape
// CHECK:         return
func.func @no_transpose(%x: tensor<4x7x8xf32>, %o: tensor<4xf32>) -> (tensor<4x8x7xf32>, tensor<4xf32>) {
  %r:2 = flow.dispatch.region -> (tensor<4x8x7xf32>, tensor<4xf32>) {
    %e = tensor.empty() : tensor<4x8x7xf32>
    %a = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, c, b)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<4x7x8xf32>) outs(%e : tensor<4x8x7xf32>) {
    ^bb0(%p: f32, %q: f32):
      linalg.yield %p : f32
    } -> tensor<4x8x7xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x : tensor<4x7x8xf32>) outs(%o : tensor<4xf32>) {
    ^bb0(%p: f32, %q: f32):
      %1 = arith.addf %p, %q : f32
      linalg.yield %1 : f32
    } -> tensor<4xf32>
    flow.return %a, %s : tensor<4x8x7xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4x8x7xf32>, tensor<4xf32>
}

// A loop whose index is read, and one of dynamic size, stay; the last two become one.
// CHECK-LABEL: func.func @no_index
// CHECK-NEXT:    tensor.collapse_shape %x [[0], [1], [2], [3, 4]] : tensor<?x5x6x7x8xf32> into tensor<?x5x6x56xf32>
// CHECK:           linalg.generic {{.*}} iterator_types = ["reduction", "reduction", "reduction", "reduction"]
// CHECK:             linalg.index 2 : index
func.func @no_index(%x: tensor<?x5x6x7x8xf32>, %o: tensor<f32>) -> tensor<f32> {
  %r = flow.dispatch.region -> (tensor<f32>) {
    %s = linalg.generic {indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>, affine_map<(a, b, c, d, e) -> ()>], iterator_types = ["reduction", "reduction", "reduction", "reduction", "reduction"]} ins(%x : tensor<?x5x6x7x8xf32>) outs(%o : tensor<f32>) {
    ^bb0(%p: f32, %q: f32):
      %i = linalg.index 2 : index
      %j = arith.index_cast %i : index to i32
      %k = arith.sitofp %j : i32 to f32
      %1 = arith.mulf %p, %k : f32
      %2 = arith.addf %1, %q : f32
      linalg.yield %2 : f32
    } -> tensor<f32>
    flow.return %s : tensor<f32>
  }
  return %r : tensor<f32>
}

// The innermost loop is parallel and is vectorized as it is.
// CHECK-LABEL: func.func @no_outer_reduction
// CHECK-NOT:     collapse_shape
// CHECK:         return
func.func @no_outer_reduction(%x: tensor<4x14x14x64xf32>, %o: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %r = flow.dispatch.region -> (tensor<4x64xf32>) {
    %s = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, c, d, b)>, affine_map<(a, b, c, d) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x : tensor<4x14x14x64xf32>) outs(%o : tensor<4x64xf32>) {
    ^bb0(%p: f32, %q: f32):
      %1 = arith.addf %p, %q : f32
      linalg.yield %1 : f32
    } -> tensor<4x64xf32>
    flow.return %s : tensor<4x64xf32>
  }
  return %r : tensor<4x64xf32>
}

// The strategies of contractions know several loops.
// CHECK-LABEL: func.func @no_contraction
// CHECK-NOT:     collapse_shape
// CHECK:         return
func.func @no_contraction(%x: tensor<4x7x8xf32>, %w: tensor<3x7x8xf32>, %o: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %r = flow.dispatch.region -> (tensor<4x3xf32>) {
    %s = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, c, d)>, affine_map<(a, b, c, d) -> (b, c, d)>, affine_map<(a, b, c, d) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : tensor<4x7x8xf32>, tensor<3x7x8xf32>) outs(%o : tensor<4x3xf32>) {
    ^bb0(%p: f32, %q: f32, %t: f32):
      %1 = arith.mulf %p, %q : f32
      %2 = arith.addf %1, %t : f32
      linalg.yield %2 : f32
    } -> tensor<4x3xf32>
    flow.return %s : tensor<4x3xf32>
  }
  return %r : tensor<4x3xf32>
}

// Rows of two numbers fill no vector, so the loops over columns and parts become one.
// CHECK-LABEL: func.func @parts
// CHECK-NEXT:    %[[C:.*]] = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x64x2xf32> into tensor<?x128xf32>
// CHECK:           linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%[[C]] : tensor<?x128xf32>)
// CHECK:         tensor.expand_shape %{{.*}} [[0, 1]] output_shape [64, 2] : tensor<128xf32> into tensor<64x2xf32>
func.func @parts(%x: tensor<?x64x2xf32>, %o: tensor<64x2xf32>) -> tensor<64x2xf32> {
  %r = flow.dispatch.region -> (tensor<64x2xf32>) {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j, q) -> (i, j, q)>, affine_map<(i, j, q) -> (j, q)>], iterator_types = ["reduction", "parallel", "parallel"]} ins(%x : tensor<?x64x2xf32>) outs(%o : tensor<64x2xf32>) {
    ^bb0(%p: f32, %q: f32):
      %1 = arith.addf %p, %q : f32
      linalg.yield %1 : f32
    } -> tensor<64x2xf32>
    flow.return %s : tensor<64x2xf32>
  }
  return %r : tensor<64x2xf32>
}

// Rows that fill a vector are vectorized as they are.
// CHECK-LABEL: func.func @vectors
// CHECK-NOT:     collapse_shape
// CHECK:         return
func.func @vectors(%x: tensor<?x64x32xf32>, %o: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %r = flow.dispatch.region -> (tensor<64x32xf32>) {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j, q) -> (i, j, q)>, affine_map<(i, j, q) -> (j, q)>], iterator_types = ["reduction", "parallel", "parallel"]} ins(%x : tensor<?x64x32xf32>) outs(%o : tensor<64x32xf32>) {
    ^bb0(%p: f32, %q: f32):
      %1 = arith.addf %p, %q : f32
      linalg.yield %1 : f32
    } -> tensor<64x32xf32>
    flow.return %s : tensor<64x32xf32>
  }
  return %r : tensor<64x32xf32>
}
