// RUN: xdsl-opt %s -p irees-annotate-affinities --split-input-file | filecheck %s

// A constant is made where it is used; one with an affinity stays where it says.
// CHECK-LABEL: util.func private @constants(
util.func private @constants(%s: f32) -> tensor<4xf32> {
  // CHECK: %x = flow.tensor.constant
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@a>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>]]
  %x = flow.tensor.constant dense<1.0> : tensor<4xf32>
  // CHECK: %y = flow.tensor.constant
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@b>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@b>]]
  // CHECK-SAME{LITERAL}: stream.affinities.results.usage = [[#hal.device.promise<@a>, #hal.device.promise<@b>]]
  %y = flow.tensor.constant {stream.affinity = #hal.device.promise<@b>} dense<2.0> : tensor<4xf32>
  // CHECK: %z = flow.tensor.transfer
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@a>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>]]
  // CHECK-SAME{LITERAL}: stream.affinities.results.usage = [[#hal.device.promise<@a>, #hal.device.promise<@b>]]
  %z = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@a>
  // An op runs where its operands are: here two places, of which nobody has chosen one.
  // CHECK: %r = flow.dispatch
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@a>, #hal.device.promise<@b>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>, #hal.device.promise<@b>]]
  %r = flow.dispatch @k(%z, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: util.return
  // CHECK-SAME{LITERAL}: stream.affinities.operands = [[#hal.device.promise<@a>, #hal.device.promise<@b>]]
  util.return %r : tensor<4xf32>
}

// -----

// A splat with two consumers belongs to both.
// CHECK-LABEL: util.func private @ambiguous(
util.func private @ambiguous(%s: f32) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %x = flow.tensor.splat
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@a>, #hal.device.promise<@b>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>, #hal.device.promise<@b>]]
  %x = flow.tensor.splat %s : tensor<4xf32>
  // CHECK: %y = flow.tensor.transfer
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@b>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@b>]]
  %y = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@b>
  // CHECK: %z = flow.tensor.transfer
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@a>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>]]
  %z = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@a>
  util.return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

// Nothing says where: nothing is written but empty sets.
// CHECK-LABEL: util.func private @nowhere(
util.func private @nowhere(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %r = flow.dispatch
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[]]
  %r = flow.dispatch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  util.return %r : tensor<4xf32>
}

// -----

// The default answers where nothing else does, and only there.
// CHECK-LABEL: util.func private @default(
util.func private @default(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stream.affinity.default = #hal.device.promise<@d>} {
  // CHECK: %r = flow.dispatch
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@d>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@d>]]
  // CHECK-SAME{LITERAL}: stream.affinities.results.usage = [[#hal.device.promise<@a>]]
  %r = flow.dispatch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %t = flow.tensor.transfer %r : tensor<4xf32> to #hal.device.promise<@a>
  // CHECK: %s = flow.dispatch
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@a>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>]]
  %s = flow.dispatch @k(%t) : (tensor<4xf32>) -> tensor<4xf32>
  util.return %s : tensor<4xf32>
}

// -----

// An op's own affinity wins over where its operands are, and over its surroundings.
// CHECK-LABEL: util.func private @explicit(
util.func private @explicit(%x: tensor<4xf32>) -> tensor<4xf32> attributes {stream.affinity = #hal.device.promise<@c>} {
  %t = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@a>
  // CHECK: %r = flow.dispatch
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@b, [0, 2]>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@b, [0, 2]>]]
  // CHECK-SAME{LITERAL}: stream.affinities.results.usage = [[#hal.device.promise<@b, [0, 2]>, #hal.device.promise<@c>]]
  %r = flow.dispatch @k(%t) {stream.affinity = #hal.device.promise<@b, [0, 2]>} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %s = flow.dispatch
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@c>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@c>]]
  %s = flow.dispatch @k(%r) : (tensor<4xf32>) -> tensor<4xf32>
  util.return %s : tensor<4xf32>
}

// -----

// Storage stays through ties, views and copies.
// CHECK-LABEL: util.func private @chain(
util.func private @chain(%x: tensor<4xf32>, %i: index) -> tensor<2xf32> {
  %t = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@a>
  // CHECK: %d = flow.dispatch
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@b>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>]]
  %d = flow.dispatch @k(%t) {stream.affinity = #hal.device.promise<@b>} : (tensor<4xf32>) -> %t
  // CHECK: %c = tensor.cast
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>]]
  %c = tensor.cast %d : tensor<4xf32> to tensor<?xf32>
  // CHECK: %r = flow.tensor.reshape
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>]]
  %r = flow.tensor.reshape %c : tensor<?xf32>{%i} -> tensor<2x2xf32>
  // CHECK: %s = flow.tensor.slice
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@a>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>]]
  %s = flow.tensor.slice %r[%i, %i for %i, %i] : tensor<2x2xf32> -> tensor<1x2xf32>
  // CHECK: %v = flow.tensor.reshape
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>]]
  %v = flow.tensor.reshape %s : tensor<1x2xf32> -> tensor<2xf32>
  util.return %v : tensor<2xf32>
}

// -----

// An import without an affinity does not say where its tensor is; one with one does.
// CHECK-LABEL: util.func public @imports(
util.func public @imports(%v: !hal.buffer_view) {
  // CHECK: %x = hal.tensor.import
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[]]
  %x = hal.tensor.import %v : !hal.buffer_view -> tensor<4xf32>
  // CHECK: %y = hal.tensor.import
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@b>]]
  %y = hal.tensor.import on(#hal.device.promise<@b>) %v : !hal.buffer_view -> tensor<4xf32>
  util.return
}

// -----

// A value that is pinned elsewhere than it is made: it is there, and used in both places.
// CHECK-LABEL: util.func public @pinned(
util.func public @pinned(%v: !hal.buffer_view, %b: !hal.buffer) -> !hal.buffer_view {
  %x = hal.tensor.import on(#hal.device.promise<@a>) %v : !hal.buffer_view -> tensor<4xf32>
  // CHECK: %y = flow.dispatch
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@a>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@b>]]
  // CHECK-SAME{LITERAL}: stream.affinities.results.usage = [[#hal.device.promise<@a>, #hal.device.promise<@b>]]
  %y = flow.dispatch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %z = hal.tensor.alias
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@b>]]
  // CHECK-SAME{LITERAL}: stream.affinities.results.usage = [[#hal.device.promise<@a>, #hal.device.promise<@b>]]
  %z = hal.tensor.alias on(#hal.device.promise<@b>) %y : tensor<4xf32> to %b : !hal.buffer
  // CHECK: %e = hal.tensor.export
  // CHECK-SAME{LITERAL}: stream.affinities.operands = [[#hal.device.promise<@b>]]
  %e = hal.tensor.export %z : tensor<4xf32> -> !hal.buffer_view
  util.return %e : !hal.buffer_view
}

// -----

// A loop: what enters it, what goes round, what leaves it.
// CHECK-LABEL: util.func private @loop(
util.func private @loop(%x: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  %t = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@a>
  %r = scf.for %k = %i to %i step %i iter_args(%y = %t) -> (tensor<4xf32>) {
    // CHECK: %u = flow.tensor.transfer
    // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@b>]
    // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@b>]]
    %u = flow.tensor.transfer %y : tensor<4xf32> to #hal.device.promise<@b>
    %z = flow.dispatch @k(%u) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %z : tensor<4xf32>
  }
  // CHECK: util.return
  // CHECK-SAME{LITERAL}: stream.affinities.operands = [[#hal.device.promise<@b>]]
  util.return %r : tensor<4xf32>
}

// -----

// A block has what its predecessors give it.
// CHECK-LABEL: func.func private @blocks(
func.func private @blocks(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %s = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@a>
  %t = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@b>
  cf.cond_br %c, ^one(%s : tensor<4xf32>), ^one(%t : tensor<4xf32>)
^one(%y: tensor<4xf32>):
  // CHECK: func.return
  // CHECK-SAME{LITERAL}: stream.affinities.operands = [[#hal.device.promise<@a>, #hal.device.promise<@b>]]
  func.return %y : tensor<4xf32>
}

// -----

// A callee has what its callers give it, and they what it returns.
// CHECK-LABEL: util.func public @caller(
util.func public @caller() {
  // CHECK: %x = flow.tensor.constant
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@a>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>]]
  %x = flow.tensor.constant dense<1.0> : tensor<4xf32>
  // CHECK: %r = util.call
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@a>]]
  %r = util.call @callee(%x) : (tensor<4xf32>) -> tensor<4xf32>
  util.return
}
// CHECK-LABEL: util.func private @callee(
util.func private @callee(%x: tensor<4xf32>) -> tensor<4xf32> {
  %t = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@a>
  util.return %t : tensor<4xf32>
}

// -----

// What the world outside gives is unknown, and no default is assumed for it; ops run by default.
// CHECK-LABEL: util.func private @external(
util.func private @external(tensor<4xf32>) -> tensor<4xf32>
// CHECK-LABEL: util.func public @unknown(
util.func public @unknown(%x: tensor<4xf32>) attributes {stream.affinity.default = #hal.device.promise<@d>} {
  // CHECK: %r = flow.dispatch
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@d>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[]]
  // CHECK-SAME{LITERAL}: stream.affinities.results.usage = [[#hal.device.promise<@d>]]
  %r = flow.dispatch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %s = util.call
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[]]
  // CHECK-SAME{LITERAL}: stream.affinities.results.usage = [[#hal.device.promise<@d>]]
  %s = util.call @external(%r) : (tensor<4xf32>) -> tensor<4xf32>
  util.return
}

// -----

// A global is where it is read.
// CHECK: util.global private mutable @g
// CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@b>]
util.global private mutable @g : tensor<4xf32>
// CHECK-LABEL: util.func private @globals(
util.func private @globals(%x: tensor<4xf32>) {
  %s = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@a>
  // CHECK: util.global.store
  // CHECK-SAME{LITERAL}: stream.affinities.operands = [[#hal.device.promise<@a>]]
  util.global.store %s, @g : tensor<4xf32>
  // CHECK: %l = util.global.load
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@b>]]
  %l = util.global.load @g : tensor<4xf32>
  %t = flow.tensor.transfer %l : tensor<4xf32> to #hal.device.promise<@b>
  util.return
}
