// RUN: xdsl-opt %s -p irees-convert-ml-program-to-util | filecheck %s

// CHECK:       util.global private mutable @seed = dense<0> : tensor<i64>
// CHECK-NEXT:  util.global @table = dense<1.000000e+00> : tensor<2xf32>
ml_program.global private mutable @seed(dense<0> : tensor<i64>) : tensor<i64>
ml_program.global @table(dense<1.0> : tensor<2xf32>) : tensor<2xf32>

// CHECK-LABEL: func.func @next
// CHECK-NEXT:    %[[OLD:.*]] = util.global.load @seed : tensor<i64>
// CHECK-NEXT:    util.global.load immutable @table : tensor<2xf32>
// CHECK-NEXT:    util.global.store %[[OLD]], @seed : tensor<i64>
func.func @next() -> tensor<2xf32> {
  %old = ml_program.global_load @seed : tensor<i64>
  %table = ml_program.global_load_const @table : tensor<2xf32>
  ml_program.global_store @seed = %old : tensor<i64>
  return %table : tensor<2xf32>
}
