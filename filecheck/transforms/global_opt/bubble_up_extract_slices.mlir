// RUN: xdsl-opt %s -p irees-bubble-up-extract-slices | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>
#in = affine_map<(b, s, i, h) -> (b, s, i, h)>
#out = affine_map<(b, s, i, h) -> (i, b, h, s)>

// Parts of a transposed tensor are transposed parts, without the loop that picks one; what drops its dim goes.
// CHECK-LABEL: func.func @parts
// CHECK:         %[[P:.*]] = tensor.extract_slice %x[0, 0, 0, 0] [2, 9, 1, 4] [1, 1, 1, 1] : tensor<2x9x3x4xf32> to tensor<2x9x4xf32>
// CHECK:         %[[Q:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2, d1)>]{{.*}} ins(%[[P]] : tensor<2x9x4xf32>) outs(%{{.*}} : tensor<2x4x9xf32>)
// CHECK:         %[[S:.*]] = tensor.extract_slice %x[0, 0, 2, 0] [2, 9, 1, 4] [1, 1, 1, 1] : tensor<2x9x3x4xf32> to tensor<2x9x4xf32>
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<2x9x4xf32>) outs(%{{.*}} : tensor<2x4x9xf32>)
// CHECK:         %[[V:.*]] = tensor.expand_shape %[[R]] {{\[\[}}0, 1], [2], [3]] output_shape [1, 2, 4, 9]
// CHECK-NEXT:    func.return %[[Q]], %[[V]]
func.func @parts(%x: tensor<2x9x3x4xf32>) -> (tensor<2x4x9xf32>, tensor<1x2x4x9xf32>) {
  %e = tensor.empty() : tensor<3x2x4x9xf32>
  %t = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<2x9x3x4xf32>) outs(%e : tensor<3x2x4x9xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<3x2x4x9xf32>
  %p = tensor.extract_slice %t[0, 0, 0, 0] [1, 2, 4, 9] [1, 1, 1, 1] : tensor<3x2x4x9xf32> to tensor<1x2x4x9xf32>
  %q = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<1x2x4x9xf32> into tensor<2x4x9xf32>
  %v = tensor.extract_slice %t[2, 0, 0, 0] [1, 2, 4, 9] [1, 1, 1, 1] : tensor<3x2x4x9xf32> to tensor<1x2x4x9xf32>
  return %q, %v : tensor<2x4x9xf32>, tensor<1x2x4x9xf32>
}

// One element of a splat is a tensor still.
// CHECK-LABEL: func.func @one_of_a_splat
// CHECK:         linalg.generic {{.*}} ins(%c : f32) outs(%{{.*}} : tensor<f32>)
func.func @one_of_a_splat(%c: f32) -> tensor<1xf32> {
  %e = tensor.empty() : tensor<2xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%c : f32) outs(%e : tensor<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2xf32>
  %p = tensor.extract_slice %s[0] [1] [1] : tensor<2xf32> to tensor<1xf32>
  return %p : tensor<1xf32>
}

// A copy that keeps the order of the dims is the part itself.
// CHECK-LABEL: func.func @copy
// CHECK-NEXT:    %[[P:.*]] = tensor.extract_slice %x[%n, 1] [%m, 2] [1, 1] : tensor<?x5xf32> to tensor<?x2xf32>
// CHECK-NEXT:    func.return %[[P]]
func.func @copy(%x: tensor<?x5xf32>, %e: tensor<?x5xf32>, %n: index, %m: index) -> tensor<?x2xf32> {
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x5xf32>) outs(%e : tensor<?x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?x5xf32>
  %p = tensor.extract_slice %t[%n, 1] [%m, 2] [1, 1] : tensor<?x5xf32> to tensor<?x2xf32>
  return %p : tensor<?x2xf32>
}

// Arithmetic that one slice reads is done for the slice; an operand without the dim stays whole.
// CHECK-LABEL: func.func @arithmetic
// CHECK:         %[[X:.*]] = tensor.extract_slice %x[0, 1] [4, 2] [1, 1] : tensor<4x5xf32> to tensor<4x2xf32>
// CHECK-NOT:     tensor.extract_slice
// CHECK:         linalg.generic {{.*}} ins(%[[X]], %y : tensor<4x2xf32>, tensor<4xf32>) outs(%{{.*}} : tensor<4x2xf32>)
// CHECK:           arith.addf
func.func @arithmetic(%x: tensor<4x5xf32>, %y: tensor<4xf32>, %e: tensor<4x5xf32>) -> tensor<4x2xf32> {
  %t = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1) -> (d0)>, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<4x5xf32>, tensor<4xf32>) outs(%e : tensor<4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x5xf32>
  %p = tensor.extract_slice %t[0, 1] [4, 2] [1, 1] : tensor<4x5xf32> to tensor<4x2xf32>
  return %p : tensor<4x2xf32>
}

// Heads of a part are a part of all heads.
// CHECK-LABEL: func.func @heads
// CHECK-NEXT:    %[[E:.*]] = tensor.expand_shape %x {{\[\[}}0], [1, 2]] output_shape [7, 6, 4] : tensor<7x24xf32> into tensor<7x6x4xf32>
// CHECK-NEXT:    %[[P:.*]] = tensor.extract_slice %[[E]][0, 2, 0] [7, 2, 4] [1, 1, 1] : tensor<7x6x4xf32> to tensor<7x2x4xf32>
// CHECK-NEXT:    func.return %[[P]]
func.func @heads(%x: tensor<7x24xf32>) -> tensor<7x2x4xf32> {
  %p = tensor.extract_slice %x[0, 8] [7, 8] [1, 1] : tensor<7x24xf32> to tensor<7x8xf32>
  %h = tensor.expand_shape %p [[0], [1, 2]] output_shape [7, 2, 4] : tensor<7x8xf32> into tensor<7x2x4xf32>
  return %h : tensor<7x2x4xf32>
}

// A part that begins within a head, steps, another reader, and arithmetic of two parts stay.
// CHECK-LABEL: func.func @no_parts
// CHECK:         tensor.extract_slice %x
// CHECK-NEXT:    tensor.expand_shape
// CHECK:         %[[T:.*]] = linalg.generic
// CHECK:         tensor.extract_slice %[[T]][0, 0] [2, 4] [2, 1]
// CHECK:         %[[U:.*]] = linalg.generic
// CHECK:         tensor.extract_slice %[[U]]
// CHECK-NEXT:    tensor.extract_slice %[[U]]
func.func @no_parts(%x: tensor<7x24xf32>, %y: tensor<4x4xf32>, %e: tensor<4x4xf32>) -> (tensor<7x2x4xf32>, tensor<2x4xf32>, tensor<1x4xf32>, tensor<2x4xf32>) {
  %p = tensor.extract_slice %x[0, 2] [7, 8] [1, 1] : tensor<7x24xf32> to tensor<7x8xf32>
  %h = tensor.expand_shape %p [[0], [1, 2]] output_shape [7, 2, 4] : tensor<7x8xf32> into tensor<7x2x4xf32>
  %t = linalg.generic {indexing_maps = [#id, #t], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x4xf32>
  %q = tensor.extract_slice %t[0, 0] [2, 4] [2, 1] : tensor<4x4xf32> to tensor<2x4xf32>
  %u = linalg.generic {indexing_maps = [#id, #t], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.negf %a : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %r = tensor.extract_slice %u[0, 0] [1, 4] [1, 1] : tensor<4x4xf32> to tensor<1x4xf32>
  %s = tensor.extract_slice %u[1, 0] [2, 4] [1, 1] : tensor<4x4xf32> to tensor<2x4xf32>
  return %h, %q, %r, %s : tensor<7x2x4xf32>, tensor<2x4xf32>, tensor<1x4xf32>, tensor<2x4xf32>
}

// Dims of size 1 between a transposition and its parts are skipped: a batch of one.
// CHECK-LABEL: func.func @batch_of_one
// CHECK:         %[[P:.*]] = tensor.extract_slice %x[0, 1, 0] [9, 1, 4] [1, 1, 1] : tensor<9x3x4xf32> to tensor<9x4xf32>
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ins(%[[P]] : tensor<9x4xf32>) outs(%{{.*}} : tensor<4x9xf32>)
// CHECK-NEXT:    ^{{.*}}
// CHECK:         func.return %[[R]]
func.func @batch_of_one(%x: tensor<9x3x4xf32>) -> tensor<4x9xf32> {
  %e = tensor.empty() : tensor<3x4x9xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(s, i, h) -> (s, i, h)>, affine_map<(s, i, h) -> (i, h, s)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<9x3x4xf32>) outs(%e : tensor<3x4x9xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<3x4x9xf32>
  %b = tensor.expand_shape %t [[0, 1], [2], [3]] output_shape [3, 1, 4, 9] : tensor<3x4x9xf32> into tensor<3x1x4x9xf32>
  %p = tensor.extract_slice %b[1, 0, 0, 0] [1, 1, 4, 9] [1, 1, 1, 1] : tensor<3x1x4x9xf32> to tensor<1x1x4x9xf32>
  %q = tensor.collapse_shape %p [[0, 1, 2], [3]] : tensor<1x1x4x9xf32> into tensor<4x9xf32>
  return %q : tensor<4x9xf32>
}

// A part of a dim of size 1 that is empty, or of a size that is not known, keeps the dim; so does an op whose result lacks a loop.
// CHECK-LABEL: func.func @no_empty_parts
// CHECK:         %[[B:.*]] = tensor.expand_shape %x
// CHECK-NEXT:    tensor.extract_slice %[[B]][0, 0] [0, 4]
// CHECK-NEXT:    tensor.extract_slice %[[B]][0, 0] [%n, 4]
// CHECK:         %[[T:.*]] = linalg.generic
// CHECK:         tensor.extract_slice %[[T]]
func.func @no_empty_parts(%x: tensor<4xf32>, %y: tensor<4x3xf32>, %e: tensor<4xf32>, %n: index) -> (tensor<0x4xf32>, tensor<?x4xf32>, tensor<2xf32>) {
  %b = tensor.expand_shape %x [[0, 1]] output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>
  %p = tensor.extract_slice %b[0, 0] [0, 4] [1, 1] : tensor<1x4xf32> to tensor<0x4xf32>
  %q = tensor.extract_slice %b[0, 0] [%n, 4] [1, 1] : tensor<1x4xf32> to tensor<?x4xf32>
  %t = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x3xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  %r = tensor.extract_slice %t[1] [2] [1] : tensor<4xf32> to tensor<2xf32>
  return %p, %q, %r : tensor<0x4xf32>, tensor<?x4xf32>, tensor<2xf32>
}

// The other elements may stop the program.
// CHECK-LABEL: func.func @no_assertions
// CHECK:         cf.assert
// CHECK:         tensor.extract_slice
func.func @no_assertions(%x: tensor<8x8xf32>) -> tensor<2x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.cmpf oge, %a, %zero : f32
    cf.assert %c, "negative"
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8x8xf32>
  %s = tensor.extract_slice %r[0, 0] [2, 8] [1, 1] : tensor<8x8xf32> to tensor<2x8xf32>
  return %s : tensor<2x8xf32>
}
