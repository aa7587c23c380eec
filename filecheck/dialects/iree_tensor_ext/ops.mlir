// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

// CHECK-LABEL: func.func @static
// CHECK-SAME:    (%x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4x8xf32>>, %y: !iree_tensor_ext.dispatch.tensor<readwrite:tensor<2x4xf32>>)
// CHECK-NEXT:    %0 = iree_tensor_ext.dispatch.tensor.load %x, offsets = [1, 0], sizes = [2, 4], strides = [1, 2] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4x8xf32>> -> tensor<2x4xf32>
// CHECK-NEXT:    iree_tensor_ext.dispatch.tensor.store %0, %y, offsets = [0, 0], sizes = [2, 4], strides = [1, 1] : tensor<2x4xf32> -> !iree_tensor_ext.dispatch.tensor<readwrite:tensor<2x4xf32>>
func.func @static(%x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4x8xf32>>, %y: !iree_tensor_ext.dispatch.tensor<readwrite:tensor<2x4xf32>>) {
  %0 = iree_tensor_ext.dispatch.tensor.load %x, offsets = [1, 0], sizes = [2, 4], strides = [1, 2] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4x8xf32>> -> tensor<2x4xf32>
  iree_tensor_ext.dispatch.tensor.store %0, %y, offsets = [0, 0], sizes = [2, 4], strides = [1, 1] : tensor<2x4xf32> -> !iree_tensor_ext.dispatch.tensor<readwrite:tensor<2x4xf32>>
  return
}

// CHECK-LABEL: func.func @dynamic
// CHECK-NEXT:    %0 = iree_tensor_ext.dispatch.tensor.load %x, offsets = [%i], sizes = [%n], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<?xf32>>{%n} -> tensor<?xf32>
// CHECK-NEXT:    iree_tensor_ext.dispatch.tensor.store %0, %y, offsets = [0], sizes = [%n], strides = [%i] : tensor<?xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?xf32>>{%n}
func.func @dynamic(%x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<?xf32>>, %y: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?xf32>>, %n: index, %i: index) {
  %0 = iree_tensor_ext.dispatch.tensor.load %x, offsets = [%i], sizes = [%n], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<?xf32>>{%n} -> tensor<?xf32>
  iree_tensor_ext.dispatch.tensor.store %0, %y, offsets = [0], sizes = [%n], strides = [%i] : tensor<?xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?xf32>>{%n}
  return
}

// CHECK-LABEL: func.func @bitcast
// CHECK-NEXT:    %{{.*}} = iree_tensor_ext.bitcast %x : tensor<?x32xf32>{%n} -> tensor<?x64xi16>{%n}
// CHECK-NEXT:    %{{.*}} = iree_tensor_ext.bitcast %y : tensor<4xi32> -> tensor<16xi8>
func.func @bitcast(%x: tensor<?x32xf32>, %y: tensor<4xi32>, %n: index) {
  %0 = iree_tensor_ext.bitcast %x : tensor<?x32xf32>{%n} -> tensor<?x64xi16>{%n}
  %1 = iree_tensor_ext.bitcast %y : tensor<4xi32> -> tensor<16xi8>
  return
}
