// RUN: irees opt %s -p irees-form-tile-regions | filecheck %s

// The product of masked scores joins their kernel, which can then skip what the mask hides.
// CHECK-LABEL: func.func @masked
// CHECK:         flow.dispatch.region -> (tensor<8x32x16xf32>) {
// CHECK:           arith.select
// CHECK:           flow.return
// CHECK-NOT:     flow.dispatch.region
// CHECK:         return
func.func @masked(%q: tensor<8x32x16xf32>, %k: tensor<8x256x16xf32>, %v: tensor<8x256x16xf32>, %mask: tensor<256xi1>) -> tensor<8x32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32x256xf32>) -> tensor<8x32x256xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q, %k : tensor<8x32x16xf32>, tensor<8x256x16xf32>) outs(%z : tensor<8x32x256xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x32x256xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (n)>, affine_map<(b, m, n) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<8x32x256xf32>, tensor<256xi1>) outs(%e : tensor<8x32x256xf32>) {
  ^bb0(%a: f32, %b: i1, %c: f32):
    %m = arith.select %b, %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<8x32x256xf32>
  %f = tensor.empty() : tensor<8x32x16xf32>
  %g = linalg.fill ins(%zero : f32) outs(%f : tensor<8x32x16xf32>) -> tensor<8x32x16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%t, %v : tensor<8x32x256xf32>, tensor<8x256x16xf32>) outs(%g : tensor<8x32x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x32x16xf32>
  return %r : tensor<8x32x16xf32>
}
