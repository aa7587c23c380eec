// RUN: xdsl-opt %s -p irees-fold-constants | filecheck %s

#lhs = affine_map<(d0, d1, d2) -> (d0, d2)>
#rhs = affine_map<(d0, d1, d2) -> (d2, d1)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#scalar = affine_map<(d0, d1) -> ()>

// A product of zeros and finite numbers is its init, +0.
// CHECK-LABEL: func.func @zeros
// CHECK:         %[[F:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x2xf32>)
// CHECK-NOT:     arith.mulf
// CHECK:         func.return %[[F]]
func.func @zeros() -> tensor<2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %h = arith.constant dense<0.0> : tensor<2x3xf32>
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %e = tensor.empty() : tensor<2x2xf32>
  %f = linalg.generic {indexing_maps = [#scalar, #id], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%e : tensor<2x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x2xf32>
  %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h, %w : tensor<2x3xf32>, tensor<3x2xf32>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// A product of zero and infinity is NaN.
// CHECK-LABEL: func.func @infinite
// CHECK:         arith.mulf
func.func @infinite() -> tensor<2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %h = arith.constant dense<0.0> : tensor<2x3xf32>
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 0x7F800000], [5.0, 6.0]]> : tensor<3x2xf32>
  %e = tensor.empty() : tensor<2x2xf32>
  %f = linalg.generic {indexing_maps = [#scalar, #id], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%e : tensor<2x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x2xf32>
  %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h, %w : tensor<2x3xf32>, tensor<3x2xf32>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// An argument may hold NaN.
// CHECK-LABEL: func.func @argument
// CHECK:         arith.mulf
func.func @argument(%w: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %h = arith.constant dense<0.0> : tensor<2x3xf32>
  %e = tensor.empty() : tensor<2x2xf32>
  %f = linalg.generic {indexing_maps = [#scalar, #id], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%e : tensor<2x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x2xf32>
  %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h, %w : tensor<2x3xf32>, tensor<3x2xf32>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// Ones are no zeros.
// CHECK-LABEL: func.func @ones
// CHECK:         arith.mulf
func.func @ones() -> tensor<2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %h = arith.constant dense<1.0> : tensor<2x3xf32>
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %e = tensor.empty() : tensor<2x2xf32>
  %f = linalg.generic {indexing_maps = [#scalar, #id], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%e : tensor<2x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x2xf32>
  %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h, %w : tensor<2x3xf32>, tensor<3x2xf32>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// A table of 128 KiB, read by index from one of 8 bytes, is folded.
// CHECK-LABEL: func.func @gather
// CHECK:         arith.constant dense_resource<{{.*}}> : tensor<256x128xf32>
// CHECK-NOT:     tensor.extract
// CHECK:         func.return
func.func @gather() -> tensor<256x128xf32> {
  %t = arith.constant dense<[0.5, 2.0]> : tensor<2xf32>
  %two = arith.constant 2 : index
  %e = tensor.empty() : tensor<256x128xf32>
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<256x128xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.addi %i, %j : index
    %k = arith.remui %s, %two : index
    %v = tensor.extract %t[%k] : tensor<2xf32>
    linalg.yield %v : f32
  } -> tensor<256x128xf32>
  return %r : tensor<256x128xf32>
}
