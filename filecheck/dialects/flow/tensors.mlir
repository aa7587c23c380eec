// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

util.func private @constants(%s: f32, %n: index) -> tensor<?x4xf32> {
  %c = flow.tensor.constant {stream.affinity = #hal.device.promise<@a>} dense<[1, 2]> : tensor<2xi32>
  %e = flow.tensor.empty : tensor<4xf32>
  %f = flow.tensor.empty : tensor<?x?xf32>{%n, %n}
  %r = flow.tensor.splat %s : tensor<?x4xf32>{%n}
  util.return %r : tensor<?x4xf32>
}
util.func private @copies(%x: tensor<?x4xf32>, %y: tensor<8xf32>, %n: index) -> tensor<?x4xf32> {
  %c = flow.tensor.clone %y : tensor<8xf32>
  %d = flow.tensor.clone %x : tensor<?x4xf32>{%n} attributes {note}
  %t = flow.tensor.transfer %d : tensor<?x4xf32>{%n} to #hal.device.promise<@a>
  %u = flow.tensor.transfer %c : tensor<8xf32> to #hal.device.affinity<@b, [1, 3]>
  %b = flow.tensor.barrier %t : tensor<?x4xf32>{%n} on #hal.device.optimal<[#hal.device.affinity<@a>, #hal.device.affinity<@b, [0]>]>
  util.return %b : tensor<?x4xf32>
}
util.func private @parts(%x: tensor<?x4xf32>, %y: tensor<2x4xf32>, %s: tensor<f32>, %n: index) -> f32 {
  %r = flow.tensor.reshape %x : tensor<?x4xf32>{%n} -> tensor<4x?xf32>{%n}
  %c = flow.tensor.slice %x[%n, %n for %n, %n] : tensor<?x4xf32>{%n} -> tensor<2x?xf32>{%n}
  %u = flow.tensor.update %y, %x[%n, %n] : tensor<2x4xf32> -> %x as tensor<?x4xf32>{%n}
  %v = flow.tensor.update %s, %s[] : tensor<f32> -> %s as tensor<f32>
  %e = flow.tensor.load %u[%n, %n] : tensor<?x4xf32>{%n}
  %f = flow.tensor.load %v : tensor<f32>
  util.return %e : f32
}
util.func private @traces(%x: tensor<?x3x?xi32>, %y: tensor<5xf32>, %n: index, %m: index) {
  flow.tensor.trace "FOOBAR" = [%y : tensor<5xf32>, %x : tensor<?x3x?xi32>{%n, %m}]
  flow.tensor.trace "a \"key\"" = [%y : tensor<5xf32>] attributes {note}
  flow.tensor.trace "" = []
  util.return
}
util.func private @ties(%x: tensor<?xf32>, %y: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %a = flow.dispatch @e::@f[%n, %n](%x, %y, %n) : (tensor<?xf32>{%n}, tensor<4xf32>, index) -> tensor<?xf32>{%n}
  %b = flow.dispatch @e::@f(%a, %y) : (tensor<?xf32>{%n}, tensor<4xf32>) -> %a{%n}
  %c:2 = flow.dispatch {@e::@f, @e::@g}(%b, %y) {stream.affinity = #hal.device.promise<@a>} : (tensor<?xf32>{%n}, tensor<4xf32>) -> (%y, %b as tensor<2x?xf32>{%n})
  util.return %c#0 : tensor<4xf32>
}

// CHECK:      util.func private @constants(%s: f32, %n: index) -> tensor<?x4xf32> {
// CHECK-NEXT:   %c = flow.tensor.constant {stream.affinity = #hal.device.promise<@a>} dense<[1, 2]> : tensor<2xi32>
// CHECK-NEXT:   %e = flow.tensor.empty : tensor<4xf32>
// CHECK-NEXT:   %f = flow.tensor.empty : tensor<?x?xf32>{%n, %n}
// CHECK-NEXT:   %r = flow.tensor.splat %s : tensor<?x4xf32>{%n}
// CHECK-NEXT:   util.return %r : tensor<?x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: util.func private @copies(%x: tensor<?x4xf32>, %y: tensor<8xf32>, %n: index) -> tensor<?x4xf32> {
// CHECK-NEXT:   %c = flow.tensor.clone %y : tensor<8xf32>
// CHECK-NEXT:   %d = flow.tensor.clone %x : tensor<?x4xf32>{%n} attributes {note}
// CHECK-NEXT:   %t = flow.tensor.transfer %d : tensor<?x4xf32>{%n} to #hal.device.promise<@a>
// CHECK-NEXT:   %u = flow.tensor.transfer %c : tensor<8xf32> to #hal.device.affinity<@b, [1, 3]>
// CHECK-NEXT:   %b = flow.tensor.barrier %t : tensor<?x4xf32>{%n} on #hal.device.optimal<[#hal.device.affinity<@a>, #hal.device.affinity<@b, [0]>]>
// CHECK-NEXT:   util.return %b : tensor<?x4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: util.func private @parts(%x: tensor<?x4xf32>, %y: tensor<2x4xf32>, %s: tensor<f32>, %n: index) -> f32 {
// CHECK-NEXT:   %r = flow.tensor.reshape %x : tensor<?x4xf32>{%n} -> tensor<4x?xf32>{%n}
// CHECK-NEXT:   %c = flow.tensor.slice %x[%n, %n for %n, %n] : tensor<?x4xf32>{%n} -> tensor<2x?xf32>{%n}
// CHECK-NEXT:   %u = flow.tensor.update %y, %x[%n, %n] : tensor<2x4xf32> -> %x as tensor<?x4xf32>{%n}
// CHECK-NEXT:   %v = flow.tensor.update %s, %s[] : tensor<f32> -> %s as tensor<f32>
// CHECK-NEXT:   %e = flow.tensor.load %u[%n, %n] : tensor<?x4xf32>{%n}
// CHECK-NEXT:   %f = flow.tensor.load %v : tensor<f32>
// CHECK-NEXT:   util.return %e : f32
// CHECK-NEXT: }
// CHECK-NEXT: util.func private @traces(%x: tensor<?x3x?xi32>, %y: tensor<5xf32>, %n: index, %m: index) {
// CHECK-NEXT:   flow.tensor.trace "FOOBAR" = [%y : tensor<5xf32>, %x : tensor<?x3x?xi32>{%n, %m}]
// CHECK-NEXT:   flow.tensor.trace "a \22key\22" = [%y : tensor<5xf32>] attributes {note}
// CHECK-NEXT:   flow.tensor.trace "" = []
// CHECK-NEXT:   util.return
// CHECK-NEXT: }
// CHECK-NEXT: util.func private @ties(%x: tensor<?xf32>, %y: tensor<4xf32>, %n: index) -> tensor<4xf32> {
// CHECK-NEXT:   %a = flow.dispatch @e::@f[%n, %n](%x, %y, %n) : (tensor<?xf32>{%n}, tensor<4xf32>, index) -> tensor<?xf32>{%n}
// CHECK-NEXT:   %b = flow.dispatch @e::@f(%a, %y) : (tensor<?xf32>{%n}, tensor<4xf32>) -> %a{%n}
// CHECK-NEXT:   %c, %c_1 = flow.dispatch {@e::@f, @e::@g}(%b, %y) {stream.affinity = #hal.device.promise<@a>} : (tensor<?xf32>{%n}, tensor<4xf32>) -> (%y, %b as tensor<2x?xf32>{%n})
// CHECK-NEXT:   util.return %c : tensor<4xf32>
// CHECK-NEXT: }
