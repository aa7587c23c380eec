// RUN: xdsl-opt %s -p irees-place-globals --split-input-file | filecheck %s

// One store says where: every access is there.
util.global private mutable @said : tensor<?xi32>
// CHECK-LABEL: func.func @stored
func.func @stored(%x: tensor<?xi32>) -> tensor<?xi32> {
  // CHECK-NEXT: util.global.store %x, @said {stream.affinity = #hal.device.promise<@b>}
  // CHECK-NEXT: util.global.load @said {stream.affinity = #hal.device.promise<@b>}
  util.global.store %x, @said {stream.affinity = #hal.device.promise<@b>} : tensor<?xi32>
  %0 = util.global.load @said : tensor<?xi32>
  %1 = math.absi %x {stream.affinity = #hal.device.promise<@a>} : tensor<?xi32>
  return %0 : tensor<?xi32>
}

// -----

// Nothing says where: the device on which what is loaded is used.
util.global private mutable @used = dense<0> : tensor<4xi32>
// CHECK-LABEL: func.func @loaded
func.func @loaded(%x: tensor<4xi32>) -> tensor<4xi32> {
  // CHECK: util.global.load @used {stream.affinity = #hal.device.promise<@b>}
  %a = math.absi %x {stream.affinity = #hal.device.promise<@a>} : tensor<4xi32>
  %0 = util.global.load @used : tensor<4xi32>
  %1 = math.absi %0 {stream.affinity = #hal.device.promise<@b>} : tensor<4xi32>
  return %1 : tensor<4xi32>
}

// -----

// What never changes may be everywhere.
util.global private @constant = dense<0> : tensor<4xi32>
// CHECK-LABEL: func.func @no_place
func.func @no_place() -> tensor<4xi32> {
  // CHECK-NEXT: util.global.load immutable @constant : tensor<4xi32>
  %0 = util.global.load @constant : tensor<4xi32>
  %1 = math.absi %0 {stream.affinity = #hal.device.promise<@b>} : tensor<4xi32>
  return %1 : tensor<4xi32>
}
