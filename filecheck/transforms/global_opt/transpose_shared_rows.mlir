// RUN: irees opt %s -p irees-transpose-shared-rows | filecheck %s
// RUN: irees opt %s -p 'irees-assign-target{target="cuda:sm_80"},irees-transpose-shared-rows' | filecheck %s --check-prefix GPU

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (j, k)>
#out = affine_map<(i, j, k) -> (i, j)>

// Each of the 32 results of a row reads a row of y, which is transposed. Threads of a GPU read it.
// CHECK-LABEL: func.func @distances
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<4x32xf32>
// CHECK-NEXT:    %[[T:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<32x4xf32>) outs(%[[E]] : tensor<4x32xf32>)
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %[[T]] : tensor<8x4xf32>, tensor<4x32xf32>) outs(%o : tensor<8x32xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32):
// CHECK-NEXT:      arith.subf %[[A]], %[[B]] : f32
// CHECK:         return
// GPU-LABEL:   func.func @distances
// GPU-NOT:       tensor.empty
// GPU:         func.func @both_move
func.func @distances(%x: tensor<8x4xf32>, %y: tensor<32x4xf32>, %o: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %r = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<8x4xf32>, tensor<32x4xf32>) outs(%o : tensor<8x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    %s = arith.addf %c, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}

// Batches, two reduced loops, sizes that are unknown, two inputs with columns, two results: the
// dim of columns becomes the last one, the others keep their order. An input with columns last
// stays.
// CHECK-LABEL: func.func @both_move
// CHECK:         %[[T:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], {{.*}} ins(%y : tensor<2x?x3x?xi32>) outs(%{{.*}} : tensor<2x3x?x?xi32>)
// CHECK:         %[[U:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], {{.*}} ins(%z : tensor<?x?xi32>)
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>]
// CHECK-SAME:    ins(%x, %[[T]], %[[U]], %w : tensor<2x?x3x?xi32>, tensor<2x3x?x?xi32>, tensor<?x?xi32>, tensor<?xi32>)
// CHECK:         return
func.func @both_move(%x: tensor<2x?x3x?xi32>, %y: tensor<2x?x3x?xi32>, %z: tensor<?x?xi32>, %w: tensor<?xi32>, %o: tensor<2x?x?xi32>) -> (tensor<2x?x?xi32>, tensor<2x?x?xi32>) {
  %r:2 = linalg.generic {
      indexing_maps = [affine_map<(b, i, j, k, l) -> (b, i, k, l)>, affine_map<(b, i, j, k, l) -> (b, j, k, l)>, affine_map<(b, i, j, k, l) -> (j, l)>,
                       affine_map<(b, i, j, k, l) -> (j)>, affine_map<(b, i, j, k, l) -> (b, i, j)>, affine_map<(b, i, j, k, l) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %y, %z, %w : tensor<2x?x3x?xi32>, tensor<2x?x3x?xi32>, tensor<?x?xi32>, tensor<?xi32>) outs(%o, %o : tensor<2x?x?xi32>, tensor<2x?x?xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32, %e: i32, %f: i32):
    %1 = arith.subi %a, %b : i32
    %2 = arith.muli %1, %c : i32
    %3 = arith.addi %2, %d : i32
    %4 = arith.addi %e, %3 : i32
    %5 = arith.maxsi %f, %3 : i32
    linalg.yield %4, %5 : i32, i32
  } -> (tensor<2x?x?xi32>, tensor<2x?x?xi32>)
  return %r#0, %r#1 : tensor<2x?x?xi32>, tensor<2x?x?xi32>
}

// Seven rows of results do not pay for the copy, nor do 31 results of a row.
// CHECK-LABEL: func.func @no_few
// CHECK-NOT:     tensor.empty
// CHECK:         return
func.func @no_few(%x: tensor<7x4xf32>, %y: tensor<32x4xf32>, %o: tensor<7x32xf32>, %z: tensor<31x4xf32>, %p: tensor<8x31xf32>, %u: tensor<8x4xf32>) -> (tensor<7x32xf32>, tensor<8x31xf32>) {
  %r = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<7x4xf32>, tensor<32x4xf32>) outs(%o : tensor<7x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %s = arith.maximumf %c, %d : f32
    linalg.yield %s : f32
  } -> tensor<7x32xf32>
  %t = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%u, %z : tensor<8x4xf32>, tensor<31x4xf32>) outs(%p : tensor<8x31xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %s = arith.maximumf %c, %d : f32
    linalg.yield %s : f32
  } -> tensor<8x31xf32>
  return %r, %t : tensor<7x32xf32>, tensor<8x31xf32>
}

// A sum of products is packed by `irees-lower-contractions`.
// CHECK-LABEL: func.func @no_product
// CHECK-NOT:     tensor.empty
// CHECK:         return
func.func @no_product(%x: tensor<8x4xf32>, %y: tensor<32x4xf32>, %o: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %r = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<8x4xf32>, tensor<32x4xf32>) outs(%o : tensor<8x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %q = arith.mulf %a, %b : f32
    %s = arith.addf %c, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}

// Columns at another place of an input keep vectors from running along them. So does a window.
// CHECK-LABEL: func.func @no_others
// CHECK-NOT:     tensor.empty
// CHECK:         return
func.func @no_others(%x: tensor<8x4xf32>, %y: tensor<32x4xf32>, %z: tensor<35xf32>, %w: tensor<32x8xf32>, %o: tensor<8x32xf32>) -> (tensor<8x32xf32>, tensor<8x32xf32>) {
  %r = linalg.generic {indexing_maps = [#left, #right, affine_map<(i, j, k) -> (j, i)>, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y, %w : tensor<8x4xf32>, tensor<32x4xf32>, tensor<32x8xf32>) outs(%o : tensor<8x32xf32>) {
  ^bb0(%a: f32, %b: f32, %e: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %e : f32
    %s = arith.maximumf %c, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x32xf32>
  %t = linalg.generic {indexing_maps = [#left, affine_map<(i, j, k) -> (j + k)>, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %z : tensor<8x4xf32>, tensor<35xf32>) outs(%o : tensor<8x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %s = arith.maximumf %c, %d : f32
    linalg.yield %s : f32
  } -> tensor<8x32xf32>
  return %r, %t : tensor<8x32xf32>, tensor<8x32xf32>
}
