// RUN: xdsl-opt %s -p irees-evaluate-initializers --split-input-file | filecheck %s

// Initializers run in order: the second reads what the first stored, through a function.
// CHECK:         util.global private @a = dense_resource<folded_[[A:.*]]> : tensor<2xf32>
// CHECK-NEXT:    util.global private mutable @b = dense_resource<folded_[[B:.*]]> : tensor<2xf32>
// CHECK-NEXT:    util.global private @n = 7 : i64
// CHECK-NOT:     util.initializer
// CHECK-LABEL:   func.func @main
util.global private @a : tensor<2xf32>
util.global private mutable @b = dense<0.0> : tensor<2xf32>
util.global private @n : i64
func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %e = tensor.empty() : tensor<2xf32>
  %r = linalg.add ins(%x, %x : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}
util.initializer {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  util.global.store %c, @a : tensor<2xf32>
  %n = arith.constant 7 : i64
  util.global.store %n, @n : i64
  util.return
}
util.initializer {
  %a = util.global.load @a : tensor<2xf32>
  %b = func.call @twice(%a) : (tensor<2xf32>) -> tensor<2xf32>
  util.global.store %b, @b : tensor<2xf32>
  util.return
}
func.func @main() -> (tensor<2xf32>, tensor<2xf32>, i64) {
  %a = util.global.load @a : tensor<2xf32>
  %b = util.global.load @b : tensor<2xf32>
  %n = util.global.load @n : i64
  return %a, %b, %n : tensor<2xf32>, tensor<2xf32>, i64
}

// -----

// A global that is only read keeps its value as it is.
// CHECK:         util.global private @kept = dense<3.000000e+00> : tensor<2xf32>
// CHECK-NEXT:    util.global private @made = dense_resource
// CHECK-NEXT:  }
util.global private @kept = dense<3.0> : tensor<2xf32>
util.global private @made : tensor<2xf32>
util.initializer {
  %k = util.global.load @kept : tensor<2xf32>
  util.global.store %k, @made : tensor<2xf32>
  util.return
}

// -----

// Nothing to run, nothing to do.
// CHECK:         util.global private mutable @no_initializer : tensor<2xf32>
util.global private mutable @no_initializer : tensor<2xf32>
