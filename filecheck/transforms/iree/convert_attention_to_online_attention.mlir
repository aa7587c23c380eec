// RUN: xdsl-opt %s -p irees-convert-attention-to-online-attention | filecheck %s

// Zeros and the lowest number to start from, a division at the end; the region stays.
// CHECK-LABEL: func.func @attention
// CHECK:         %[[ACC:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<2x4x5xf32>)
// CHECK:         %[[LOW:.*]] = arith.constant -3.40282347e+38 : f32
// CHECK:         %[[MAX:.*]] = linalg.fill ins(%[[LOW]] : f32) outs(%{{.*}} : tensor<2x4xf32>)
// CHECK:         %[[SUM:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<2x4xf32>)
// CHECK:         %[[X:.*]], %{{.*}}, %[[S:.*]] = iree_linalg_ext.online_attention
// CHECK-SAME:        affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1)>]
// CHECK-SAME:        ins(%q, %k, %v, %scale : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x5xf32>, f32) outs(%[[ACC]], %[[MAX]], %[[SUM]] : tensor<2x4x5xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK:           math.tanh
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]} ins(%[[X]], %[[S]] : tensor<2x4x5xf32>, tensor<2x4xf32>) outs(%o : tensor<2x4x5xf32>)
// CHECK:           arith.divf
// CHECK:         func.return %[[R]]
func.func @attention(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x5xf32>, %scale: f32, %o: tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
  %r = iree_linalg_ext.attention {indexing_maps = [affine_map<(b, m, n, k1, k2) -> (b, m, k1)>, affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>, affine_map<(b, m, n, k1, k2) -> (b, k2, n)>, affine_map<(b, m, n, k1, k2) -> ()>, affine_map<(b, m, n, k1, k2) -> (b, m, n)>]} ins(%q, %k, %v, %scale : tensor<2x4x8xf32>, tensor<2x6x8xf32>, tensor<2x6x5xf32>, f32) outs(%o : tensor<2x4x5xf32>) {
  ^bb0(%x: f32):
    %y = math.tanh %x : f32
    iree_linalg_ext.yield %y : f32
  } -> tensor<2x4x5xf32>
  return %r : tensor<2x4x5xf32>
}

// Half floats are kept in f32; the mask stays, dynamic sizes are those of the operands.
// CHECK-LABEL: func.func @dynamic_mask
// CHECK:         iree_linalg_ext.online_attention {{.*}} ins(%q, %k, %k, %scale, %mask : tensor<?x8xf16>, tensor<?x8xf16>, tensor<?x8xf16>, f16, tensor<?x?xi1>) outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<?xf32>, tensor<?xf32>)
// CHECK:         linalg.generic {{.*}} outs(%o : tensor<?x8xf16>)
// CHECK:           arith.divf
// CHECK-NEXT:      arith.truncf
func.func @dynamic_mask(%q: tensor<?x8xf16>, %k: tensor<?x8xf16>, %scale: f16, %mask: tensor<?x?xi1>, %o: tensor<?x8xf16>) -> tensor<?x8xf16> {
  %r = iree_linalg_ext.attention {indexing_maps = [affine_map<(m, n, k1, k2) -> (m, k1)>, affine_map<(m, n, k1, k2) -> (k2, k1)>, affine_map<(m, n, k1, k2) -> (k2, n)>, affine_map<(m, n, k1, k2) -> ()>, affine_map<(m, n, k1, k2) -> (m, k2)>, affine_map<(m, n, k1, k2) -> (m, n)>]} ins(%q, %k, %k, %scale, %mask : tensor<?x8xf16>, tensor<?x8xf16>, tensor<?x8xf16>, f16, tensor<?x?xi1>) outs(%o : tensor<?x8xf16>) {
  ^bb0(%x: f32):
    iree_linalg_ext.yield %x : f32
  } -> tensor<?x8xf16>
  return %r : tensor<?x8xf16>
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

// Rows without a score above -infinity are divided by 1.
// CHECK-LABEL: func.func @zero_masked_rows
// CHECK:         %{{.*}}, %{{.*}}, %[[S:.*]] = iree_linalg_ext.online_attention
// CHECK:         %[[ONE:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<4xf32>)
// CHECK:           arith.cmpf oeq
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %[[ONE]] :
// CHECK:           arith.divf
func.func @zero_masked_rows(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %scale: f32, %o: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %r = iree_linalg_ext.attention {indexing_maps = [affine_map<(m, n, k1, k2) -> (m, k1)>, affine_map<(m, n, k1, k2) -> (k2, k1)>, affine_map<(m, n, k1, k2) -> (k2, n)>, affine_map<(m, n, k1, k2) -> ()>, affine_map<(m, n, k1, k2) -> (m, n)>], zero_masked_rows} ins(%q, %k, %v, %scale : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>, f32) outs(%o : tensor<4x5xf32>) {
  ^bb0(%x: f32):
    iree_linalg_ext.yield %x : f32
  } -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
