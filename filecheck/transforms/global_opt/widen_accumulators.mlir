// RUN: xdsl-opt %s -p irees-widen-accumulators --split-input-file | filecheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(m, n) -> (m, n)>

// A fill stays one; factors are widened, and the sum is rounded at its end.
// CHECK-LABEL: func.func @matmul
// CHECK:         %[[N:.*]] = tensor.dim
// CHECK:         %[[F:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8x?xf32>)
// CHECK-NEXT:    ^bb0(%{{.*}}: f32):
// CHECK-NEXT:      %[[Z:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:      linalg.yield %[[Z]]
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} ins(%a, %b : tensor<8x16xbf16>, tensor<16x?xbf16>) outs(%[[F]] : tensor<8x?xf32>)
// CHECK-NEXT:    ^bb0(%[[X:.*]]: bf16, %[[Y:.*]]: bf16, %[[ACC:.*]]: f32):
// CHECK-NEXT:      %[[XW:.*]] = arith.extf %[[X]]
// CHECK-NEXT:      %[[YW:.*]] = arith.extf %[[Y]]
// CHECK-NEXT:      %[[P:.*]] = arith.mulf %[[XW]], %[[YW]] : f32
// CHECK-NEXT:      %[[R:.*]] = arith.addf %[[ACC]], %[[P]] : f32
// CHECK-NEXT:      linalg.yield %[[R]]
// CHECK:         arith.truncf %{{.*}} : f32 to bf16
func.func @matmul(%a: tensor<8x16xbf16>, %b: tensor<16x?xbf16>, %e: tensor<8x?xbf16>) -> tensor<8x?xbf16> {
  %f = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<8x?xbf16>) {
  ^bb0(%o: bf16):
    %z = arith.constant 0.0 : bf16
    linalg.yield %z : bf16
  } -> tensor<8x?xbf16>
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<8x16xbf16>, tensor<16x?xbf16>) outs(%f : tensor<8x?xbf16>) {
  ^bb0(%x: bf16, %y: bf16, %acc: bf16):
    %p = arith.mulf %x, %y : bf16
    %s = arith.addf %acc, %p : bf16
    linalg.yield %s : bf16
  } -> tensor<8x?xbf16>
  return %r : tensor<8x?xbf16>
}

// -----

// Any init is widened; what is no product is rounded before, as it was.
// CHECK-LABEL: func.func @sum
// CHECK:         arith.extf %{{.*}} : f16 to f32
// CHECK:         ^bb0(%[[X:.*]]: f16, %[[ACC:.*]]: f32):
// CHECK-NEXT:      %[[E:.*]] = math.exp %[[X]] : f16
// CHECK-NEXT:      %[[W:.*]] = arith.extf %[[E]] : f16 to f32
// CHECK-NEXT:      %[[R:.*]] = arith.addf %[[W]], %[[ACC]] : f32
// CHECK:         arith.truncf
func.func @sum(%a: tensor<8xf16>, %c: tensor<f16>) -> tensor<f16> {
  %r = linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> ()>], iterator_types = ["reduction"]} ins(%a : tensor<8xf16>) outs(%c : tensor<f16>) {
  ^bb0(%x: f16, %acc: f16):
    %e = math.exp %x : f16
    %s = arith.addf %e, %acc : f16
    linalg.yield %s : f16
  } -> tensor<f16>
  return %r : tensor<f16>
}

// -----

// A maximum keeps its flags.
// CHECK-LABEL: func.func @maximum
// CHECK:         arith.extf %{{.*}} : f16 to f32
// CHECK:         %[[X:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK-NEXT:    arith.maximumf %[[X]], %{{.*}} fastmath<nnan> : f32
func.func @maximum(%a: tensor<8xf16>, %c: tensor<f16>) -> tensor<f16> {
  %r = linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> ()>], iterator_types = ["reduction"]} ins(%a : tensor<8xf16>) outs(%c : tensor<f16>) {
  ^bb0(%x: f16, %acc: f16):
    %s = arith.maximumf %x, %acc fastmath<nnan> : f16
    linalg.yield %s : f16
  } -> tensor<f16>
  return %r : tensor<f16>
}

// -----

// What is folded in another way stays, f32 is wide enough, and no sum is no reduction.
// CHECK-LABEL: func.func @stay
// CHECK-NOT:     arith.extf
// CHECK:         return
func.func @stay(%a: tensor<8xf16>, %b: tensor<8xf32>, %c: tensor<f16>, %d: tensor<f32>) -> (tensor<f16>, tensor<f32>, tensor<8xf16>) {
  %r = linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> ()>], iterator_types = ["reduction"]} ins(%a : tensor<8xf16>) outs(%c : tensor<f16>) {
  ^bb0(%x: f16, %acc: f16):
    %s = arith.subf %acc, %x : f16
    linalg.yield %s : f16
  } -> tensor<f16>
  %t = linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> ()>], iterator_types = ["reduction"]} ins(%b : tensor<8xf32>) outs(%d : tensor<f32>) {
  ^bb0(%x: f32, %acc: f32):
    %s = arith.addf %x, %acc : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %u = linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf16>) outs(%a : tensor<8xf16>) {
  ^bb0(%x: f16, %acc: f16):
    %s = arith.addf %x, %acc : f16
    linalg.yield %s : f16
  } -> tensor<8xf16>
  return %r, %t, %u : tensor<f16>, tensor<f32>, tensor<8xf16>
}
