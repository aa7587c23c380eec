// RUN: xdsl-opt %s -p irees-decompose-im2col | filecheck %s

// Rows and columns of the matrix are taken apart into places of the image.
// CHECK-LABEL: func.func @im2col
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]} outs(%o : tensor<2x12x24xf32>) {
// CHECK:           %[[B:.*]] = linalg.index 0 : index
// CHECK-NEXT:      %[[M:.*]] = linalg.index 1 : index
// CHECK-NEXT:      %[[K:.*]] = linalg.index 2 : index
// CHECK:           %[[Y:.*]] = arith.divui %[[M]], %{{.*}} : index
// CHECK:           %[[X:.*]] = arith.remui %[[M]], %{{.*}} : index
// CHECK:           %[[I:.*]] = arith.divui %[[K]], %{{.*}} : index
// CHECK:           %[[D:.*]] = arith.divui %[[K]], %{{.*}} : index
// CHECK:           %[[J:.*]] = arith.remui %[[D]], %{{.*}} : index
// CHECK:           %[[C:.*]] = arith.remui %[[K]], %{{.*}} : index
// CHECK:           %[[H:.*]] = arith.addi %{{.*}}, %[[I]] : index
// CHECK-NEXT:      %[[W:.*]] = arith.addi %[[X]], %[[J]] : index
// CHECK-NEXT:      tensor.extract %x[%[[B]], %[[H]], %[[W]], %[[C]]] : tensor<2x8x6x4xf32>
func.func @im2col(%x: tensor<2x8x6x4xf32>, %o: tensor<2x12x24xf32>) -> tensor<2x12x24xf32> {
  %r = iree_linalg_ext.im2col strides = [2, 1] dilations = [1, 1] kernel_size = [3, 2] offsets = [0, 0, 0] output_sizes = [[2], [3, 4], [3, 2, 4]] batch_pos = [0] m_pos = [1, 2] k_pos = [3] input_k_perm = [0, 1, 2] output_perm = [0, 1, 2] ins(%x : tensor<2x8x6x4xf32>) outs(%o : tensor<2x12x24xf32>) -> tensor<2x12x24xf32>
  return %r : tensor<2x12x24xf32>
}

// What is not in the image is the pad value; a window has a dynamic offset.
// CHECK-LABEL: func.func @padded
// CHECK:         %[[N:.*]] = tensor.dim %x
// CHECK:         linalg.generic {{.*}} outs(%o : tensor<8x3xf32>) {
// CHECK:           arith.addi %{{.*}}, %at : index
// CHECK:           %[[P:.*]] = arith.subi
// CHECK:           %[[V:.*]] = tensor.extract %x[%[[P]], %{{.*}}] : tensor<?x1xf32>
// CHECK-NEXT:      arith.cmpi ult, %[[P]], %[[N]] : index
// CHECK:           arith.andi
// CHECK:           arith.select %{{.*}}, %[[V]], %pad : f32
func.func @padded(%x: tensor<?x1xf32>, %at: index, %pad: f32, %o: tensor<8x3xf32>) -> tensor<8x3xf32> {
  %r = iree_linalg_ext.im2col strides = [1] dilations = [1] kernel_size = [3] offsets = [%at, 0] output_sizes = [[8], [3, 1]] batch_pos = [] m_pos = [0] k_pos = [1] input_k_perm = [0, 1] output_perm = [0, 1] input_pad_low = [1, 0] input_pad_high = [1, 0] pad_value(%pad : f32) ins(%x : tensor<?x1xf32>) outs(%o : tensor<8x3xf32>) -> tensor<8x3xf32>
  return %r : tensor<8x3xf32>
}

// In memory there is nothing to replace it by.
// CHECK-LABEL: func.func @no_memref
// CHECK:         iree_linalg_ext.im2col
func.func @no_memref(%x: memref<10x1xf32>, %o: memref<8x3xf32>) {
  iree_linalg_ext.im2col strides = [1] dilations = [1] kernel_size = [3] offsets = [0, 0] output_sizes = [[8], [3, 1]] batch_pos = [] m_pos = [0] k_pos = [1] input_k_perm = [0, 1] output_perm = [0, 1] ins(%x : memref<10x1xf32>) outs(%o : memref<8x3xf32>)
  return
}
