// RUN: xdsl-opt %s -p irees-wrap-entry-points --split-input-file | filecheck %s

// What says nothing of devices pins nothing; a scalar stays as it is.
// CHECK-LABEL: func.func @plain(%x: !hal.buffer_view, %i: index) -> (!hal.buffer_view, index)
func.func @plain(%x: tensor<4xf32>, %i: index) -> (tensor<4xf32>, index) {
  // CHECK-NEXT: %x_1 = hal.tensor.import %x : !hal.buffer_view -> tensor<4xf32>
  // CHECK-NEXT: %0 = hal.tensor.export %x_1 : tensor<4xf32> -> !hal.buffer_view
  // CHECK-NEXT: return %0, %i : !hal.buffer_view, index
  return %x, %i : tensor<4xf32>, index
}

// -----

// An argument or result says where it is; other attributes stay.
// CHECK-LABEL: func.func @placed(%x: !hal.buffer_view) -> (!hal.buffer_view {irees.unsigned})
func.func @placed(%x: tensor<4xi8> {iree.abi.affinity = #hal.device.promise<@a>})
    -> (tensor<4xi8> {iree.abi.affinity = #hal.device.promise<@b>, irees.unsigned}) {
  // CHECK-NEXT: hal.tensor.import on(#hal.device.promise<@a>) %x
  // CHECK-NEXT: hal.tensor.export on(#hal.device.promise<@b>)
  return %x : tensor<4xi8>
}

// -----

// On the function it is the default of all, and where everything runs.
// CHECK-LABEL: func.func @whole
// CHECK-SAME: attributes {stream.affinity = #hal.device.promise<@a>}
func.func @whole(%x: tensor<4xf32>, %y: tensor<4xf32> {iree.abi.affinity = #hal.device.promise<@b>})
    -> tensor<4xf32> attributes {iree.abi.affinity = #hal.device.promise<@a>} {
  // CHECK-NEXT: hal.tensor.import on(#hal.device.promise<@a>) %x
  // CHECK-NEXT: hal.tensor.import on(#hal.device.promise<@b>) %y
  // CHECK-NEXT: hal.tensor.export on(#hal.device.promise<@a>)
  return %x : tensor<4xf32>
}

// -----

// Dynamic dims are those of the view on the way in, and of the tensor on the way out.
// CHECK-LABEL: func.func @dynamic
func.func @dynamic(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // CHECK-NEXT: %0 = hal.buffer_view.dim<%x : !hal.buffer_view>[0] : index
  // CHECK-NEXT: hal.tensor.import %x : !hal.buffer_view -> tensor<?x4xf32>{%0}
  // CHECK: tensor.dim
  // CHECK-NEXT: hal.tensor.export
  return %x : tensor<?x4xf32>
}

// -----

// What callers do not see keeps its tensors.
// CHECK-LABEL: func.func private @no_entry(%x: tensor<4xf32>) -> tensor<4xf32>
func.func private @no_entry(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
