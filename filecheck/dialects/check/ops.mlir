// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

func.func @c(%a: tensor<2xf32>, %b: tensor<2xi1>, %t: i32) {
  check.expect_true(%t) : i32
  check.expect_all_true(%b) : tensor<2xi1>
  check.expect_eq(%a, %a) : tensor<2xf32>
  check.expect_eq_const(%a, dense<1.0> : tensor<2xf32>) : tensor<2xf32>
  check.expect_almost_eq(%a, %a) : tensor<2xf32>
  check.expect_almost_eq(%a, %a, atol 0.1, rtol 0.2) : tensor<2xf32>
  check.expect_almost_eq_const(%a, dense<1.0> : tensor<2xf32>, atol 1.0e-2) : tensor<2xf32>
  return
}

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @c(%a: tensor<2xf32>, %b: tensor<2xi1>, %t: i32) {
// CHECK-NEXT:     check.expect_true(%t) : i32
// CHECK-NEXT:     check.expect_all_true(%b) : tensor<2xi1>
// CHECK-NEXT:     check.expect_eq(%a, %a) : tensor<2xf32>
// CHECK-NEXT:     check.expect_eq_const(%a, dense<1.000000e+00> : tensor<2xf32>) : tensor<2xf32>
// CHECK-NEXT:     check.expect_almost_eq(%a, %a) : tensor<2xf32>
// CHECK-NEXT:     check.expect_almost_eq(%a, %a, atol 1.000000e-01, rtol 2.000000e-01) : tensor<2xf32>
// CHECK-NEXT:     check.expect_almost_eq_const(%a, dense<1.000000e+00> : tensor<2xf32>, atol 1.000000e-02) : tensor<2xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
