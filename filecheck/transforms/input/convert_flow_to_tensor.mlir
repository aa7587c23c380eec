// RUN: xdsl-opt %s -p irees-convert-flow-to-tensor | filecheck %s

// A constant of dynamic dims keeps them behind a barrier.
// CHECK-LABEL: func.func @constants
// CHECK:         %[[C:.*]] = arith.constant dense<[1, 2]> : tensor<2xi32>
// CHECK-NEXT:    %[[D:.*]] = tensor.cast %[[C]] : tensor<2xi32> to tensor<?xi32>
// CHECK-NEXT:    util.optimization_barrier %[[D]] : tensor<?xi32>
// CHECK:         linalg.fill
func.func @constants(%s: f32, %n: index) -> (tensor<?xi32>, tensor<?xf32>) {
  %0 = flow.tensor.dynamic_constant dense<[1, 2]> : tensor<2xi32> -> tensor<?xi32>
  %1 = flow.tensor.splat %s : tensor<?xf32>{%n}
  return %0, %1 : tensor<?xi32>, tensor<?xf32>
}

// A tied shape is that of the operand. A reshape to dynamic dims is one of tensor.
// CHECK-LABEL: func.func @shapes
// CHECK-NOT:     flow.
// CHECK:         %[[S:.*]] = tensor.from_elements %n, %{{.*}} : tensor<2xindex>
// CHECK-NEXT:    tensor.reshape %x(%[[S]]) : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x2xf32>
func.func @shapes(%x: tensor<?xf32>, %m: index, %n: index) -> tensor<?x2xf32> {
  %0 = flow.tensor.tie_shape %x : tensor<?xf32>{%m}
  %1 = flow.tensor.reshape %0 : tensor<?xf32>{%m} -> tensor<?x2xf32>{%n}
  return %1 : tensor<?x2xf32>
}

// Bytes are cut into elements, the lowest bits first.
// CHECK-LABEL: func.func @cut
// CHECK:         linalg.generic {{.*}} ins(%x : tensor<4xi8>) outs(%{{.*}} : tensor<4x2xf4E2M1FN>)
// CHECK:           arith.shrui
// CHECK-NEXT:      %[[PART:.*]] = arith.trunci %{{.*}} : i8 to i4
// CHECK-NEXT:      arith.bitcast %[[PART]] : i4 to f4E2M1FN
func.func @cut(%x: tensor<4xi8>) -> tensor<8xf4E2M1FN> {
  %0 = flow.tensor.bitcast %x : tensor<4xi8> -> tensor<8xf4E2M1FN>
  return %0 : tensor<8xf4E2M1FN>
}

// Or elements are put together. The encoding of packed bits is dropped after that.
// CHECK-LABEL: func.func @join
// CHECK-SAME:    (%x: tensor<16xi1>)
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK:           arith.shli
// CHECK-NEXT:      arith.ori
func.func @join(%x: tensor<16xi1, #iree_encoding.packed_storage>) -> tensor<2xi8> {
  %0 = flow.tensor.bitcast %x : tensor<16xi1, #iree_encoding.packed_storage> -> tensor<2xi8>
  return %0 : tensor<2xi8>
}

// Elements and boxes are those of tensor.
// CHECK-LABEL: func.func @parts
// CHECK:         tensor.extract %x
// CHECK:         tensor.insert
// CHECK:         tensor.extract_slice
// CHECK:         tensor.insert_slice
func.func @parts(%x: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  %c2 = arith.constant 2 : index
  %0 = flow.tensor.load %x[%i] : tensor<4xf32>
  %1 = flow.tensor.store %0, %x[%c2] : tensor<4xf32>
  %2 = flow.tensor.slice %1[%i for %c2] : tensor<4xf32> -> tensor<2xf32>
  %3 = flow.tensor.update %2, %1[%i] : tensor<2xf32> -> %1 as tensor<4xf32>
  return %3 : tensor<4xf32>
}

// Transfers stay: they say where a tensor is.
// CHECK-LABEL: func.func @no_transfers
// CHECK-NEXT:    flow.tensor.transfer
func.func @no_transfers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@a>
  return %0 : tensor<4xf32>
}
