// RUN: xdsl-opt %s -p irees-decompose-attention | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="gpu.l2_bytes=64"},irees-decompose-attention' | filecheck %s --check-prefix KEPT
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="gpu.l2_bytes=96"},irees-decompose-attention' | filecheck %s --check-prefix SMALL
// RUN: xdsl-opt %s -p "irees-decompose-attention{reciprocal=true}" | filecheck %s --check-prefix RECIPROCAL

// Scores, their softmax over the keys, and the product with the values; the scale and the region are
// one op. As in IREE, a region computes with exponents of two: the score times log2(e).
// CHECK-LABEL: func.func @attention
// CHECK:         %[[S:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%q, %k : tensor<4x8xf32>, tensor<6x8xf32>) outs(%{{.*}} : tensor<4x6xf32>)
// CHECK:           arith.mulf
// CHECK-NEXT:      arith.addf
// CHECK:         %[[T:.*]] = linalg.generic {{.*}} ins(%[[S]], %scale : tensor<4x6xf32>, f32) outs(%{{.*}} : tensor<4x6xf32>)
// CHECK:           %[[SCALED:.*]] = arith.mulf
// CHECK-NEXT:      %[[LOG2E:.*]] = arith.constant 1.442695{{.*}} : f32
// CHECK-NEXT:      %[[EXPONENT:.*]] = arith.mulf %[[SCALED]], %[[LOG2E]]
// CHECK-NEXT:      %[[TANH:.*]] = math.tanh %[[EXPONENT]]
// CHECK-NEXT:      %[[LN2:.*]] = arith.constant 0.693147{{.*}} : f32
// CHECK-NEXT:      arith.mulf %[[TANH]], %[[LN2]]
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[T]] : tensor<4x6xf32>)
// CHECK:           arith.maxnumf
// CHECK:           math.exp
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<4x6xf32>)
// CHECK:           arith.divf
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[P]], %v : tensor<4x6xf32>, tensor<6x5xf32>) outs(%{{.*}} : tensor<4x5xf32>)
// CHECK:         func.return %[[R]]
// 96 bytes of scores are more than 64, and no more than 96; a size that nobody knows is not kept.
// KEPT-LABEL: func.func @attention
// KEPT:         iree_linalg_ext.attention
// KEPT-LABEL: func.func @dynamic_mask
// KEPT-NOT:     iree_linalg_ext.attention
// KEPT-LABEL: func.func @online
// SMALL-LABEL: func.func @attention
// SMALL-NOT:     iree_linalg_ext.attention
// SMALL-LABEL: func.func @dynamic_mask
// RECIPROCAL-LABEL: func.func @attention
// RECIPROCAL:      %[[I:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
// RECIPROCAL-NEXT: arith.mulf %{{.*}}, %[[I]] : f32
func.func @attention(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %scale: f32, %o: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %r = iree_linalg_ext.attention {indexing_maps = [affine_map<(m, n, k1, k2) -> (m, k1)>, affine_map<(m, n, k1, k2) -> (k2, k1)>, affine_map<(m, n, k1, k2) -> (k2, n)>, affine_map<(m, n, k1, k2) -> ()>, affine_map<(m, n, k1, k2) -> (m, n)>]} ins(%q, %k, %v, %scale : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>, f32) outs(%o : tensor<4x5xf32>) {
  ^bb0(%x: f32):
    %y = math.tanh %x : f32
    iree_linalg_ext.yield %y : f32
  } -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// A mask of bits is 0 or -infinity. Half floats are computed in f32 and rounded at the end.
// CHECK-LABEL: func.func @dynamic_mask
// CHECK:         linalg.generic {{.*}} ins(%q, %k : tensor<?x8xf16>, tensor<?x8xf16>) outs(%{{.*}} : tensor<?x?xf32>)
// CHECK:           arith.extf
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %scale, %mask : tensor<?x?xf32>, f16, tensor<?x?xi1>) outs(%{{.*}} : tensor<?x?xf32>)
// CHECK:           arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:      arith.addf
// CHECK:         linalg.generic {{.*}} outs(%o : tensor<?x8xf16>)
// CHECK:           arith.truncf
func.func @dynamic_mask(%q: tensor<?x8xf16>, %k: tensor<?x8xf16>, %scale: f16, %mask: tensor<?x?xi1>, %o: tensor<?x8xf16>) -> tensor<?x8xf16> {
  %r = iree_linalg_ext.attention {indexing_maps = [affine_map<(m, n, k1, k2) -> (m, k1)>, affine_map<(m, n, k1, k2) -> (k2, k1)>, affine_map<(m, n, k1, k2) -> (k2, n)>, affine_map<(m, n, k1, k2) -> ()>, affine_map<(m, n, k1, k2) -> (m, k2)>, affine_map<(m, n, k1, k2) -> (m, n)>]} ins(%q, %k, %k, %scale, %mask : tensor<?x8xf16>, tensor<?x8xf16>, tensor<?x8xf16>, f16, tensor<?x?xi1>) outs(%o : tensor<?x8xf16>) {
  ^bb0(%x: f32):
    iree_linalg_ext.yield %x : f32
  } -> tensor<?x8xf16>
  return %r : tensor<?x8xf16>
}

// The running maximum and sum are updated, and the result is not divided.
// CHECK-LABEL: func.func @online
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%{{.*}} : tensor<4x6xf32>) outs(%m : tensor<4xf32>)
// CHECK:           arith.maximumf
// CHECK:         %[[F:.*]] = linalg.generic {{.*}} ins(%m, %[[M]] : tensor<4xf32>, tensor<4xf32>)
// CHECK:           arith.cmpf oeq
// CHECK:         linalg.generic {{.*}} ins(%s, %[[F]] : tensor<4xf32>, tensor<4xf32>)
// CHECK:           arith.mulf
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]}
// CHECK:           arith.addf
// CHECK:         %[[O:.*]] = linalg.generic {{.*}} ins(%o, %[[F]] : tensor<4x5xf32>, tensor<4xf32>)
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} outs(%[[O]] : tensor<4x5xf32>)
// CHECK:         func.return %[[R]], %[[M]], %[[S]]
func.func @online(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %scale: f32, %o: tensor<4x5xf32>, %m: tensor<4xf32>, %s: tensor<4xf32>) -> (tensor<4x5xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r:3 = iree_linalg_ext.online_attention {indexing_maps = [affine_map<(m, n, k1, k2) -> (m, k1)>, affine_map<(m, n, k1, k2) -> (k2, k1)>, affine_map<(m, n, k1, k2) -> (k2, n)>, affine_map<(m, n, k1, k2) -> ()>, affine_map<(m, n, k1, k2) -> (m, n)>, affine_map<(m, n, k1, k2) -> (m)>, affine_map<(m, n, k1, k2) -> (m)>]} ins(%q, %k, %v, %scale : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>, f32) outs(%o, %m, %s : tensor<4x5xf32>, tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%x: f32):
    iree_linalg_ext.yield %x : f32
  } -> tensor<4x5xf32>, tensor<4xf32>, tensor<4xf32>
  return %r#0, %r#1, %r#2 : tensor<4x5xf32>, tensor<4xf32>, tensor<4xf32>
}

// In memory there is nothing to replace it by.
// CHECK-LABEL: func.func @no_memref
// CHECK:         iree_linalg_ext.attention
func.func @no_memref(%q: memref<4x8xf32>, %scale: f32, %o: memref<4x8xf32>) {
  iree_linalg_ext.attention {indexing_maps = [affine_map<(m, n, k1, k2) -> (m, k1)>, affine_map<(m, n, k1, k2) -> (k2, k1)>, affine_map<(m, n, k1, k2) -> (k2, n)>, affine_map<(m, n, k1, k2) -> ()>, affine_map<(m, n, k1, k2) -> (m, n)>]} ins(%q, %q, %q, %scale : memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>, f32) outs(%o : memref<4x8xf32>) {
  ^bb0(%x: f32):
    iree_linalg_ext.yield %x : f32
  }
  return
}

// Rows of -infinity give 0: the maximum is replaced by 0, the sum by 1. Weights are rounded to values of 16 bits.
// CHECK-LABEL: func.func @zero_masked_rows
// CHECK:           arith.maxnumf
// CHECK:           %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK-NEXT:      arith.cmpf oeq, %{{.*}}, %[[LOW]] : f32
// CHECK:           math.exp
// CHECK:           %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:      arith.cmpf oeq, %{{.*}}, %[[ZERO]] : f32
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<4x6xf16>)
// CHECK:           arith.divf
// CHECK-NEXT:      arith.truncf
// CHECK:         linalg.generic {{.*}} ins(%[[P]], %v : tensor<4x6xf16>, tensor<6x5xf16>) outs(%{{.*}} : tensor<4x5xf32>)
func.func @zero_masked_rows(%q: tensor<4x8xf16>, %k: tensor<6x8xf16>, %v: tensor<6x5xf16>, %scale: f32, %mask: tensor<4x6xf32>, %o: tensor<4x5xf16>) -> tensor<4x5xf16> {
  %r = iree_linalg_ext.attention {indexing_maps = [affine_map<(m, n, k1, k2) -> (m, k1)>, affine_map<(m, n, k1, k2) -> (k2, k1)>, affine_map<(m, n, k1, k2) -> (k2, n)>, affine_map<(m, n, k1, k2) -> ()>, affine_map<(m, n, k1, k2) -> (m, k2)>, affine_map<(m, n, k1, k2) -> (m, n)>], zero_masked_rows} ins(%q, %k, %v, %scale, %mask : tensor<4x8xf16>, tensor<6x8xf16>, tensor<6x5xf16>, f32, tensor<4x6xf32>) outs(%o : tensor<4x5xf16>) {
  ^bb0(%x: f32):
    iree_linalg_ext.yield %x : f32
  } -> tensor<4x5xf16>
  return %r : tensor<4x5xf16>
}
