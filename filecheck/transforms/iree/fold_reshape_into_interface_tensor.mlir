// RUN: xdsl-opt %s -p irees-fold-reshape-into-interface-tensor | filecheck %s

#layout = #hal.pipeline.layout<constants = 3, bindings = [#hal.pipeline.binding<storage_buffer>]>

// A column of the tensor is stored: the column's dim stays, dropped, and of size 1.
// CHECK-LABEL: func.func @rank_reduced
// CHECK:         %[[C:.*]] = arith.constant 2 : index
// CHECK:         %[[N:.*]] = hal.interface.constant.load
// CHECK:         %[[H:.*]] = arith.divsi %[[N]], %[[C]]
// CHECK:         %[[T:.*]] = hal.interface.binding.subspan {{.*}} : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<2x?x32xf32>>{%[[H]]}
// CHECK:         iree_tensor_ext.dispatch.tensor.store %x, %[[T]], offsets = [0, 0, 7], sizes = [2, %[[H]], 1]
// CHECK-NEXT:    func.return
func.func @rank_reduced(%x: tensor<2x?xf32>) {
  %n = hal.interface.constant.load layout(#layout) ordinal(0) : index
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?x32xf32>>{%n}
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<2x?xf32> into tensor<?xf32>
  iree_tensor_ext.dispatch.tensor.store %c, %t, offsets = [0, 7], sizes = [%n, 1], strides = [1, 1] : tensor<?xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?x32xf32>>{%n}
  return
}

// A dropped dynamic dim comes first: what is divided is the second dim (IREE divides the first).
// CHECK-LABEL: func.func @dropped_dynamic_dim
// CHECK-SAME:    %x: tensor<2x?xf32>
// CHECK:         %[[A:.*]] = hal.interface.constant.load {{.*}} ordinal(0)
// CHECK:         %[[B:.*]] = hal.interface.constant.load {{.*}} ordinal(1)
// CHECK:         %[[H:.*]] = arith.divsi %[[B]], %
// CHECK:         tensor<writeonly:tensor<?x2x?xf32>>{%[[A]], %[[H]]}
// CHECK-NEXT:    iree_tensor_ext.dispatch.tensor.store %x, %{{.*}}, offsets = [3, 0, 0], sizes = [1, 2, %[[H]]]
func.func @dropped_dynamic_dim(%x: tensor<2x?xf32>) {
  %a = hal.interface.constant.load layout(#layout) ordinal(0) : index
  %b = hal.interface.constant.load layout(#layout) ordinal(1) : index
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?x?xf32>>{%a, %b}
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<2x?xf32> into tensor<?xf32>
  iree_tensor_ext.dispatch.tensor.store %c, %t, offsets = [3, 0], sizes = [1, %b], strides = [1, 1] : tensor<?xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?x?xf32>>{%a, %b}
  return
}

// A dropped dim, a kept one, then a group: the kept dim is the tensor's second (IREE takes the first).
// CHECK-LABEL: func.func @dropped_then_kept
// CHECK:         tensor<writeonly:tensor<3x5x2x4xf32>>
// CHECK-NEXT:    iree_tensor_ext.dispatch.tensor.store %x, %{{.*}}, offsets = [1, 0, 0, 0], sizes = [1, 5, 2, 4]
func.func @dropped_then_kept(%x: tensor<5x2x4xf32>) {
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<3x5x8xf32>>
  %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<5x2x4xf32> into tensor<5x8xf32>
  iree_tensor_ext.dispatch.tensor.store %c, %t, offsets = [1, 0, 0], sizes = [1, 5, 8], strides = [1, 1, 1] : tensor<5x8xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<3x5x8xf32>>
  return
}

// The dropped dim is in the middle, in front of the group (IREE finds only those in front of all).
// CHECK-LABEL: func.func @dropped_in_the_middle
// CHECK:         tensor<writeonly:tensor<5x3x2x4xf32>>
// CHECK-NEXT:    iree_tensor_ext.dispatch.tensor.store %x, %{{.*}}, offsets = [0, 1, 0, 0], sizes = [5, 1, 2, 4]
func.func @dropped_in_the_middle(%x: tensor<5x2x4xf32>) {
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<5x3x8xf32>>
  %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<5x2x4xf32> into tensor<5x8xf32>
  iree_tensor_ext.dispatch.tensor.store %c, %t, offsets = [0, 1, 0], sizes = [5, 1, 8], strides = [1, 1, 1] : tensor<5x8xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<5x3x8xf32>>
  return
}

// A size that is not the dim: the tensor has %n rows, not %m. IREE makes of it tensor<2x?x32xf32>
// with n/2 and stores n rows of what has m (`fold_collapse_into_stores_dynamic_diff`).
// CHECK-LABEL: func.func @no_other_size
// CHECK:         tensor.collapse_shape
// CHECK:         tensor<writeonly:tensor<?x32xf32>>
func.func @no_other_size(%x: tensor<2x?x32xf32>) {
  %n = hal.interface.constant.load layout(#layout) ordinal(0) : index
  %m = hal.interface.constant.load layout(#layout) ordinal(1) : index
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?x32xf32>>{%n}
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x?x32xf32> into tensor<?x32xf32>
  iree_tensor_ext.dispatch.tensor.store %c, %t, offsets = [0, 0], sizes = [%m, 32], strides = [1, 1] : tensor<?x32xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?x32xf32>>{%n}
  return
}

// A part of a dynamic outermost dim: rows of 4, and what is no whole row at the end is not stored to.
// CHECK-LABEL: func.func @part_of_outermost
// CHECK:         %[[N:.*]] = hal.interface.constant.load
// CHECK:         %[[F:.*]] = affine.apply affine_map<()[s0] -> ((s0 floordiv 4))> ()[%[[N]]]
// CHECK:         tensor<writeonly:tensor<?x4xf32>>{%[[F]]}
// CHECK-NEXT:    iree_tensor_ext.dispatch.tensor.store %x, %{{.*}}, offsets = [%i, 0], sizes = [3, 4]
func.func @part_of_outermost(%x: tensor<3x4xf32>, %i: index) {
  %n = hal.interface.constant.load layout(#layout) ordinal(0) : index
  %o = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?xf32>>{%n}
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
  iree_tensor_ext.dispatch.tensor.store %c, %t, offsets = [%o], sizes = [12], strides = [1] : tensor<12xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?xf32>>{%n}
  return
}

// Of a dim further in, each row's stride is the dim: it must be a multiple (IREE takes 3 for it).
// CHECK-LABEL: func.func @no_part_of_inner
// CHECK:         tensor.collapse_shape
func.func @no_part_of_inner(%x: tensor<2x3x4xf32>) {
  %n = hal.interface.constant.load layout(#layout) ordinal(0) : index
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<2x?xf32>>{%n}
  %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<2x3x4xf32> into tensor<2x12xf32>
  iree_tensor_ext.dispatch.tensor.store %c, %t, offsets = [0, 0], sizes = [2, 12], strides = [1, 1] : tensor<2x12xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<2x?xf32>>{%n}
  return
}

// An offset that divides the static inner dims becomes one of the first dim.
// CHECK-LABEL: func.func @part_of_static
// CHECK:         tensor<writeonly:tensor<4x9x4x128xf32>>
// CHECK-NEXT:    iree_tensor_ext.dispatch.tensor.store %x, %{{.*}}, offsets = [0, 2, 0, 0], sizes = [4, 7, 4, 128]
func.func @part_of_static(%x: tensor<4x7x4x128xf32>) {
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4x4608xf32>>
  %c = tensor.collapse_shape %x [[0], [1, 2, 3]] : tensor<4x7x4x128xf32> into tensor<4x3584xf32>
  iree_tensor_ext.dispatch.tensor.store %c, %t, offsets = [0, 1024], sizes = [4, 3584], strides = [1, 1] : tensor<4x3584xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4x4608xf32>>
  return
}

// One that does not, does not.
// CHECK-LABEL: func.func @no_odd_offset
// CHECK:         tensor.collapse_shape
func.func @no_odd_offset(%x: tensor<4x8x4x128xf32>) {
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4x4608xf32>>
  %c = tensor.collapse_shape %x [[0], [1, 2, 3]] : tensor<4x8x4x128xf32> into tensor<4x4096xf32>
  iree_tensor_ext.dispatch.tensor.store %c, %t, offsets = [0, 128], sizes = [4, 4096], strides = [1, 1] : tensor<4x4096xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4x4608xf32>>
  return
}

// Every other row is no slice of the binding under another shape.
// CHECK-LABEL: func.func @no_strided_rows
// CHECK:         tensor.collapse_shape
// CHECK-NEXT:    iree_tensor_ext.dispatch.tensor.store {{.*}}, offsets = [0, 0], sizes = [3, 8], strides = [2, 1]
func.func @no_strided_rows(%x: tensor<3x2x4xf32>) {
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<5x8xf32>>
  %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<3x2x4xf32> into tensor<3x8xf32>
  iree_tensor_ext.dispatch.tensor.store %c, %t, offsets = [0, 0], sizes = [3, 8], strides = [2, 1] : tensor<3x8xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<5x8xf32>>
  return
}

// A load of rows, joined: the load stays in front of the store, which may be to the same rows.
// CHECK-LABEL: func.func @load_of_rows
// CHECK:         %[[N:.*]] = hal.interface.constant.load
// CHECK:         %[[W:.*]] = affine.apply affine_map<()[s0] -> ((s0 * 8))> ()[%[[N]]]
// CHECK:         tensor<readwrite:tensor<?xf32>>{%[[W]]}
// CHECK:         iree_tensor_ext.dispatch.tensor.load %{{.*}}, offsets = [16], sizes = [24], strides = [1]
// CHECK:         iree_tensor_ext.dispatch.tensor.store
func.func @load_of_rows(%x: tensor<3x8xf32>) -> tensor<24xf32> {
  %n = hal.interface.constant.load layout(#layout) ordinal(0) : index
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<readwrite:tensor<?x8xf32>>{%n}
  %v = iree_tensor_ext.dispatch.tensor.load %t, offsets = [2, 0], sizes = [3, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readwrite:tensor<?x8xf32>>{%n} -> tensor<3x8xf32>
  iree_tensor_ext.dispatch.tensor.store %x, %t, offsets = [2, 0], sizes = [3, 8], strides = [1, 1] : tensor<3x8xf32> -> !iree_tensor_ext.dispatch.tensor<readwrite:tensor<?x8xf32>>{%n}
  %c = tensor.collapse_shape %v [[0, 1]] : tensor<3x8xf32> into tensor<24xf32>
  return %c : tensor<24xf32>
}

// The sizes of an expand that are known in front of the binding are its dims.
// CHECK-LABEL: func.func @expand_of_load
// CHECK:         tensor<readonly:tensor<?x?xf32>>{%[[A:.*]], %[[B:.*]]}
// CHECK:         iree_tensor_ext.dispatch.tensor.load %{{.*}}, offsets = [0, 0], sizes = [%[[A]], %[[B]]]
func.func @expand_of_load() -> tensor<?x?xf32> {
  %n = hal.interface.constant.load layout(#layout) ordinal(0) : index
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<readonly:tensor<?xf32>>{%n}
  %v = iree_tensor_ext.dispatch.tensor.load %t, offsets = [0], sizes = [%n], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<?xf32>>{%n} -> tensor<?xf32>
  %a = hal.interface.constant.load layout(#layout) ordinal(1) : index
  %b = hal.interface.constant.load layout(#layout) ordinal(2) : index
  %e = tensor.expand_shape %v [[0, 1]] output_shape [%a, %b] : tensor<?xf32> into tensor<?x?xf32>
  return %e : tensor<?x?xf32>
}

// Between a load and a store of all, the expand goes to the store: fewer dims on both sides.
// CHECK-LABEL: func.func @from_load_to_store
// CHECK-NOT:     expand_shape
// CHECK:         iree_tensor_ext.dispatch.tensor.load {{.*}} -> tensor<8xf32>
// CHECK:         iree_tensor_ext.dispatch.tensor.store {{.*}} : tensor<8xf32> ->
func.func @from_load_to_store() {
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<readonly:tensor<8xf32>>
  %u = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<2x4xf32>>
  %v = iree_tensor_ext.dispatch.tensor.load %t, offsets = [0], sizes = [8], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<8xf32>> -> tensor<8xf32>
  %e = tensor.expand_shape %v [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  iree_tensor_ext.dispatch.tensor.store %e, %u, offsets = [0, 0], sizes = [2, 4], strides = [1, 1] : tensor<2x4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<2x4xf32>>
  return
}
