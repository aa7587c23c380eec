// RUN: irees opt %s -p irees-place-globals --split-input-file --verify-diagnostics

util.global private mutable @g = dense<0> : tensor<4xi32>
func.func @two_places(%x: tensor<4xi32>) -> tensor<4xi32> {
  util.global.store %x, @g {stream.affinity = #hal.device.promise<@a>} : tensor<4xi32>
  // expected-error @+1 {{runs on @b, but the global @g is on @a}}
  %0 = util.global.load @g {stream.affinity = #hal.device.promise<@b>} : tensor<4xi32>
  return %0 : tensor<4xi32>
}
