// RUN: xdsl-opt %s -p irees-outline-device-segments --split-input-file | filecheck %s

// A function for each device; the constant is in both.
// CHECK-LABEL: func.func @main
func.func @main(%va: !hal.buffer_view) -> !hal.buffer_view {
  %x = hal.tensor.import %va : !hal.buffer_view -> tensor<4xf32>
  %z = arith.constant dense<1.0> : tensor<4xf32>
  // CHECK-NEXT: %0 = hal.tensor.import on(#hal.device.promise<@a>) %va
  // CHECK-NEXT: %1 = irees.invoke @a::@main_0(%0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %2 = flow.tensor.transfer %1 : tensor<4xf32> to #hal.device.promise<@b>
  // CHECK-NEXT: %3 = irees.invoke @b::@main_1(%2) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %4 = hal.tensor.export on(#hal.device.promise<@b>) %3
  %0 = arith.addf %x, %z {stream.affinity = #hal.device.promise<@a>} : tensor<4xf32>
  %1 = flow.tensor.transfer %0 : tensor<4xf32> to #hal.device.promise<@b>
  %2 = arith.addf %1, %z {stream.affinity = #hal.device.promise<@b>} : tensor<4xf32>
  %3 = hal.tensor.export on(#hal.device.promise<@b>) %2 : tensor<4xf32> -> !hal.buffer_view
  return %3 : !hal.buffer_view
}
// CHECK: builtin.module @a {
// CHECK-NEXT: func.func public @main_0({{.*}}) -> tensor<4xf32> attributes {stream.affinity = #hal.device.promise<@a>} {
// CHECK-NEXT: arith.constant dense<1.000000e+00>
// CHECK: builtin.module @b {
// CHECK-NEXT: func.func public @main_1
// CHECK-NEXT: arith.constant dense<1.000000e+00>

// -----

// Ops of one device that do not wait for each other are one segment, wherever they stand.
// CHECK-LABEL: func.func @gathered
func.func @gathered(%va: !hal.buffer_view, %vb: !hal.buffer_view) -> (!hal.buffer_view, !hal.buffer_view) {
  %x = hal.tensor.import on(#hal.device.promise<@a>) %va : !hal.buffer_view -> tensor<4xf32>
  %y = hal.tensor.import on(#hal.device.promise<@b>) %vb : !hal.buffer_view -> tensor<4xf32>
  // CHECK: irees.invoke @a::@gathered_0
  // CHECK-NEXT: irees.invoke @b::@gathered_1
  // CHECK-NOT: irees.invoke
  %0 = math.exp %x {stream.affinity = #hal.device.promise<@a>} : tensor<4xf32>
  %1 = math.exp %y {stream.affinity = #hal.device.promise<@b>} : tensor<4xf32>
  %2 = math.absf %0 {stream.affinity = #hal.device.promise<@a>} : tensor<4xf32>
  %3 = math.absf %1 {stream.affinity = #hal.device.promise<@b>} : tensor<4xf32>
  %4 = hal.tensor.export on(#hal.device.promise<@a>) %2 : tensor<4xf32> -> !hal.buffer_view
  %5 = hal.tensor.export on(#hal.device.promise<@b>) %3 : tensor<4xf32> -> !hal.buffer_view
  return %4, %5 : !hal.buffer_view, !hal.buffer_view
}

// -----

// The condition of a loop is a scalar that some device computes; a constant the host knows.
// CHECK-LABEL: func.func @looped
func.func @looped(%v: !hal.buffer_view, %n: index) -> !hal.buffer_view {
  %m = hal.buffer_view.dim<%v : !hal.buffer_view>[0] : index
  %x = hal.tensor.import on(#hal.device.promise<@a>) %v : !hal.buffer_view -> tensor<?xf32>{%m}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: arith.constant 0 : index
  // CHECK-NEXT: cf.br
  cf.br ^bb0(%c0, %x : index, tensor<?xf32>)
^bb0(%i: index, %y: tensor<?xf32>):
  // CHECK: %[[B:.*]] = irees.invoke @a::@looped_0(%i, %n) : (index, index) -> i1
  // CHECK-NEXT: cf.cond_br %[[B]]
  %c = arith.cmpi slt, %i, %n : index
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  // CHECK: irees.invoke @a::@looped_1
  %0 = math.exp %y {stream.affinity = #hal.device.promise<@a>} : tensor<?xf32>
  %k = arith.addi %i, %c1 : index
  cf.br ^bb0(%k, %0 : index, tensor<?xf32>)
^bb2:
  %d = tensor.dim {stream.affinity = #hal.device.promise<@a>} %y, %c0 : tensor<?xf32>
  %1 = hal.tensor.export on(#hal.device.promise<@a>) %y : tensor<?xf32>{%d} -> !hal.buffer_view
  return %1 : !hal.buffer_view
}

// -----

// A global goes with what reads it.
// CHECK-LABEL: func.func @stateful
// CHECK: builtin.module @a {
// CHECK-NEXT: util.global private mutable @g
util.global private mutable @g = dense<0.0> : tensor<4xf32>
func.func @stateful(%v: !hal.buffer_view) {
  %x = hal.tensor.import on(#hal.device.promise<@a>) %v : !hal.buffer_view -> tensor<4xf32>
  util.global.store %x, @g {stream.affinity = #hal.device.promise<@a>} : tensor<4xf32>
  return
}

// -----

// Without devices there is nothing to cut.
// CHECK-LABEL: func.func @no_device
func.func @no_device(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: math.exp
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
