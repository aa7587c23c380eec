// RUN: xdsl-opt %s -p irees-fold-transposes | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// A contraction reads the source of its transposed operand.
// CHECK-LABEL: func.func @operand
// CHECK-NOT:     affine_map<(d0, d1) -> (d1, d0)>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>]{{.*}} ins(%x, %w : tensor<4x8xf32>, tensor<16x8xf32>)
func.func @operand(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>, %o: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %t = linalg.generic {indexing_maps = [#transposed, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<16x8xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<8x16xf32>
  %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %t : tensor<4x8xf32>, tensor<8x16xf32>) outs(%o : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}

// Other readers of the transpose keep it.
// CHECK-LABEL: func.func @shared
// CHECK:         %[[T:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>
// CHECK:         linalg.generic {{.*}} ins(%x, %w : tensor<4x8xf32>, tensor<16x8xf32>)
// CHECK:         func.return %{{.*}}, %[[T]]
func.func @shared(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>, %o: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<8x16xf32>) {
  %e = tensor.empty() : tensor<8x16xf32>
  %t = linalg.generic {indexing_maps = [#transposed, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<16x8xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<8x16xf32>
  %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %t : tensor<4x8xf32>, tensor<8x16xf32>) outs(%o : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  return %r, %t : tensor<4x16xf32>, tensor<8x16xf32>
}

// An elementwise op is left to irees-fuse-elementwise-ops, and a broadcast is no transpose.
// CHECK-LABEL: func.func @others
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>
// CHECK:         linalg.generic {{.*}} ins(%x, %{{.*}} : tensor<4x8xf32>, tensor<8x16xf32>)
func.func @others(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %o: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<8xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<8x16xf32>
  %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %t : tensor<4x8xf32>, tensor<8x16xf32>) outs(%o : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}

// An attention reads the source of transposed keys, by another map; not that of keys that are computed.
// CHECK-LABEL: func.func @attention
// CHECK-NOT:     linalg.yield %{{.*}} : f32
// CHECK:         %[[N:.*]] = linalg.generic
// CHECK:           arith.negf
// CHECK:         iree_linalg_ext.attention {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2)>, affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d3, d1)>,
// CHECK-SAME:        ins(%q, %k, %[[N]], %scale : tensor<4x8xf32>, tensor<8x6xf32>, tensor<6x5xf32>, f32)
func.func @attention(%q: tensor<4x8xf32>, %k: tensor<8x6xf32>, %v: tensor<6x5xf32>, %scale: f32, %o: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %e = tensor.empty() : tensor<6x8xf32>
  %f = tensor.empty() : tensor<6x5xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%k : tensor<8x6xf32>) outs(%e : tensor<6x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<6x8xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%v : tensor<6x5xf32>) outs(%f : tensor<6x5xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  } -> tensor<6x5xf32>
  %r = iree_linalg_ext.attention {indexing_maps = [affine_map<(m, n, k1, k2) -> (m, k1)>, affine_map<(m, n, k1, k2) -> (k2, k1)>, affine_map<(m, n, k1, k2) -> (k2, n)>, affine_map<(m, n, k1, k2) -> ()>, affine_map<(m, n, k1, k2) -> (m, n)>]} ins(%q, %t, %n, %scale : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>, f32) outs(%o : tensor<4x5xf32>) {
  ^bb0(%x: f32):
    iree_linalg_ext.yield %x : f32
  } -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
