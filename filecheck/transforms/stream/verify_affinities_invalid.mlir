// RUN: irees opt %s -p irees-verify-affinities --split-input-file --verify-diagnostics

util.func public @nowhere(%n: index) {
  // expected-error @+1 {{does not have an affinity assigned}}
  %a = stream.async.alloca : !stream.resource<transient>{%n}
  util.return
}

// -----

// A set that could be inferred is no assignment.
util.func public @inferred() {
  %c = flow.tensor.constant {stream.affinity = #hal.device.promise<@a>} dense<1.0> : tensor<4xf32>
  // expected-error @+1 {{does not have an affinity assigned}}
  %r = flow.dispatch @k(%c) : (tensor<4xf32>) -> tensor<4xf32>
  util.return
}

// -----

util.func public @elsewhere() {
  %c = flow.tensor.constant {stream.affinity = #hal.device.promise<@b>} dense<1.0> : tensor<4xf32>
  %d = flow.tensor.constant {stream.affinity = #hal.device.promise<@a>} dense<1.0> : tensor<4xf32>
  // expected-error @+1 {{runs on @b, but operand 1 is on @a}}
  %r = flow.dispatch @k(%c, %d) {stream.affinity = #hal.device.promise<@b>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  util.return
}

// -----

// Through a tie the storage stays, wherever the kernel ran.
util.func public @tied() {
  %c = flow.tensor.constant {stream.affinity = #hal.device.promise<@a>} dense<1.0> : tensor<4xf32>
  %d = flow.dispatch @k(%c) {stream.affinity = #hal.device.promise<@a>} : (tensor<4xf32>) -> %c
  %r = flow.tensor.clone %d : tensor<4xf32> attributes {stream.affinity = #hal.device.promise<@a>}
  // expected-error @+1 {{runs on @b, but operand 0 is on @a}}
  %s = flow.dispatch @k(%d) {stream.affinity = #hal.device.promise<@b>} : (tensor<4xf32>) -> tensor<4xf32>
  util.return
}

// -----

// A result that a caller wants elsewhere than it is.
util.func public @border(%n: index, %s: i32) -> !hal.buffer_view {
  %a = stream.async.splat on(#hal.device.promise<@a>) %s : i32 -> !stream.resource<*>{%n}
  %e = stream.async.execute on(#hal.device.promise<@a>) with() {
    stream.yield
  } => !stream.timepoint
  // expected-error @+1 {{runs on @b or @c, but operand 0 is on @a}}
  %v = stream.tensor.export on(#hal.device.optimal<[#hal.device.affinity<@b>, #hal.device.affinity<@c>]>) %a : tensor<4xi32> in !stream.resource<*>{%n} -> !hal.buffer_view
  util.return %v : !hal.buffer_view
}
