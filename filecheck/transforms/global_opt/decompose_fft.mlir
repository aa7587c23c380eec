// RUN: xdsl-opt %s -p irees-decompose-fft | filecheck %s

// Every result finds the two elements that it is made of.
// CHECK-LABEL: func.func @given
// CHECK:         linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<?x8xf32>) {
// CHECK:           %[[I:.*]] = linalg.index 1 : index
// CHECK:           %[[IN:.*]] = arith.remui %[[I]], %{{.*}} : index
// CHECK:           %[[K:.*]] = arith.remui %[[IN]], %{{.*}} : index
// CHECK:           %[[WR:.*]] = tensor.extract %wr[%[[K]]] : tensor<2xf32>
// CHECK:           %[[WI:.*]] = tensor.extract %wi[%[[K]]] : tensor<2xf32>
// CHECK:           arith.subf
// CHECK:           arith.cmpi ult, %[[IN]], %{{.*}} : index
// CHECK-COUNT-2:   arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
func.func @given(%a: tensor<?x8xf32>, %b: tensor<?x8xf32>, %wr: tensor<2xf32>, %wi: tensor<2xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %stage = arith.constant 2 : index
  %r, %i = iree_linalg_ext.fft ins(%stage, %wr, %wi : index, tensor<2xf32>, tensor<2xf32>) outs(%a, %b : tensor<?x8xf32>, tensor<?x8xf32>) : tensor<?x8xf32>, tensor<?x8xf32>
  return %r, %i : tensor<?x8xf32>, tensor<?x8xf32>
}

// Roots of unity that are not given are computed once, in f64.
// CHECK-LABEL: func.func @computed
// CHECK:         %[[W:.*]], %[[V:.*]] = linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<2xf32>, tensor<2xf32>) {
// CHECK:           math.cos %{{.*}} : f64
// CHECK:           math.sin %{{.*}} : f64
// CHECK:         tensor.extract %[[W]]
// CHECK:         tensor.extract %[[V]]
func.func @computed(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %stage = arith.constant 2 : index
  %r, %i = iree_linalg_ext.fft ins(%stage : index) outs(%a, %b : tensor<8xf32>, tensor<8xf32>) : tensor<8xf32>, tensor<8xf32>
  return %r, %i : tensor<8xf32>, tensor<8xf32>
}

// In memory there is nothing to replace it by.
// CHECK-LABEL: func.func @no_memref
// CHECK:         iree_linalg_ext.fft
func.func @no_memref(%a: memref<8xf32>, %b: memref<8xf32>, %stage: index) {
  iree_linalg_ext.fft ins(%stage : index) outs(%a, %b : memref<8xf32>, memref<8xf32>)
  return
}
