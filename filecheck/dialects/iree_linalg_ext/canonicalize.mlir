// RUN: xdsl-opt %s -p canonicalize | filecheck %s

// The offsets go to the dims that the map names; IREE's fold applies its inverse, which is
// another one from three dims on.
// CHECK-LABEL: func.func @gather_one_slice
// CHECK:         %[[I:.*]] = tensor.extract %i[%{{.*}}, %[[C0:.*]]]
// CHECK:         %[[I0:.*]] = arith.index_cast %[[I]]
// CHECK:         %[[I1:.*]] = arith.index_cast
// CHECK:         %[[I2:.*]] = arith.index_cast
// CHECK:         %[[S:.*]] = tensor.extract_slice %x[%[[I2]], %[[I0]], %[[I1]], 0] [1, 1, 1, 7] [1, 1, 1, 1]
// CHECK:         tensor.collapse_shape %[[S]] [[0, 1, 2], [3]]
func.func @gather_one_slice(%x: tensor<2x3x4x7xf32>, %i: tensor<1x3xi32>, %o: tensor<1x7xf32>) -> tensor<1x7xf32> {
  %r = iree_linalg_ext.gather dimension_map = [1, 2, 0]
      ins(%x, %i : tensor<2x3x4x7xf32>, tensor<1x3xi32>) outs(%o : tensor<1x7xf32>) -> tensor<1x7xf32>
  return %r : tensor<1x7xf32>
}

// Two slices, or a mask, stay a gather.
// CHECK-LABEL: func.func @gather_more
// CHECK-COUNT-2: iree_linalg_ext.gather
func.func @gather_more(%x: tensor<4x7xf32>, %i: tensor<2xi32>, %j: tensor<1xi32>, %m: tensor<1xi1>, %o: tensor<2x7xf32>, %p: tensor<1x7xf32>) -> (tensor<2x7xf32>, tensor<1x7xf32>) {
  %r = iree_linalg_ext.gather dimension_map = [0]
      ins(%x, %i : tensor<4x7xf32>, tensor<2xi32>) outs(%o : tensor<2x7xf32>) -> tensor<2x7xf32>
  %s = iree_linalg_ext.gather dimension_map = [0]
      ins(%x, %j, %m : tensor<4x7xf32>, tensor<1xi32>, tensor<1xi1>) outs(%p : tensor<1x7xf32>) -> tensor<1x7xf32>
  return %r, %s : tensor<2x7xf32>, tensor<1x7xf32>
}

// CHECK-LABEL: func.func @identity_map_store
// CHECK:         linalg.copy ins(%x : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>)
func.func @identity_map_store(%x: tensor<4x8xf32>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %true = arith.constant true
  %r = iree_linalg_ext.map_store %x into %o {
  ^bb0(%a: index, %b: index):
    iree_linalg_ext.yield %a, %b, %true : index, index, i1
  } : tensor<4x8xf32> into tensor<4x8xf32> -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// What is stored may be smaller than where: IREE copies here, which is wrong then.
// CHECK-LABEL: func.func @dynamic_map_store
// CHECK:         %[[D:.*]] = tensor.dim %x
// CHECK:         tensor.insert_slice %x into %o[0] [%[[D]]] [1]
func.func @dynamic_map_store(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %true = arith.constant true
  %r = iree_linalg_ext.map_store %x into %o {
  ^bb0(%a: index):
    iree_linalg_ext.yield %a, %true : index, i1
  } : tensor<?xf32> into tensor<?xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// A low pad of the output moves the matrix: IREE's fold leaves the offsets at 0, so that the rows
// that the pad pushes back are lost.
// CHECK-LABEL: func.func @pads_of_im2col
// CHECK-NOT:     tensor.pad
// CHECK:         iree_linalg_ext.im2col strides = [1, 1] dilations = [1, 1] kernel_size = [3, 3] offsets = [0, -16, 0]
// CHECK-SAME:    input_pad_low = [0, 1, 1, 0] input_pad_high = [0, 1, 1, 0] output_pad_low = [0, 16, 0] output_pad_high = [0, 0, 0]
func.func @pads_of_im2col(%x: tensor<2x32x32x64xf32>) -> tensor<2x1040x576xf32> {
  %c = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %c : f32
  } : tensor<2x32x32x64xf32> to tensor<2x34x34x64xf32>
  %e = tensor.empty() : tensor<2x1024x576xf32>
  %r = iree_linalg_ext.im2col strides = [1, 1] dilations = [1, 1] kernel_size = [3, 3]
      offsets = [0, 0, 0] output_sizes = [[2], [32, 32], [3, 3, 64]]
      batch_pos = [0] m_pos = [1, 2] k_pos = [3] input_k_perm = [0, 1, 2] output_perm = [0, 1, 2]
      ins(%p : tensor<2x34x34x64xf32>) outs(%e : tensor<2x1024x576xf32>) -> tensor<2x1024x576xf32>
  %s = tensor.pad %r low[0, 16, 0] high[0, 0, 0] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %c : f32
  } : tensor<2x1024x576xf32> to tensor<2x1040x576xf32>
  return %s : tensor<2x1040x576xf32>
}

// Other pad values than the op's own stay outside.
// CHECK-LABEL: func.func @other_values
// CHECK:         tensor.pad
// CHECK:         iree_linalg_ext.im2col
func.func @other_values(%x: tensor<2x32x32x64xf32>) -> tensor<2x1024x576xf32> {
  %c = arith.constant 0.0 : f32
  %d = arith.constant 1.0 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %d : f32
  } : tensor<2x32x32x64xf32> to tensor<2x34x34x64xf32>
  %e = tensor.empty() : tensor<2x1024x576xf32>
  %r = iree_linalg_ext.im2col strides = [1, 1] dilations = [1, 1] kernel_size = [3, 3]
      offsets = [0, 0, 0] output_sizes = [[2], [32, 32], [3, 3, 64]]
      batch_pos = [0] m_pos = [1, 2] k_pos = [3] input_k_perm = [0, 1, 2] output_perm = [0, 1, 2]
      pad_value(%c : f32)
      ins(%p : tensor<2x34x34x64xf32>) outs(%e : tensor<2x1024x576xf32>) -> tensor<2x1024x576xf32>
  return %r : tensor<2x1024x576xf32>
}

// The batch of key and value is that of the query; what only a cast forgot is known again.
// CHECK-LABEL: func.func @static_attention
// CHECK:         %[[K:.*]] = tensor.cast %k : tensor<?x5x8xf32> to tensor<4x5x8xf32>
// CHECK:         iree_linalg_ext.attention {{.*}} ins(%q, %[[K]], %v, %s : tensor<4x3x8xf32>, tensor<4x5x8xf32>, tensor<4x5x7xf32>, f32)
func.func @static_attention(%q: tensor<4x3x8xf32>, %k: tensor<?x5x8xf32>, %v: tensor<4x5x7xf32>, %s: f32, %o: tensor<4x3x7xf32>) -> tensor<4x3x7xf32> {
  %c = tensor.cast %v : tensor<4x5x7xf32> to tensor<?x5x7xf32>
  %r = iree_linalg_ext.attention {indexing_maps = [affine_map<(b, m, n, k, l) -> (b, m, k)>, affine_map<(b, m, n, k, l) -> (b, l, k)>, affine_map<(b, m, n, k, l) -> (b, l, n)>, affine_map<(b, m, n, k, l) -> ()>, affine_map<(b, m, n, k, l) -> (b, m, n)>]}
      ins(%q, %k, %c, %s : tensor<4x3x8xf32>, tensor<?x5x8xf32>, tensor<?x5x7xf32>, f32) outs(%o : tensor<4x3x7xf32>) {
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  } -> tensor<4x3x7xf32>
  return %r : tensor<4x3x7xf32>
}
