// RUN: xdsl-opt %s -p irees-drop-transfers | filecheck %s

// Everything is on the one device.
// CHECK-LABEL: func.func @dropped
func.func @dropped(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  // CHECK-NOT: flow.tensor
  %0 = flow.tensor.transfer %x : tensor<?xf32>{%n} to #hal.device.promise<@b>
  %1 = flow.tensor.barrier %0 : tensor<?xf32>{%n} on #hal.device.promise<@b>
  // CHECK: math.exp %x
  %2 = math.exp %1 : tensor<?xf32>
  return %2 : tensor<?xf32>
}

// A program without them stays as it is.
// CHECK-LABEL: func.func @no_transfer
func.func @no_transfer(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: return %x
  return %x : tensor<4xf32>
}
