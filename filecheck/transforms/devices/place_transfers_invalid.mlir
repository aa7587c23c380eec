// RUN: irees opt %s -p irees-place-transfers --split-input-file --verify-diagnostics

func.func @untransferred(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.absf %x {stream.affinity = #hal.device.promise<@a>} : tensor<4xf32>
  // expected-error @+1 {{runs on @b, but operand 0 is on @a; transfer it first}}
  %1 = math.exp %0 {stream.affinity = #hal.device.promise<@b>} : tensor<4xf32>
  return %1 : tensor<4xf32>
}
