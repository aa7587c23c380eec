// RUN: irees opt %s -p 'irees-assign-target{facts="vector_bytes=16"},irees-propagate-blocked-layouts' | filecheck %s
// RUN: irees opt %s -p 'irees-assign-target{facts="vector_bytes=16"},irees-propagate-blocked-layouts' --remarks 2>&1 >%t.out | filecheck %s --check-prefix WHY

// The image of three colours is read as it is; fill, pad, maximum and pooling follow, and what
// leaves the blocks is a vector, which is no copy.
// CHECK-LABEL: func.func @network
// CHECK:         %[[W:.*]] = arith.constant dense<1.000000e+00> : tensor<2x3x3x3x4xf32>
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<2x4x6x4xf32>)
// CHECK:         %[[C:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, ((d1 * 2) + d5), (d2 + d6))>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d5, d6, d3)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %[[W]] :
// CHECK:         %[[R:.*]] = linalg.generic {{.*}}affine_map<(d0, d1, d2, d3) -> (d0, d3)>{{.*}} ins(%[[C]], %{{.*}} : tensor<2x4x6x4xf32>, tensor<2x4xf32>)
// CHECK:         %[[P:.*]] = tensor.insert_slice %[[R]] into %{{.*}}[0, 1, 1, 0] [2, 4, 6, 4] [1, 1, 1, 1] : tensor<2x4x6x4xf32> into tensor<2x6x8x4xf32>
// CHECK:         linalg.generic {{.*}}affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, ((d1 * 2) + d4), ((d2 * 2) + d5), d3)>{{.*}} ins(%[[P]],
// CHECK:         %[[S:.*]] = linalg.generic {{.*}}affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
// CHECK:         %[[V:.*]] = tensor.collapse_shape %[[S]]
// CHECK-NEXT:    return %[[V]] : tensor<8xf32>
// WHY-DAG:       writes tensor<2x4x6x4xf32>, channels in blocks
func.func @network(%x: tensor<3x9x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<1.0> : tensor<8x3x3x3xf32>
  %bias = arith.constant dense_resource<bias> : tensor<8xf32>
  %fe = tensor.empty() : tensor<8x4x6xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<8x4x6xf32>) {
  ^bb0(%a: f32): linalg.yield %zero : f32
  } -> tensor<8x4x6xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h * 2 + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<3x9x8xf32>, tensor<8x3x3x3xf32>) outs(%f : tensor<8x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<8x4x6xf32>
  %re = tensor.empty() : tensor<8x4x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>, affine_map<(c, h, w) -> (c)>, affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%v, %bias : tensor<8x4x6xf32>, tensor<8xf32>) outs(%re : tensor<8x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %s = arith.addf %a, %b : f32 linalg.yield %s : f32
  } -> tensor<8x4x6xf32>
  %te = tensor.empty() : tensor<8x6x8xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%te : tensor<8x6x8xf32>) {
  ^bb0(%a: f32): linalg.yield %zero : f32
  } -> tensor<8x6x8xf32>
  %p = tensor.insert_slice %r into %t[0, 1, 1] [8, 4, 6] [1, 1, 1] : tensor<8x4x6xf32> into tensor<8x6x8xf32>
  %win = tensor.empty() : tensor<2x2xf32>
  %ge = tensor.empty() : tensor<8x3x4xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%ge : tensor<8x3x4xf32>) {
  ^bb0(%a: f32): linalg.yield %zero : f32
  } -> tensor<8x3x4xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, h, w, y, x) -> (c, h * 2 + y, w * 2 + x)>, affine_map<(c, h, w, y, x) -> (y, x)>, affine_map<(c, h, w, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %win : tensor<8x6x8xf32>, tensor<2x2xf32>) outs(%g : tensor<8x3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %s = arith.maximumf %c, %a : f32 linalg.yield %s : f32
  } -> tensor<8x3x4xf32>
  %ie = tensor.empty() : tensor<8xf32>
  %i = linalg.generic {indexing_maps = [affine_map<(c) -> (c)>], iterator_types = ["parallel"]} outs(%ie : tensor<8xf32>) {
  ^bb0(%a: f32): linalg.yield %zero : f32
  } -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>, affine_map<(c, h, w) -> (c)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%m : tensor<8x3x4xf32>) outs(%i : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32): %s = arith.addf %b, %a : f32 linalg.yield %s : f32
  } -> tensor<8xf32>
  return %sum : tensor<8xf32>
}

// Arguments and results are put into blocks and taken out; a loop is cut where it stands.
// CHECK-LABEL: func.func @both
// CHECK:         %[[X:.*]] = tensor.expand_shape %x {{\[\[}}0, 1], [2], [3]] output_shape [8, 4, 33, 33]
// CHECK:         %[[P:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>]{{.*}} ins(%[[X]] : {{.*}} outs(%{{.*}} : tensor<8x33x33x4xf32>)
// CHECK:         %[[C:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d4, (d1 + d5), (d2 + d6), d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d4, d5, d6, d7, d3)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3)>]{{.*}} ins(%[[P]], %{{.*}} : tensor<8x33x33x4xf32>, tensor<8x8x5x5x4x4xf32>)
// CHECK:         tensor.collapse_shape {{.*}} tensor<8x4x29x29xf32> into tensor<32x29x29xf32>
// WHY-DAG:       packs tensor<32x33x33xf32> into blocks: it is an argument
// WHY-DAG:       writes tensor<8x29x29x4xf32>
// WHY-DAG:       unpacks tensor<32x29x29xf32> for func.return: it does not support blocks
func.func @both(%x: tensor<32x33x33xf32>, %o: tensor<32x29x29xf32>) -> tensor<32x29x29xf32> {
  %w = arith.constant dense<1.0> : tensor<32x32x5x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<32x33x33xf32>, tensor<32x32x5x5xf32>) outs(%o : tensor<32x29x29xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<32x29x29xf32>
  return %r : tensor<32x29x29xf32>
}

// Each channel by itself; a wide window makes up for the copies.
// CHECK-LABEL: func.func @depthwise
// CHECK:         %[[H:.*]] = tensor.dim %o
// CHECK:         affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, (d1 + d4), (d2 + d5), d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d4, d5, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
// CHECK:         %[[C:.*]] = arith.constant 8 : index
// CHECK:         return %r, %[[C]], %[[H]] :
// WHY-DAG:       writes tensor<2x?x?x4xf32>
func.func @depthwise(%x: tensor<8x?x?xf32>, %o: tensor<8x?x?xf32>) -> (tensor<8x?x?xf32>, index, index) {
  %w = arith.constant dense<1.0> : tensor<8x25x25xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(h, w, c, y, x) -> (c, h + y, w + x)>, affine_map<(h, w, c, y, x) -> (c, y, x)>, affine_map<(h, w, c, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : tensor<8x?x?xf32>, tensor<8x25x25xf32>) outs(%o : tensor<8x?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<8x?x?xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d0 = tensor.dim %r, %c0 : tensor<8x?x?xf32>
  %d1 = tensor.dim %r, %c1 : tensor<8x?x?xf32>
  return %r, %d0, %d1 : tensor<8x?x?xf32>, index, index
}

// A filter is laid out from any order of its dims, and when the program runs if it is an argument.
// CHECK-LABEL: func.func @filter_of_columns
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<8x8x5x5x4x4xf32>)
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<8x29x29x4xf32>)
// WHY-DAG:       packs tensor<5x5x32x32xf32> into blocks
func.func @filter_of_columns(%x: tensor<32x33x33xf32>, %o: tensor<32x29x29xf32>, %w: tensor<5x5x32x32xf32>) -> tensor<32x29x29xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (y, x, k, c)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<32x33x33xf32>, tensor<5x5x32x32xf32>) outs(%o : tensor<32x29x29xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<32x29x29xf32>
  return %r : tensor<32x29x29xf32>
}

// Near misses. Little work is not worth the copies.
// CHECK-LABEL: func.func @no_little
// CHECK-NOT:     tensor.expand_shape
// WHY-DAG:       is not blocked: packing would cost more than blocks gain
func.func @no_little(%x: tensor<8x9x9xf32>, %o: tensor<8x9x9xf32>) -> tensor<8x9x9xf32> {
  %w = arith.constant dense<1.0> : tensor<8x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k) -> (k, h, w)>, affine_map<(c, h, w, k) -> (c, k)>, affine_map<(c, h, w, k) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x9x9xf32>, tensor<8x8xf32>) outs(%o : tensor<8x9x9xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<8x9x9xf32>
  return %r : tensor<8x9x9xf32>
}

// A matrix product has channels in its rows.
// CHECK-LABEL: func.func @no_matrix_product
// CHECK-NOT:     tensor.expand_shape
func.func @no_matrix_product(%x: tensor<512x64xf32>, %o: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %w = arith.constant dense<1.0> : tensor<512x512xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, w, k) -> (k, w)>, affine_map<(c, w, k) -> (c, k)>, affine_map<(c, w, k) -> (c, w)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<512x64xf32>, tensor<512x512xf32>) outs(%o : tensor<512x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<512x64xf32>
  return %r : tensor<512x64xf32>
}

// Vectors go along the channels already.
// CHECK-LABEL: func.func @no_innermost
// CHECK-NOT:     tensor.expand_shape
func.func @no_innermost(%x: tensor<33x33x32xf32>, %o: tensor<31x31x32xf32>) -> tensor<31x31x32xf32> {
  %w = arith.constant dense<1.0> : tensor<3x3x32x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(h, w, c, k, y, x) -> (h + y, w + x, k)>, affine_map<(h, w, c, k, y, x) -> (y, x, k, c)>, affine_map<(h, w, c, k, y, x) -> (h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<33x33x32xf32>, tensor<3x3x32x32xf32>) outs(%o : tensor<31x31x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<31x31x32xf32>
  return %r : tensor<31x31x32xf32>
}

// Seven channels do not divide into blocks of four or two.
// CHECK-LABEL: func.func @no_odd
// CHECK-NOT:     tensor.expand_shape
// WHY-DAG:       is not blocked: 7 channels of f32 do not divide into blocks
func.func @no_odd(%x: tensor<32x33x33xf32>, %o: tensor<7x31x31xf32>) -> tensor<7x31x31xf32> {
  %w = arith.constant dense<1.0> : tensor<7x32x3x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<32x33x33xf32>, tensor<7x32x3x3xf32>) outs(%o : tensor<7x31x31xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<7x31x31xf32>
  return %r : tensor<7x31x31xf32>
}

// CHECK-LABEL: func.func @no_unknown
// CHECK-NOT:     tensor.expand_shape
// WHY-DAG:       is not blocked: an unknown number of channels of f32 do not divide into blocks
func.func @no_unknown(%x: tensor<32x33x33xf32>, %o: tensor<?x31x31xf32>, %w: tensor<?x32x3x3xf32>) -> tensor<?x31x31xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<32x33x33xf32>, tensor<?x32x3x3xf32>) outs(%o : tensor<?x31x31xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<?x31x31xf32>
  return %r : tensor<?x31x31xf32>
}

// CHECK-LABEL: func.func @no_integers
// CHECK-NOT:     tensor.expand_shape
// WHY-DAG:       is not blocked: 32 channels of i32 do not divide into blocks
func.func @no_integers(%x: tensor<32x33x33xi32>, %o: tensor<32x29x29xi32>) -> tensor<32x29x29xi32> {
  %w = arith.constant dense<1> : tensor<32x32x5x5xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<32x33x33xi32>, tensor<32x32x5x5xi32>) outs(%o : tensor<32x29x29xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32): %p = arith.muli %a, %b : i32 %s = arith.addi %c, %p : i32 linalg.yield %s : i32
  } -> tensor<32x29x29xi32>
  return %r : tensor<32x29x29xi32>
}

// CHECK-LABEL: func.func @no_groups
// CHECK-NOT:     tensor.expand_shape
// WHY-DAG:       is not blocked: it is a grouped convolution
func.func @no_groups(%x: tensor<4x32x33x33xf32>, %o: tensor<4x32x29x29xf32>) -> tensor<4x32x29x29xf32> {
  %w = arith.constant dense<1.0> : tensor<4x32x32x3x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(g, c, h, w, k, y, x) -> (g, k, h + y, w + x)>, affine_map<(g, c, h, w, k, y, x) -> (g, c, k, y, x)>, affine_map<(g, c, h, w, k, y, x) -> (g, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<4x32x33x33xf32>, tensor<4x32x32x3x3xf32>) outs(%o : tensor<4x32x29x29xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<4x32x29x29xf32>
  return %r : tensor<4x32x29x29xf32>
}

// What reads channels and rows at once stays, and gets the tensor as it was.
// CHECK-LABEL: func.func @no_square
// CHECK:         %[[C:.*]] = tensor.collapse_shape {{.*}} into tensor<32x32x29xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d0, d1)>
// WHY-DAG:       for linalg.generic: it reads a diagonal
func.func @no_square(%x: tensor<32x36x33xf32>, %o: tensor<32x32x29xf32>) -> tensor<32x29xf32> {
  %w = arith.constant dense<1.0> : tensor<32x32x5x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<32x36x33xf32>, tensor<32x32x5x5xf32>) outs(%o : tensor<32x32x29xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<32x32x29xf32>
  %e = tensor.empty() : tensor<32x29xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(c, w) -> (c, c, w)>, affine_map<(c, w) -> (c, w)>], iterator_types = ["parallel", "parallel"]} ins(%r : tensor<32x32x29xf32>) outs(%e : tensor<32x29xf32>) {
  ^bb0(%a: f32, %b: f32): linalg.yield %a : f32
  } -> tensor<32x29xf32>
  return %q : tensor<32x29xf32>
}

// CHECK-LABEL: func.func @no_crossed
// WHY-DAG:       for linalg.generic: it needs another blocking than its neighbours
func.func @no_crossed(%x: tensor<32x36x33xf32>, %o: tensor<32x32x29xf32>) -> tensor<32x32x29xf32> {
  %w = arith.constant dense<1.0> : tensor<32x32x5x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<32x36x33xf32>, tensor<32x32x5x5xf32>) outs(%o : tensor<32x32x29xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<32x32x29xf32>
  %e = tensor.empty() : tensor<32x32x29xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>, affine_map<(c, h, w) -> (h, c, w)>, affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r, %r : tensor<32x32x29xf32>, tensor<32x32x29xf32>) outs(%e : tensor<32x32x29xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %s = arith.addf %a, %b : f32 linalg.yield %s : f32
  } -> tensor<32x32x29xf32>
  return %q : tensor<32x32x29xf32>
}

// CHECK-LABEL: func.func @no_cut_block
// CHECK:         tensor.extract_slice {{.*}}[2, 0, 0] [8, 29, 29] [1, 1, 1]
// WHY-DAG:       for tensor.extract_slice: the slice cuts through a block
func.func @no_cut_block(%x: tensor<32x33x33xf32>, %o: tensor<32x29x29xf32>) -> tensor<8x29x29xf32> {
  %w = arith.constant dense<1.0> : tensor<32x32x5x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<32x33x33xf32>, tensor<32x32x5x5xf32>) outs(%o : tensor<32x29x29xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<32x29x29xf32>
  %q = tensor.extract_slice %r[2, 0, 0] [8, 29, 29] [1, 1, 1] : tensor<32x29x29xf32> to tensor<8x29x29xf32>
  return %q : tensor<8x29x29xf32>
}

// CHECK-LABEL: func.func @whole_blocks
// CHECK:         tensor.extract_slice {{.*}}[1, 0, 0, 0] [2, 29, 29, 4] [1, 1, 1, 1]
func.func @whole_blocks(%x: tensor<32x33x33xf32>, %o: tensor<32x29x29xf32>) -> tensor<8x29x29xf32> {
  %w = arith.constant dense<1.0> : tensor<32x32x5x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<32x33x33xf32>, tensor<32x32x5x5xf32>) outs(%o : tensor<32x29x29xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<32x29x29xf32>
  %q = tensor.extract_slice %r[4, 0, 0] [8, 29, 29] [1, 1, 1] : tensor<32x29x29xf32> to tensor<8x29x29xf32>
  return %q : tensor<8x29x29xf32>
}

// Rows and columns may become one dim, channels and rows may not.
// CHECK-LABEL: func.func @no_flat
// CHECK:         tensor.collapse_shape {{.*}} : tensor<8x29x29x4xf32> into tensor<8x841x4xf32>
// CHECK:         tensor.collapse_shape {{.*}} : tensor<32x841xf32> into tensor<26912xf32>
// WHY-DAG:       for tensor.collapse_shape: it reshapes the channel dim
func.func @no_flat(%x: tensor<32x33x33xf32>, %o: tensor<32x29x29xf32>) -> tensor<26912xf32> {
  %w = arith.constant dense<1.0> : tensor<32x32x5x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<32x33x33xf32>, tensor<32x32x5x5xf32>) outs(%o : tensor<32x29x29xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<32x29x29xf32>
  %p0 = tensor.collapse_shape %r [[0], [1, 2]] : tensor<32x29x29xf32> into tensor<32x841xf32>
  %q = tensor.collapse_shape %p0 [[0, 1]] : tensor<32x841xf32> into tensor<26912xf32>
  return %q : tensor<26912xf32>
}

{-# dialect_resources: { builtin: { bias: "0x04000000000000000000803f0000004000004040000080400000a0400000c0400000e040" } } #-}
