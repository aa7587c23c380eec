// RUN: irees opt %s -p "irees-convert-conv2d-to-winograd{least_gain=0.0 outputs=4}" | filecheck %s
// RUN: irees opt %s -p "irees-convert-conv2d-to-winograd{least_gain=0.0 outputs=2}" | filecheck %s --check-prefix TWO
// RUN: irees opt %s -p irees-convert-conv2d-to-winograd --remarks 2>&1 >%t.out | filecheck %s --check-prefix COST

// Along the width, then along the height; 36 products; back along the width, then the height.
// 7 x 6 outputs are 2 x 2 tiles of 4 x 4, so the image is padded to 10 x 10 and the outputs cut.
// CHECK-LABEL: func.func @whole
// CHECK:         %[[Z:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x10x10xf32>)
// CHECK:         %[[P:.*]] = tensor.insert_slice %x into %[[Z]][0, 0, 0] [2, 9, 8] [1, 1, 1] : tensor<2x9x8xf32> into tensor<2x10x10xf32>
// CHECK:         %[[B:.*]] = arith.constant dense_resource<winograd_input_4_3> : tensor<6x6xf32>
// CHECK:         %[[U:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, ((d3 * 4) + d4))>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>]{{.*}} ins(%[[B]], %[[P]] : tensor<6x6xf32>, tensor<2x10x10xf32>) outs(%{{.*}} : tensor<6x2x10x2xf32>)
// CHECK:         %[[V:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d2, ((d3 * 4) + d5), d4)>, {{.*}}]{{.*}} ins(%[[B]], %[[U]] : {{.*}} outs(%{{.*}} : tensor<6x6x2x2x2xf32>)
// CHECK:         %[[G:.*]] = arith.constant dense_resource<{{.*}}> : tensor<6x6x3x2xf32>
// CHECK:         %[[M:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d5, d3, d4)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>]{{.*}} ins(%[[V]], %[[G]] :
// CHECK:         %[[A:.*]] = arith.constant dense_resource<winograd_output_4_3> : tensor<4x6xf32>
// CHECK:         %[[N:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[M]] : {{.*}} outs(%{{.*}} : tensor<6x3x2x2x4xf32>)
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[N]] : {{.*}} outs(%{{.*}} : tensor<3x2x4x2x4xf32>)
// CHECK:         %[[F:.*]] = tensor.collapse_shape %[[Y]] {{\[\[}}0], [1, 2], [3, 4]] : tensor<3x2x4x2x4xf32> into tensor<3x8x8xf32>
// CHECK:         %[[R:.*]] = tensor.extract_slice %[[F]][0, 0, 0] [3, 7, 6] [1, 1, 1]
// CHECK:         return %[[R]]
// Tiles of 2 x 2 are 4 x 3 of them.
// TWO-LABEL:   func.func @whole
// TWO:           tensor.insert_slice %x into %{{.*}}[0, 0, 0] [2, 9, 8] [1, 1, 1] : tensor<2x9x8xf32> into tensor<2x10x8xf32>
// TWO:           affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d2, ((d3 * 2) + d5), d4)>{{.*}} outs(%{{.*}} : tensor<4x4x2x4x3xf32>)
// TWO:           arith.constant dense_resource<{{.*}}> : tensor<4x4x3x2xf32>
// TWO:           tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2], [3, 4]] : tensor<3x4x2x3x2xf32> into tensor<3x8x6xf32>
func.func @whole(%x: tensor<2x9x8xf32>) -> tensor<3x7x6xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x9x8xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}

// Whole tiles are neither padded nor cut.
// CHECK-LABEL: func.func @tiles
// CHECK-NOT:     tensor.insert_slice
// CHECK-NOT:     tensor.extract_slice
// CHECK:         return %{{.*}} : tensor<3x4x8xf32>
func.func @tiles(%x: tensor<2x6x10xf32>) -> tensor<3x4x8xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %fe = tensor.empty() : tensor<3x4x8xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x4x8xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x4x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x6x10xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x4x8xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x4x8xf32>
  return %r : tensor<3x4x8xf32>
}

// What was just padded is padded once, by more; the narrower one has no use any more.
// CHECK-LABEL: func.func @padded
// CHECK:         tensor.insert_slice %x into %{{.*}} : tensor<2x7x6xf32> into tensor<2x9x8xf32>
// CHECK:         tensor.insert_slice %x into %{{.*}}[0, 1, 1] [2, 7, 6] [1, 1, 1] : tensor<2x7x6xf32> into tensor<2x10x10xf32>
// CHECK-NOT:     tensor.insert_slice
func.func @padded(%x: tensor<2x7x6xf32>) -> tensor<3x7x6xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %te = tensor.empty() : tensor<2x9x8xf32> %t = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%te : tensor<2x9x8xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<2x9x8xf32>
  %i = tensor.insert_slice %x into %t[0, 1, 1] [2, 7, 6] [1, 1, 1] : tensor<2x7x6xf32> into tensor<2x9x8xf32>
  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%i, %w : tensor<2x9x8xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}

// A padded image that others read stays, and is padded again.
// CHECK-LABEL: func.func @padded_for_two
// CHECK:         %[[I:.*]] = tensor.insert_slice %x into %{{.*}} : tensor<2x7x6xf32> into tensor<2x9x8xf32>
// CHECK:         tensor.insert_slice %[[I]] into %{{.*}}[0, 0, 0] [2, 9, 8] [1, 1, 1] : tensor<2x9x8xf32> into tensor<2x10x10xf32>
// CHECK:         return %{{.*}}, %[[I]]
func.func @padded_for_two(%x: tensor<2x7x6xf32>) -> (tensor<3x7x6xf32>, tensor<2x9x8xf32>) {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %te = tensor.empty() : tensor<2x9x8xf32> %t = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%te : tensor<2x9x8xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<2x9x8xf32>
  %i = tensor.insert_slice %x into %t[0, 1, 1] [2, 7, 6] [1, 1, 1] : tensor<2x7x6xf32> into tensor<2x9x8xf32>
  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%i, %w : tensor<2x9x8xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r, %i : tensor<3x7x6xf32>, tensor<2x9x8xf32>
}

// What is padded with anything else is part of the image.
// CHECK-LABEL: func.func @padded_by_ones
// CHECK:         %[[I:.*]] = tensor.insert_slice %x into %{{.*}} : tensor<2x7x6xf32> into tensor<2x9x8xf32>
// CHECK:         tensor.insert_slice %[[I]] into %{{.*}} : tensor<2x9x8xf32> into tensor<2x10x10xf32>
func.func @padded_by_ones(%x: tensor<2x7x6xf32>) -> tensor<3x7x6xf32> {
  %zero = arith.constant 0.0 : f32  %one = arith.constant 1.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %te = tensor.empty() : tensor<2x9x8xf32> %t = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%te : tensor<2x9x8xf32>) { ^bb0(%a: f32): linalg.yield %one : f32 } -> tensor<2x9x8xf32>
  %i = tensor.insert_slice %x into %t[0, 1, 1] [2, 7, 6] [1, 1, 1] : tensor<2x7x6xf32> into tensor<2x9x8xf32>
  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%i, %w : tensor<2x9x8xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}

// So is what is padded to a size that is not known.
// CHECK-LABEL: func.func @padded_unknown
// CHECK:         %[[I:.*]] = tensor.insert_slice %x into %{{.*}} : tensor<2x?x6xf32> into tensor<2x9x8xf32>
// CHECK:         tensor.insert_slice %[[I]] into %{{.*}} : tensor<2x9x8xf32> into tensor<2x10x10xf32>
func.func @padded_unknown(%x: tensor<2x?x6xf32>, %n: index) -> tensor<3x7x6xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %te = tensor.empty() : tensor<2x9x8xf32> %t = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%te : tensor<2x9x8xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<2x9x8xf32>
  %i = tensor.insert_slice %x into %t[0, 1, 1] [2, %n, 6] [1, 1, 1] : tensor<2x?x6xf32> into tensor<2x9x8xf32>
  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%i, %w : tensor<2x9x8xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}

// Rows that no window reaches are cut off first: a tile would round with them.
// CHECK-LABEL: func.func @unseen
// CHECK:         %[[S:.*]] = tensor.extract_slice %x[0, 0, 0] [2, 9, 8] [1, 1, 1] : tensor<2x20x8xf32> to tensor<2x9x8xf32>
// CHECK:         tensor.insert_slice %[[S]] into
func.func @unseen(%x: tensor<2x20x8xf32>) -> tensor<3x7x6xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x20x8xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}

// Channels in blocks: filter, products and output keep them.
// CHECK-LABEL: func.func @blocked
// CHECK:         arith.constant dense_resource<{{.*}}> : tensor<6x6x2x3x4x8xf32>
// CHECK:         linalg.generic {{.*}}affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d6, d3, d4, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d6, d7, d5)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4, d5)>
// CHECK:         tensor.collapse_shape {{.*}} : tensor<2x2x4x2x4x8xf32> into tensor<2x8x8x8xf32>
func.func @blocked(%x: tensor<3x10x10x4xf32>) -> tensor<2x8x8x8xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<2x3x3x3x4x8xf32>  %fe = tensor.empty() : tensor<2x8x8x8xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%fe : tensor<2x8x8x8xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<2x8x8x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, h, w, c, m, y, x, i) -> (m, h + y, w + x, i)>, affine_map<(n, h, w, c, m, y, x, i) -> (n, m, y, x, i, c)>, affine_map<(n, h, w, c, m, y, x, i) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<3x10x10x4xf32>, tensor<2x3x3x3x4x8xf32>) outs(%f : tensor<2x8x8x8xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<2x8x8x8xf32>
  return %r : tensor<2x8x8x8xf32>
}

// Left alone: steps over 1,
// CHECK-LABEL: func.func @stride
// CHECK-NOT:     winograd
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %w : 
func.func @stride(%x: tensor<2x15x13xf32>) -> tensor<3x7x6xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h * 2 + y, w * 2 + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x15x13xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}
// windows with holes,
// CHECK-LABEL: func.func @dilation
// CHECK-NOT:     winograd
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %w : 
func.func @dilation(%x: tensor<2x11x10xf32>) -> tensor<3x7x6xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y * 2, w + x * 2)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x11x10xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}
// windows that are not 3 x 3,
// CHECK-LABEL: func.func @large
// CHECK-NOT:     winograd
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %w : 
func.func @large(%x: tensor<2x11x10xf32>) -> tensor<3x7x6xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x5x5xf32>  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x11x10xf32>, tensor<3x2x5x5xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}
// nor two-dimensional,
// CHECK-LABEL: func.func @one_dim
// CHECK-NOT:     winograd
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %w : 
func.func @one_dim(%x: tensor<2x9xf32>) -> tensor<3x7xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3xf32>  %fe = tensor.empty() : tensor<3x7xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} outs(%fe : tensor<3x7xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, k, y) -> (k, h + y)>, affine_map<(c, h, k, y) -> (c, k, y)>, affine_map<(c, h, k, y) -> (c, h)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : tensor<2x9xf32>, tensor<3x2x3xf32>) outs(%f : tensor<3x7xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7xf32>
  return %r : tensor<3x7xf32>
}
// elements that are not f32,
// CHECK-LABEL: func.func @double
// CHECK-NOT:     winograd
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %w : 
func.func @double(%x: tensor<2x9x8xf64>) -> tensor<3x7x6xf64> {
  %zero = arith.constant 0.0 : f64  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf64>  %fe = tensor.empty() : tensor<3x7x6xf64> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf64>) { ^bb0(%a: f64): linalg.yield %zero : f64 } -> tensor<3x7x6xf64>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x9x8xf64>, tensor<3x2x3x3xf64>) outs(%f : tensor<3x7x6xf64>) { ^bb0(%a: f64, %b: f64, %c: f64): %p = arith.mulf %a, %b : f64 %s = arith.addf %c, %p : f64 linalg.yield %s : f64 } -> tensor<3x7x6xf64>
  return %r : tensor<3x7x6xf64>
}
// images that start elsewhere,
// CHECK-LABEL: func.func @offset
// CHECK-NOT:     winograd
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %w : 
func.func @offset(%x: tensor<2x10x8xf32>) -> tensor<3x7x6xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y + 1, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x10x8xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}
// filters that are not known,
// CHECK-LABEL: func.func @no_constant
// CHECK-NOT:     winograd
// CHECK:         return
func.func @no_constant(%x: tensor<2x9x8xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<3x7x6xf32> {
  %zero = arith.constant 0.0 : f32  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x9x8xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}
// outputs that start from something,
// CHECK-LABEL: func.func @added
// CHECK-NOT:     winograd
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %w : 
func.func @added(%x: tensor<2x9x8xf32>, %f: tensor<3x7x6xf32>) -> tensor<3x7x6xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x9x8xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}
// be it -0,
// CHECK-LABEL: func.func @minus_zero
// CHECK-NOT:     winograd
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %w : 
func.func @minus_zero(%x: tensor<2x9x8xf32>) -> tensor<3x7x6xf32> {
  %zero = arith.constant -0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x9x8xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}
// and sizes that are not known, of outputs
// CHECK-LABEL: func.func @dynamic
// CHECK-NOT:     winograd
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %w : 
func.func @dynamic(%x: tensor<2x?x8xf32>, %n: index) -> tensor<3x?x6xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %fe = tensor.empty(%n) : tensor<3x?x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x?x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x?x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x?x8xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x?x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x?x6xf32>
  return %r : tensor<3x?x6xf32>
}
// or of images.
// CHECK-LABEL: func.func @dynamic_image
// CHECK-NOT:     winograd
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %w : 
func.func @dynamic_image(%x: tensor<2x?x8xf32>) -> tensor<3x7x6xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<3x2x3x3xf32>  %fe = tensor.empty() : tensor<3x7x6xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<3x7x6xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<3x7x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x?x8xf32>, tensor<3x2x3x3xf32>) outs(%f : tensor<3x7x6xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<3x7x6xf32>
  return %r : tensor<3x7x6xf32>
}

// Many channels of a large image are worth it; few are not, nor is one pixel.
// COST:          {{\[}}passed] irees-convert-conv2d-to-winograd: F(2, 3) takes 0.73 of the direct form's cycles
// COST:          {{\[}}passed] irees-convert-conv2d-to-winograd: F(4, 3) takes 0.28 of the direct form's cycles
// COST:          {{\[}}missed] irees-convert-conv2d-to-winograd: F(2, 3) takes 28.69 of the direct form's cycles
// COST:          {{\[}}passed] irees-convert-conv2d-to-winograd: F(2, 3) takes 0.66 of the direct form's cycles
// CHECK-LABEL: func.func @deep
// CHECK:         winograd_input_4_3
func.func @deep(%x: tensor<58x58x64xf32>) -> tensor<56x56x64xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<64x64x3x3xf32>  %fe = tensor.empty() : tensor<56x56x64xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<56x56x64xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<56x56x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (h + y, w + x, k)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<58x58x64xf32>, tensor<64x64x3x3xf32>) outs(%f : tensor<56x56x64xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<56x56x64xf32>
  return %r : tensor<56x56x64xf32>
}

func.func @pixel(%x: tensor<3x3x64xf32>) -> tensor<1x1x64xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<64x64x3x3xf32>  %fe = tensor.empty() : tensor<1x1x64xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<1x1x64xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<1x1x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (h + y, w + x, k)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<3x3x64xf32>, tensor<64x64x3x3xf32>) outs(%f : tensor<1x1x64xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<1x1x64xf32>
  return %r : tensor<1x1x64xf32>
}
// Of many channels the filters of F(2, 3) are read sooner.
// CHECK-LABEL: func.func @small_image
// CHECK:         winograd_input_4_3
func.func @small_image(%x: tensor<9x9x64xf32>) -> tensor<7x7x64xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<64x64x3x3xf32>  %fe = tensor.empty() : tensor<7x7x64xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<7x7x64xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<7x7x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (h + y, w + x, k)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<9x9x64xf32>, tensor<64x64x3x3xf32>) outs(%f : tensor<7x7x64xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<7x7x64xf32>
  return %r : tensor<7x7x64xf32>
}

// Pixels along the lanes are gathered one at a time.
// COST:          {{\[}}missed] irees-convert-conv2d-to-winograd: F(4, 3) takes 4.65 of the direct form's cycles
func.func @planar(%x: tensor<8x58x58xf32>) -> tensor<8x56x56xf32> {
  %zero = arith.constant 0.0 : f32  %w = arith.constant dense<1.0> : tensor<8x8x3x3xf32>  %fe = tensor.empty() : tensor<8x56x56xf32> %f = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%fe : tensor<8x56x56xf32>) { ^bb0(%a: f32): linalg.yield %zero : f32 } -> tensor<8x56x56xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, k, y, x) -> (k, h + y, w + x)>, affine_map<(c, h, w, k, y, x) -> (c, k, y, x)>, affine_map<(c, h, w, k, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<8x58x58xf32>, tensor<8x8x3x3xf32>) outs(%f : tensor<8x56x56xf32>) { ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32 } -> tensor<8x56x56xf32>
  return %r : tensor<8x56x56xf32>
}

