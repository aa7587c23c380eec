// RUN: xdsl-opt %s -p irees-tile-attention-reduction{keys=4} | filecheck %s

// Blocks of keys and values; an index of a key counts from the first block on.
// CHECK-LABEL: func.func @blocks
// CHECK:         %[[X:.*]], %{{.*}}, %{{.*}} = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[ACC:.*]] = %o, %[[MAX:.*]] = %m, %[[SUM:.*]] = %s) -> (tensor<2x5xf32>, tensor<2xf32>, tensor<2xf32>) {
// CHECK-NEXT:      %[[K:.*]] = tensor.extract_slice %k[%[[I]], 0] [4, 8] [1, 1] : tensor<12x8xf32> to tensor<4x8xf32>
// CHECK-NEXT:      %[[V:.*]] = tensor.extract_slice %v[0, %[[I]]] [5, 4] [1, 1] : tensor<5x12xf32> to tensor<5x4xf32>
// CHECK-NEXT:      %[[Y:.*]], %[[M:.*]], %[[S:.*]] = iree_linalg_ext.online_attention {{.*}} ins(%q, %[[K]], %[[V]], %scale : tensor<2x8xf32>, tensor<4x8xf32>, tensor<5x4xf32>, f32) outs(%[[ACC]], %[[MAX]], %[[SUM]] : tensor<2x5xf32>, tensor<2xf32>, tensor<2xf32>)
// CHECK:             %[[A:.*]] = iree_linalg_ext.index 0 : index
// CHECK-NEXT:        %[[B:.*]] = iree_linalg_ext.index 1 : index
// CHECK-NEXT:        %[[AT:.*]] = arith.addi %[[B]], %[[I]] : index
// CHECK-NEXT:        arith.cmpi sle, %[[AT]], %[[A]] : index
// CHECK:           scf.yield %[[Y]], %[[M]], %[[S]] : tensor<2x5xf32>, tensor<2xf32>, tensor<2xf32>
func.func @blocks(%q: tensor<2x8xf32>, %k: tensor<12x8xf32>, %v: tensor<5x12xf32>, %scale: f32, %o: tensor<2x5xf32>, %m: tensor<2xf32>, %s: tensor<2xf32>) -> tensor<2x5xf32> {
  %r:3 = iree_linalg_ext.online_attention {indexing_maps = [affine_map<(m, n, k1, k2) -> (m, k1)>, affine_map<(m, n, k1, k2) -> (k2, k1)>, affine_map<(m, n, k1, k2) -> (n, k2)>, affine_map<(m, n, k1, k2) -> ()>, affine_map<(m, n, k1, k2) -> (m, n)>, affine_map<(m, n, k1, k2) -> (m)>, affine_map<(m, n, k1, k2) -> (m)>]} ins(%q, %k, %v, %scale : tensor<2x8xf32>, tensor<12x8xf32>, tensor<5x12xf32>, f32) outs(%o, %m, %s : tensor<2x5xf32>, tensor<2xf32>, tensor<2xf32>) {
  ^bb0(%x: f32):
    %a = iree_linalg_ext.index 0 : index
    %b = iree_linalg_ext.index 1 : index
    %c = arith.cmpi sle, %b, %a : index
    %low = arith.constant -1.0e4 : f32
    %y = arith.select %c, %x, %low : f32
    iree_linalg_ext.yield %y : f32
  } -> tensor<2x5xf32>, tensor<2xf32>, tensor<2xf32>
  return %r#0 : tensor<2x5xf32>
}

// The last block may be smaller. The mask is cut too.
// CHECK-LABEL: func.func @dynamic_mask
// CHECK:         %[[N:.*]] = tensor.dim %k, %{{.*}} : tensor<?x8xf32>
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %[[N]] step %{{.*}} iter_args
// CHECK:           %[[LEFT:.*]] = arith.subi %[[N]], %[[I]] : index
// CHECK:           %[[SIZE:.*]] = arith.minsi %{{.*}}, %[[LEFT]] : index
// CHECK:           tensor.extract_slice %k[%[[I]], 0] [%[[SIZE]], 8] [1, 1] : tensor<?x8xf32> to tensor<?x8xf32>
// CHECK:           tensor.extract_slice %mask[0, %[[I]]] [2, %[[SIZE]]] [1, 1] : tensor<2x?xi1> to tensor<2x?xi1>
// CHECK:           iree_linalg_ext.online_attention
func.func @dynamic_mask(%q: tensor<2x8xf32>, %k: tensor<?x8xf32>, %scale: f32, %mask: tensor<2x?xi1>, %o: tensor<2x8xf32>, %m: tensor<2xf32>, %s: tensor<2xf32>) -> tensor<2x8xf32> {
  %r:3 = iree_linalg_ext.online_attention {indexing_maps = [affine_map<(m, n, k1, k2) -> (m, k1)>, affine_map<(m, n, k1, k2) -> (k2, k1)>, affine_map<(m, n, k1, k2) -> (k2, n)>, affine_map<(m, n, k1, k2) -> ()>, affine_map<(m, n, k1, k2) -> (m, k2)>, affine_map<(m, n, k1, k2) -> (m, n)>, affine_map<(m, n, k1, k2) -> (m)>, affine_map<(m, n, k1, k2) -> (m)>]} ins(%q, %k, %k, %scale, %mask : tensor<2x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, f32, tensor<2x?xi1>) outs(%o, %m, %s : tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>) {
  ^bb0(%x: f32):
    iree_linalg_ext.yield %x : f32
  } -> tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>
  return %r#0 : tensor<2x8xf32>
}

// One block is no loop.
// CHECK-LABEL: func.func @no_loop
// CHECK-NOT:     scf.for
// CHECK:         iree_linalg_ext.online_attention
func.func @no_loop(%q: tensor<2x8xf32>, %k: tensor<4x8xf32>, %scale: f32, %o: tensor<2x8xf32>, %m: tensor<2xf32>, %s: tensor<2xf32>) -> tensor<2x8xf32> {
  %r:3 = iree_linalg_ext.online_attention {indexing_maps = [affine_map<(m, n, k1, k2) -> (m, k1)>, affine_map<(m, n, k1, k2) -> (k2, k1)>, affine_map<(m, n, k1, k2) -> (k2, n)>, affine_map<(m, n, k1, k2) -> ()>, affine_map<(m, n, k1, k2) -> (m, n)>, affine_map<(m, n, k1, k2) -> (m)>, affine_map<(m, n, k1, k2) -> (m)>]} ins(%q, %k, %k, %scale : tensor<2x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, f32) outs(%o, %m, %s : tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>) {
  ^bb0(%x: f32):
    iree_linalg_ext.yield %x : f32
  } -> tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>
  return %r#0 : tensor<2x8xf32>
}
