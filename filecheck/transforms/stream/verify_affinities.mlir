// RUN: xdsl-opt %s -p irees-verify-affinities --split-input-file | filecheck %s

// Placed by itself, by what is around it, by a default: nothing is changed.
// CHECK-LABEL: util.func public @placed
util.func public @placed(%n: index) attributes {stream.affinity.default = #hal.device.promise<@d>} {
  // CHECK-NEXT: %a = stream.async.alloca on(#hal.device.promise<@a>) : !stream.resource<transient>{%n}
  %a = stream.async.alloca on(#hal.device.promise<@a>) : !stream.resource<transient>{%n}
  %b = stream.async.alloca : !stream.resource<transient>{%n}
  util.return
}

// -----

// A transfer may read what is anywhere; what follows it is where it went.
// CHECK-LABEL: util.func public @transferred
util.func public @transferred(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = flow.tensor.constant {stream.affinity = #hal.device.promise<@a>} dense<1.0> : tensor<4xf32>
  %t = flow.tensor.transfer %c : tensor<4xf32> to #hal.device.promise<@b>
  // CHECK: flow.dispatch
  %r = flow.dispatch @k(%t, %x) {stream.affinity = #hal.device.promise<@b>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  util.return %r : tensor<4xf32>
}

// -----

// Queues of one device are one place, and one of several possible devices is enough.
// CHECK-LABEL: util.func private @shared
util.func private @shared(%s: f32) attributes {stream.affinity.default = #hal.device.promise<@a>} {
  %c = flow.tensor.constant {stream.affinity = #hal.device.promise<@a, [0]>} dense<1.0> : tensor<4xf32>
  %r = flow.dispatch @k(%c) {stream.affinity = #hal.device.promise<@a, [1]>} : (tensor<4xf32>) -> tensor<4xf32>
  %p = flow.tensor.splat %s : tensor<4xf32>
  %q = flow.dispatch @k(%p) {stream.affinity = #hal.device.promise<@a>} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: flow.dispatch @l
  %u = flow.dispatch @l(%p) {stream.affinity = #hal.device.promise<@b>} : (tensor<4xf32>) -> tensor<4xf32>
  util.return
}

// -----

// What is made of nothing may be everywhere, though a result of it is wanted on one device.
util.global private @weights = dense<2.0> : tensor<4xf32>
// CHECK-LABEL: func.func @everywhere
func.func @everywhere() -> !hal.buffer_view {
  // CHECK-NEXT: arith.constant
  %c = arith.constant dense<1.0> : tensor<4xf32>
  %w = util.global.load immutable @weights : tensor<4xf32>
  %s = arith.addf %c, %w : tensor<4xf32>
  %0 = math.exp %s {stream.affinity = #hal.device.promise<@a>} : tensor<4xf32>
  %1 = hal.tensor.export on(#hal.device.promise<@b>) %s : tensor<4xf32> -> !hal.buffer_view
  return %1 : !hal.buffer_view
}

// -----

// What is inside an executable is placed with its dispatch.
// CHECK-LABEL: flow.executable @e
flow.executable @e {
  builtin.module {
    func.func @e() {
      %c = arith.constant dense<1.0> : tensor<4xf32>
      func.return
    }
  }
}
