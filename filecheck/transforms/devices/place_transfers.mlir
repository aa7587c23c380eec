// RUN: xdsl-opt %s -p irees-place-transfers --split-input-file | filecheck %s

// Two transfers to one device are one; an argument is imported where it is read; the export follows.
// CHECK-LABEL: func.func @two_matmuls
func.func @two_matmuls(%va: !hal.buffer_view, %vb: !hal.buffer_view) -> !hal.buffer_view {
  %a = hal.tensor.import %va : !hal.buffer_view -> tensor<4x4xf32>
  %b = hal.tensor.import %vb : !hal.buffer_view -> tensor<4x4xf32>
  %z = arith.constant dense<0.0> : tensor<4x4xf32>
  // CHECK: %[[B:.*]] = hal.tensor.import on(#hal.device.promise<@b>) %vb
  // CHECK: %[[M:.*]] = linalg.matmul {stream.affinity = #hal.device.promise<@a>}
  // CHECK-NEXT: %[[T:.*]] = flow.tensor.transfer %[[M]] : tensor<4x4xf32> to #hal.device.promise<@b>
  // CHECK-NOT: flow.tensor.transfer
  %0 = linalg.matmul {stream.affinity = #hal.device.promise<@a>} ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = flow.tensor.transfer %0 : tensor<4x4xf32> to #hal.device.promise<@b>
  %2 = flow.tensor.transfer %1 : tensor<4x4xf32> to #hal.device.promise<@b>
  // CHECK: linalg.matmul {stream.affinity = #hal.device.promise<@b>} ins(%[[T]], %[[B]]
  %3 = linalg.matmul ins(%2, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: hal.tensor.export on(#hal.device.promise<@b>)
  %4 = hal.tensor.export %3 : tensor<4x4xf32> -> !hal.buffer_view
  return %4 : !hal.buffer_view
}

// -----

// To where a value is already, and back from where it went: nothing is sent.
// CHECK-LABEL: func.func @there_and_back
// CHECK-NOT: flow.tensor.transfer
func.func @there_and_back(%v: !hal.buffer_view) -> !hal.buffer_view {
  %x = hal.tensor.import on(#hal.device.promise<@a>) %v : !hal.buffer_view -> tensor<4xf32>
  %0 = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@b>
  %1 = flow.tensor.transfer %0 : tensor<4xf32> to #hal.device.promise<@a>
  %2 = math.exp %1 : tensor<4xf32>
  %3 = hal.tensor.export %2 : tensor<4xf32> -> !hal.buffer_view
  return %3 : !hal.buffer_view
}

// -----

// A result that is wanted elsewhere is sent there; its size is asked where it is.
// CHECK-LABEL: func.func @wanted
func.func @wanted(%v: !hal.buffer_view) -> !hal.buffer_view {
  %c0 = arith.constant 0 : index
  %n = hal.buffer_view.dim<%v : !hal.buffer_view>[0] : index
  %x = hal.tensor.import on(#hal.device.promise<@a>) %v : !hal.buffer_view -> tensor<?xf32>{%n}
  // CHECK: %[[E:.*]] = math.exp
  // CHECK: flow.tensor.transfer %[[E]] : tensor<?xf32>{%{{.*}}} to #hal.device.promise<@b>
  %0 = math.exp %x : tensor<?xf32>
  %d = tensor.dim %0, %c0 : tensor<?xf32>
  %1 = hal.tensor.export on(#hal.device.promise<@b>) %0 : tensor<?xf32>{%d} -> !hal.buffer_view
  return %1 : !hal.buffer_view
}

// -----

// What reads two devices and says none runs where the least is sent: two values are on @b.
// CHECK-LABEL: func.func @least
func.func @least(%va: !hal.buffer_view, %vb: !hal.buffer_view, %vc: !hal.buffer_view) -> !hal.buffer_view {
  %a = hal.tensor.import on(#hal.device.promise<@a>) %va : !hal.buffer_view -> tensor<4xf32>
  %b = hal.tensor.import on(#hal.device.promise<@b>) %vb : !hal.buffer_view -> tensor<4xf32>
  %c = hal.tensor.import on(#hal.device.promise<@b>) %vc : !hal.buffer_view -> tensor<4xf32>
  // CHECK: flow.tensor.transfer %a : tensor<4xf32> to #hal.device.promise<@b>
  // CHECK-NOT: flow.tensor.transfer
  // CHECK: math.fma {{.*}}stream.affinity = #hal.device.promise<@b>
  %0 = math.fma %a, %b, %c : tensor<4xf32>
  %1 = hal.tensor.export %0 : tensor<4xf32> -> !hal.buffer_view
  return %1 : !hal.buffer_view
}

// -----

// What a branch passes is sent before it, or made where it is wanted.
// CHECK-LABEL: func.func @passed
func.func @passed(%c: i1, %v: !hal.buffer_view) -> !hal.buffer_view {
  %x = hal.tensor.import on(#hal.device.promise<@a>) %v : !hal.buffer_view -> tensor<4xf32>
  %z = arith.constant dense<0.0> : tensor<4xf32>
  // CHECK: flow.tensor.clone %z : tensor<4xf32> attributes {stream.affinity = #hal.device.promise<@a>}
  // CHECK: cf.cond_br
  cf.cond_br %c, ^bb1(%x : tensor<4xf32>), ^bb1(%z : tensor<4xf32>)
^bb1(%y: tensor<4xf32>):
  %0 = hal.tensor.export %y : tensor<4xf32> -> !hal.buffer_view
  return %0 : !hal.buffer_view
}

// -----

// What only goes around a loop is nobody's: neither it nor what it begins with is sent.
// CHECK-LABEL: func.func @no_reader
// CHECK-NOT: flow.tensor.transfer
func.func @no_reader(%n: index, %v: !hal.buffer_view) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = hal.tensor.import on(#hal.device.promise<@a>) %v : !hal.buffer_view -> tensor<4xf32>
  // CHECK: cf.br ^[[LOOP:bb[0-9]+]](%c0 : index)
  cf.br ^bb1(%c0, %x : index, tensor<4xf32>)
^bb1(%i: index, %y: tensor<4xf32>):
  // CHECK-NOT: math.exp
  %t = flow.tensor.transfer %y : tensor<4xf32> to #hal.device.promise<@b>
  %0 = math.exp %t {stream.affinity = #hal.device.promise<@b>} : tensor<4xf32>
  %j = arith.addi %i, %c1 : index
  %more = arith.cmpi slt, %j, %n : index
  // CHECK: cf.cond_br %more, ^[[LOOP]](%j : index), ^{{bb[0-9]+$}}
  cf.cond_br %more, ^bb1(%j, %0 : index, tensor<4xf32>), ^bb2
^bb2:
  return %j : index
}

// -----

// A global that never changes is read where it is needed.
util.global private @weights = dense<1.0> : tensor<4xf32>
// CHECK-LABEL: func.func @weights_everywhere
// CHECK-NOT: flow.tensor.transfer
func.func @weights_everywhere(%c: i1) -> !hal.buffer_view {
  // CHECK: util.global.load immutable @weights : tensor<4xf32>
  %w = util.global.load immutable @weights : tensor<4xf32>
  %z = arith.constant dense<0.0> : tensor<4xf32>
  %0 = linalg.add {stream.affinity = #hal.device.promise<@a>} ins(%w, %w : tensor<4xf32>, tensor<4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
  %t = flow.tensor.transfer %w : tensor<4xf32> to #hal.device.promise<@a>
  %1 = linalg.mul {stream.affinity = #hal.device.promise<@a>} ins(%t, %0 : tensor<4xf32>, tensor<4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
  %2 = hal.tensor.export %1 : tensor<4xf32> -> !hal.buffer_view
  return %2 : !hal.buffer_view
}

// -----

// A loop over constants is made where it is needed, whatever of it was sent.
// CHECK-LABEL: func.func @constants_in_a_loop
// CHECK-NOT: flow.tensor.transfer
func.func @constants_in_a_loop(%n: index, %i: i32) -> !hal.buffer_view {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant dense<3> : tensor<4xi32>
  %t = flow.tensor.transfer %z : tensor<4xi32> to #hal.device.promise<@a>
  // CHECK: scf.for
  // CHECK-NEXT: tensor.insert %i into %z
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%x = %z) -> (tensor<4xi32>) {
    %0 = tensor.insert %i into %t[%c1] : tensor<4xi32>
    scf.yield %0 : tensor<4xi32>
  }
  %1 = hal.tensor.export %r : tensor<4xi32> -> !hal.buffer_view
  return %1 : !hal.buffer_view
}

// -----

// A program that names no device is left alone.
// CHECK-LABEL: func.func @no_device
func.func @no_device(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %0 = math.exp %x : tensor<4xf32>
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
