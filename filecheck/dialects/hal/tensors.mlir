// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

util.func public @border(%v: !hal.buffer_view, %b: !hal.buffer, %f: !hal.fence, %n: index) -> !hal.buffer_view {
  %x = hal.tensor.import %v : !hal.buffer_view -> tensor<4xf32>
  %y = hal.tensor.import on(#hal.device.promise<@a, [0, 5]>) wait(%f) => consume %b offset(%n) "y" : !hal.buffer -> tensor<?x4xf32> as tensor<?x2xf32>{%n}
  %z = hal.tensor.alias on(#hal.device.promise<@a>) wait(%f) => %y : tensor<?x2xf32>{%n} to %b : !hal.buffer
  %w = hal.tensor.alias %x : tensor<4xf32> to %v : !hal.buffer_view
  %t = hal.tensor.transients on(#hal.device.affinity<@a>) %w : tensor<4xf32> from %b : !hal.buffer
  %r:2 = hal.tensor.barrier join(%t, %z : tensor<4xf32>, tensor<?x2xf32>) => %f : !hal.fence
  %o = hal.tensor.export on(#hal.device.promise<@b>) %r#1 "o" : tensor<?x4xf32> as tensor<?x2xf32>{%n} -> !hal.buffer
  %p = hal.tensor.export %r#0 : tensor<4xf32> -> !hal.buffer_view
  util.return %p : !hal.buffer_view
}

// CHECK:      util.func public @border(%v: !hal.buffer_view, %b: !hal.buffer, %f: !hal.fence, %n: index) -> !hal.buffer_view {
// CHECK-NEXT:   %x = hal.tensor.import %v : !hal.buffer_view -> tensor<4xf32>
// CHECK-NEXT:   %y = hal.tensor.import on(#hal.device.promise<@a, [0, 5]>) wait(%f) => consume %b offset(%n) "y" : !hal.buffer -> tensor<?x4xf32> as tensor<?x2xf32>{%n}
// CHECK-NEXT:   %z = hal.tensor.alias on(#hal.device.promise<@a>) wait(%f) => %y : tensor<?x2xf32>{%n} to %b : !hal.buffer
// CHECK-NEXT:   %w = hal.tensor.alias %x : tensor<4xf32> to %v : !hal.buffer_view
// CHECK-NEXT:   %t = hal.tensor.transients on(#hal.device.affinity<@a>) %w : tensor<4xf32> from %b : !hal.buffer
// CHECK-NEXT:   %r, %r_1 = hal.tensor.barrier join(%t, %z : tensor<4xf32>, tensor<?x2xf32>) => %f : !hal.fence
// CHECK-NEXT:   %o = hal.tensor.export on(#hal.device.promise<@b>) %r_1 "o" : tensor<?x4xf32> as tensor<?x2xf32>{%n} -> !hal.buffer
// CHECK-NEXT:   %p = hal.tensor.export %r : tensor<4xf32> -> !hal.buffer_view
// CHECK-NEXT:   util.return %p : !hal.buffer_view
// CHECK-NEXT: }

util.func public @queries(%v: !hal.buffer_view) -> (index, index) {
  %d = hal.buffer_view.dim<%v : !hal.buffer_view>[1] : index
  %r = hal.buffer_view.rank<%v : !hal.buffer_view> : index
  util.return %d, %r : index, index
}
// CHECK-LABEL: util.func public @queries
// CHECK-NEXT:    hal.buffer_view.dim<%v : !hal.buffer_view>[1] : index
// CHECK-NEXT:    hal.buffer_view.rank<%v : !hal.buffer_view> : index
