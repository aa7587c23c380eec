// RUN: xdsl-opt %s -p irees-convert-util-to-func --split-input-file | filecheck %s

// What callers read of a signature stays; ties and policies go.
// CHECK-LABEL:   func.func public @main(%x: tensor<4xf32> {iree.abi.affinity = #hal.device.promise<@dev_0>})
// CHECK-SAME:      -> (tensor<4xf32> {iree.abi.affinity = #hal.device.promise<@dev_1>}) attributes {noinline} {
// CHECK-NEXT:      %0 = func.call @step(%x) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:      func.return %0 : tensor<4xf32>
// CHECK:         func.func private @step(%y: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:      func.return %y : tensor<4xf32>
util.func public @main(%x: tensor<4xf32> {iree.abi.affinity = #hal.device.promise<@dev_0>})
    -> (%x as tensor<4xf32> {iree.abi.affinity = #hal.device.promise<@dev_1>}) attributes {noinline} {
  %0 = util.call @step(%x) : (tensor<4xf32>) -> %x as tensor<4xf32>
  util.return %0 : tensor<4xf32>
}
util.func private @step(%y: tensor<4xf32>) -> tensor<4xf32> {
  util.return %y : tensor<4xf32>
}

// -----

// Several blocks, no results, and a function that is defined elsewhere.
// CHECK-LABEL:   func.func @branches(%c: i1, %x: tensor<?xf32>) -> (tensor<?xf32>, i1) {
// CHECK:           cf.cond_br %c, ^a, ^b
// CHECK:         ^a:
// CHECK-NEXT:      func.return %x, %c : tensor<?xf32>, i1
// CHECK:         ^b:
// CHECK-NEXT:      func.call @nothing() : () -> ()
// CHECK:           func.return
// CHECK:         func.func private @nothing() -> ()
util.func @branches(%c: i1, %x: tensor<?xf32>) -> (tensor<?xf32>, i1) {
  cf.cond_br %c, ^a, ^b
^a:
  util.return %x, %c : tensor<?xf32>, i1
^b:
  util.call @nothing() : () -> ()
  util.return %x, %c : tensor<?xf32>, i1
}
util.func private @nothing()

// -----

// An initializer is no function.
// CHECK:         util.initializer {
// CHECK-NEXT:      util.return
util.initializer {
  util.return
}
