// RUN: not irees opt %s -p irees-decompose-tensor-ops 2>&1 | filecheck %s

// Whatever %n is, the elements of %x do not fit behind the first one of the result.
// CHECK: decompose_tensor_ops_invalid.mlir:7:3: error: tensor.pad: offset 0 is out-of-bounds: 1 >= 1
func.func @beyond(%x: tensor<4xf32>, %n: index) -> tensor<1xf32> {
  %v = arith.constant 7.0 : f32
  %r = tensor.pad %x low[1] high[%n] {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<4xf32> to tensor<1xf32>
  return %r : tensor<1xf32>
}
