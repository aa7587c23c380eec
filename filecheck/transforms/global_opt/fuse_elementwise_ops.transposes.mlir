// RUN: xdsl-opt %s -p irees-fuse-elementwise-ops | filecheck %s

// A norm over the channels of an image, written as one over the last dim of its transpose: the sums and
// the scaled image read rows of the image itself.
// CHECK-LABEL: func.func @norm_of_channels
// CHECK-NOT:     linalg.yield %{{.*}} : f32
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf32>)
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %{{.*}} : tensor<8x64xf32>, tensor<64xf32>)
func.func @norm_of_channels(%x: tensor<8x64xf32>, %z: tensor<64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<64x8xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x64xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<64x8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%t : tensor<64x8xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %c = arith.addf %acc, %a : f32
    linalg.yield %c : f32
  } -> tensor<64xf32>
  %f = tensor.empty() : tensor<8x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (i)>, affine_map<(j, i) -> (j, i)>], iterator_types = ["parallel", "parallel"]} ins(%t, %s : tensor<64x8xf32>, tensor<64xf32>) outs(%f : tensor<8x64xf32>) {
  ^bb0(%a: f32, %m: f32, %b: f32):
    %c = arith.subf %a, %m : f32
    linalg.yield %c : f32
  } -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}

// A result in the order of the transpose would be strided in one of the two.
// CHECK-LABEL: func.func @both_orders
// CHECK:         %[[T:.*]] = linalg.generic
// CHECK-NEXT:    ^{{.*}}(%[[A:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      linalg.yield %[[A]] : f32
// CHECK:         linalg.generic {{.*}} ins(%[[T]] : tensor<64x8xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[T]] : tensor<64x8xf32>)
func.func @both_orders(%x: tensor<8x64xf32>) -> (tensor<64x8xf32>, tensor<64x8xf32>) {
  %e = tensor.empty() : tensor<64x8xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x64xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<64x8xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  } -> tensor<64x8xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.exp %a : f32
    linalg.yield %c : f32
  } -> tensor<64x8xf32>
  return %p, %q : tensor<64x8xf32>, tensor<64x8xf32>
}
