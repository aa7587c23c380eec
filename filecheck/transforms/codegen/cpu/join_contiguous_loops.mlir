// RUN: xdsl-opt %s -p irees-join-contiguous-loops | filecheck %s

#ij = affine_map<(i, j) -> (i, j)>

// Rows of three numbers are one long row, also of a tile with an offset.
// CHECK-LABEL: func.func @points
// CHECK-NEXT:    %[[X:.*]] = memref.collapse_shape %x {{\[\[}}0 : i64, 1 : i64]] : memref<?x3xf32, strided<[3, 1], offset: ?>> into memref<?xf32, strided<[1], offset: ?>>
// CHECK-NEXT:    %[[Y:.*]] = memref.collapse_shape %y {{\[\[}}0 : i64, 1 : i64]] : memref<?x3xf32> into memref<?xf32>
// CHECK-NEXT:    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%[[X]] : memref<?xf32, strided<[1], offset: ?>>) outs(%[[Y]] : memref<?xf32>)
func.func @points(%x: memref<?x3xf32, strided<[3, 1], offset: ?>>, %y: memref<?x3xf32>) {
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%x : memref<?x3xf32, strided<[3, 1], offset: ?>>) outs(%y : memref<?x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  return
}

// A reduction with the fill of its output; the loop over k is renumbered, and so is its index.
// CHECK-LABEL: func.func @sums
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
// CHECK:           linalg.index 1
func.func @sums(%x: memref<8x?x2xf32>, %y: memref<?x2xf32>) {
  linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]} outs(%y : memref<?x2xf32>) {
  ^bb0(%b: f32):
    %z = arith.constant 0.0 : f32
    linalg.yield %z : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k, i, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : memref<8x?x2xf32>) outs(%y : memref<?x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %k = linalg.index 2 : index
    %n = arith.index_cast %k : index to i32
    %f = arith.sitofp %n : i32 to f32
    %w = arith.mulf %a, %f : f32
    %r = arith.addf %w, %b : f32
    linalg.yield %r : f32
  }
  return
}

// Three loops become one.
// CHECK-LABEL: func.func @all
// CHECK:         iterator_types = ["parallel"]} ins(%{{.*}} : memref<105xi8>) outs(%{{.*}} : memref<105xi8>)
func.func @all(%x: memref<3x5x7xi8>, %y: memref<3x5x7xi8>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<3x5x7xi8>) outs(%y : memref<3x5x7xi8>) {
  ^bb0(%a: i8, %b: i8):
    linalg.yield %a : i8
  }
  return
}

// Whole vectors, a broadcast, an index of a row, gaps, and a neighbour that stays.
// CHECK-LABEL: func.func @left
// CHECK-NOT:     memref.collapse_shape
// CHECK:         return
func.func @left(%v: memref<4x16xf32>, %x: memref<?x3xf32>, %w: memref<3xf32>, %g: memref<?x3xf32, strided<[4, 1]>>, %y: memref<?x3xf32>, %z: memref<?x3xf32>) {
  linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]} outs(%v : memref<4x16xf32>) {
  ^bb0(%b: f32):
    %r = arith.negf %b : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (j)>, #ij], iterator_types = ["parallel", "parallel"]} ins(%x, %w : memref<?x3xf32>, memref<3xf32>) outs(%y : memref<?x3xf32>) {
  ^bb0(%a: f32, %c: f32, %b: f32):
    %r = arith.mulf %a, %c : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%y : memref<?x3xf32>) outs(%z : memref<?x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]} outs(%g : memref<?x3xf32, strided<[4, 1]>>) {
  ^bb0(%b: f32):
    %r = arith.negf %b : f32
    linalg.yield %r : f32
  }
  return
}

// CHECK-LABEL: func.func @index
// CHECK-NOT:     memref.collapse_shape
// CHECK:         return
func.func @index(%y: memref<?x3xindex>) {
  linalg.generic {indexing_maps = [#ij], iterator_types = ["parallel", "parallel"]} outs(%y : memref<?x3xindex>) {
  ^bb0(%b: index):
    %j = linalg.index 1 : index
    linalg.yield %j : index
  }
  return
}

// Pixels in blocks of channels are adjacent rows of the input, which the output has last.
// CHECK-LABEL: func.func @blocks
// CHECK:         memref.collapse_shape %x [{{\[}}0 : i64, 1 : i64], [2 : i64]] : memref<14x14x16xf32> into memref<196x16xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>]
func.func @blocks(%x: memref<14x14x16xf32>, %y: memref<16x14x14xf32>) {
  linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (h, w, c)>, affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<14x14x16xf32>) outs(%y : memref<16x14x14xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// The rows of an input that is padded are apart.
// CHECK-LABEL: func.func @no_gaps
// CHECK-NOT:     memref.collapse_shape
// CHECK:         linalg.generic
func.func @no_gaps(%x: memref<14x14x16xf32, strided<[256, 16, 1]>>, %y: memref<16x14x14xf32>) {
  linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (h, w, c)>, affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<14x14x16xf32, strided<[256, 16, 1]>>) outs(%y : memref<16x14x14xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// A diagonal has one loop for two dims.
// CHECK-LABEL: func.func @no_diagonal
// CHECK-NOT:     memref.collapse_shape
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0) -> (d0, d0)>]
func.func @no_diagonal(%y: memref<?x2xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i, i)>], iterator_types = ["parallel"]} outs(%y : memref<?x2xf32>) {
  ^bb0(%a: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  return
}
