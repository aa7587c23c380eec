// RUN: not irees opt %s -p irees-convert-to-stream 2>&1 | filecheck %s

// Nobody waits for years: torch-mlir writes this for a loop whose condition it lost.
// CHECK: convert_to_stream_invalid.mlir:9:3: error: scf.for: a loop with 9223372036854775807 iterations would not finish; set the actual upper bound
func.func @endless(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.constant 9223372036854775807 : index
  %r = scf.for %i = %c0 to %end step %c1 iter_args(%y = %x) -> (tensor<4xf32>) {
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
