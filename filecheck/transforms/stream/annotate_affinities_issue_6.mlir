// RUN: xdsl-opt %s -p irees-annotate-affinities --split-input-file | filecheck %s

// Two products, the first on one device and the second on another. The export says nothing, so the
// result stays where it is made: no default device pulls it back.
// CHECK-LABEL: util.func public @two_products(
util.func public @two_products(%v: !hal.buffer_view) -> !hal.buffer_view attributes {stream.affinity.default = #hal.device.promise<@dev_0>} {
  %x = hal.tensor.import on(#hal.device.promise<@dev_0>) %v : !hal.buffer_view -> tensor<512x512xf32>
  %0 = flow.dispatch @matmul(%x, %x) {stream.affinity = #hal.device.promise<@dev_0>} : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %1 = flow.tensor.transfer %0 : tensor<512x512xf32> to #hal.device.promise<@dev_1>
  // CHECK: %2 = flow.dispatch
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@dev_1>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@dev_1>]]
  %2 = flow.dispatch @matmul(%1, %1) : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  // CHECK: %3 = hal.tensor.export
  // CHECK-SAME{LITERAL}: stream.affinities.operands = [[#hal.device.promise<@dev_1>]]
  %3 = hal.tensor.export %2 : tensor<512x512xf32> -> !hal.buffer_view
  util.return %3 : !hal.buffer_view
}

// -----

// With an affinity, the export pins the result to the first device: it is made on one and is on the
// other, and a transfer or an allocation there is meant.
// CHECK-LABEL: util.func public @pinned_result(
util.func public @pinned_result(%v: !hal.buffer_view) -> !hal.buffer_view attributes {stream.affinity.default = #hal.device.promise<@dev_0>} {
  %x = hal.tensor.import on(#hal.device.promise<@dev_0>) %v : !hal.buffer_view -> tensor<512x512xf32>
  %0 = flow.dispatch @matmul(%x, %x) {stream.affinity = #hal.device.promise<@dev_0>} : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %1 = flow.tensor.transfer %0 : tensor<512x512xf32> to #hal.device.promise<@dev_1>
  // CHECK: %2 = flow.dispatch
  // CHECK-SAME{LITERAL}: stream.affinities = [#hal.device.promise<@dev_1>]
  // CHECK-SAME{LITERAL}: stream.affinities.results = [[#hal.device.promise<@dev_0>]]
  // CHECK-SAME{LITERAL}: stream.affinities.results.usage = [[#hal.device.promise<@dev_0>, #hal.device.promise<@dev_1>]]
  %2 = flow.dispatch @matmul(%1, %1) : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  // CHECK: %3 = hal.tensor.export
  // CHECK-SAME{LITERAL}: stream.affinities.operands = [[#hal.device.promise<@dev_0>]]
  %3 = hal.tensor.export on(#hal.device.promise<@dev_0>) %2 : tensor<512x512xf32> -> !hal.buffer_view
  util.return %3 : !hal.buffer_view
}
