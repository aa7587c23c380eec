// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

util.func public @tensors(%v: !hal.buffer_view, %s: f32, %n: index, %d: index) -> !hal.buffer_view {
  %z = stream.tensor.sizeof on(#hal.device.promise<@a>) tensor<?x4xf32>{%d} : index
  %i = stream.tensor.import on(#hal.device.promise<@a>) consume %v : !hal.buffer_view -> tensor<?x4xf32>{%d} in !stream.resource<external>{%z}
  %c = stream.tensor.constant on(#hal.device.promise<@a>) : tensor<2xi32> in !stream.resource<constant> = dense<[1, 2]> : tensor<2xi32>
  %p = stream.tensor.splat %s : f32 -> tensor<4xf32> in !stream.resource<*>{%n}
  %k = stream.tensor.clone %i : tensor<?x4xf32>{%d} in !stream.resource<external>{%z} -> tensor<?x4xf32>{%d} in !stream.resource<*>{%z}
  %e = stream.tensor.export on(#hal.device.promise<@b>) %k : tensor<4x?xf32>{%d} in !stream.resource<*>{%z} -> !hal.buffer_view
  util.return %e : !hal.buffer_view
}
util.func private @copies(%n: index, %v: i32, %w: !stream.timepoint) -> !stream.resource<transient> {
  %a = stream.async.alloca on(#hal.device.promise<@a>) : !stream.resource<transient>{%n}
  %c = stream.async.constant on(#hal.device.promise<@a>) await(%w) : !stream.resource<transient>{%n} = dense<3> : tensor<8xi32>
  %s = stream.async.splat %v : i32 -> !stream.resource<transient>{%n}
  %k = stream.async.clone on(#hal.device.promise<@a>) %c : !stream.resource<transient>{%n} -> !stream.resource<transient>{%n}
  %l = stream.async.slice %k[%n to %n] : !stream.resource<transient>{%n} -> !stream.resource<transient>{%n}
  %f = stream.async.fill %v, %l[%n to %n for %n] : i32 -> %l as !stream.resource<transient>{%n}
  %u = stream.async.update on(#hal.device.promise<@b>) %s, %f[%n to %n] : !stream.resource<transient>{%n} -> %f as !stream.resource<transient>{%n}
  %y = stream.async.copy %s[%n to %n], %u[%n to %n], %n : !stream.resource<transient>{%n} -> %u as !stream.resource<transient>{%n}
  %b = stream.async.barrier on(#hal.device.promise<@b>) %y : !stream.resource<transient>{%n}
  %t = stream.async.transfer %b : !stream.resource<transient>{%n} from(#hal.device.promise<@b>) -> to(#hal.device.promise<@a>) !stream.resource<transient>{%n}
  util.return %t : !stream.resource<transient>
}
util.func private @regions(%x: !stream.resource<*>, %n: index, %w: !stream.timepoint) -> !stream.resource<*> {
  %r:2, %t = stream.async.execute on(#hal.device.promise<@a>) await(%w) => with(%x as %y: !stream.resource<*>{%n}) -> (!stream.resource<*>{%n}, %x{%n}) {
    %p, %q = stream.async.dispatch on(#hal.device.promise<@a>) @e::@f[%n](%y[%n to %n for %n], %n) : (!stream.resource<*>{%n}, index) -> (!stream.resource<*>{%n}, %y{%n})
    stream.yield %p, %q : !stream.resource<*>{%n}, !stream.resource<*>{%n}
  } => !stream.timepoint
  %u = stream.async.execute with() {
    stream.yield
  } => !stream.timepoint attributes {note}
  util.return %r#1 : !stream.resource<*>
}

// CHECK:      util.func public @tensors(%v: !hal.buffer_view, %s: f32, %n: index, %d: index) -> !hal.buffer_view {
// CHECK-NEXT:   %z = stream.tensor.sizeof on(#hal.device.promise<@a>) tensor<?x4xf32>{%d} : index
// CHECK-NEXT:   %i = stream.tensor.import on(#hal.device.promise<@a>) consume %v : !hal.buffer_view -> tensor<?x4xf32>{%d} in !stream.resource<external>{%z}
// CHECK-NEXT:   %c = stream.tensor.constant on(#hal.device.promise<@a>) : tensor<2xi32> in !stream.resource<constant> = dense<[1, 2]> : tensor<2xi32>
// CHECK-NEXT:   %p = stream.tensor.splat %s : f32 -> tensor<4xf32> in !stream.resource<*>{%n}
// CHECK-NEXT:   %k = stream.tensor.clone %i : tensor<?x4xf32>{%d} in !stream.resource<external>{%z} -> tensor<?x4xf32>{%d} in !stream.resource<*>{%z}
// CHECK-NEXT:   %e = stream.tensor.export on(#hal.device.promise<@b>) %k : tensor<4x?xf32>{%d} in !stream.resource<*>{%z} -> !hal.buffer_view
// CHECK-NEXT:   util.return %e : !hal.buffer_view
// CHECK-NEXT: }
// CHECK-NEXT: util.func private @copies(%n: index, %v: i32, %w: !stream.timepoint) -> !stream.resource<transient> {
// CHECK-NEXT:   %a = stream.async.alloca on(#hal.device.promise<@a>) : !stream.resource<transient>{%n}
// CHECK-NEXT:   %c = stream.async.constant on(#hal.device.promise<@a>) await(%w) : !stream.resource<transient>{%n} = dense<3> : tensor<8xi32>
// CHECK-NEXT:   %s = stream.async.splat %v : i32 -> !stream.resource<transient>{%n}
// CHECK-NEXT:   %k = stream.async.clone on(#hal.device.promise<@a>) %c : !stream.resource<transient>{%n} -> !stream.resource<transient>{%n}
// CHECK-NEXT:   %l = stream.async.slice %k[%n to %n] : !stream.resource<transient>{%n} -> !stream.resource<transient>{%n}
// CHECK-NEXT:   %f = stream.async.fill %v, %l[%n to %n for %n] : i32 -> %l as !stream.resource<transient>{%n}
// CHECK-NEXT:   %u = stream.async.update on(#hal.device.promise<@b>) %s, %f[%n to %n] : !stream.resource<transient>{%n} -> %f as !stream.resource<transient>{%n}
// CHECK-NEXT:   %y = stream.async.copy %s[%n to %n], %u[%n to %n], %n : !stream.resource<transient>{%n} -> %u as !stream.resource<transient>{%n}
// CHECK-NEXT:   %b = stream.async.barrier on(#hal.device.promise<@b>) %y : !stream.resource<transient>{%n}
// CHECK-NEXT:   %t = stream.async.transfer %b : !stream.resource<transient>{%n} from(#hal.device.promise<@b>) -> to(#hal.device.promise<@a>) !stream.resource<transient>{%n}
// CHECK-NEXT:   util.return %t : !stream.resource<transient>
// CHECK-NEXT: }
// CHECK-NEXT: util.func private @regions(%x: !stream.resource<*>, %n: index, %w: !stream.timepoint) -> !stream.resource<*> {
// CHECK-NEXT:   %r, %r_1, %t = stream.async.execute on(#hal.device.promise<@a>) await(%w) => with(%x as %y: !stream.resource<*>{%n}) -> (!stream.resource<*>{%n}, %x{%n}) {
// CHECK-NEXT:     %p, %q = stream.async.dispatch on(#hal.device.promise<@a>) @e::@f[%n](%y[%n to %n for %n], %n) : (!stream.resource<*>{%n}, index) -> (!stream.resource<*>{%n}, %y{%n})
// CHECK-NEXT:     stream.yield %p, %q : !stream.resource<*>{%n}, !stream.resource<*>{%n}
// CHECK-NEXT:   } => !stream.timepoint
// CHECK-NEXT:   %u = stream.async.execute with() {
// CHECK-NEXT:     stream.yield
// CHECK-NEXT:   } => !stream.timepoint attributes {note}
// CHECK-NEXT:   util.return %r_1 : !stream.resource<*>
// CHECK-NEXT: }
