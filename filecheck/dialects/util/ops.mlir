// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

util.global public @v_immutable : tensor<i32>
util.global public mutable @v_mutable : tensor<i32>
util.global private @v_const3 = dense<4> : tensor<4xi32>
util.global public @v_const5 : tensor<4xf32> = dense<4> : tensor<4xi32>
util.initializer {
  %0 = arith.constant dense<1> : tensor<4xi32>
  util.global.store %0, @v_const3 : tensor<4xi32>
  util.return
}
util.func public @f(%arg0: index, %arg1: i64 {iree.abi.affinity = "x"}) -> (index, i64) {
  %0:2 = util.assume.int %arg0[<umin = 0>, <udiv = 5>], %arg1<umin = 1, umax = 10, udiv = 6> : index, i64
  %1 = util.optimization_barrier %0#0 : index
  %2 = util.unfoldable_constant dense<1.5> : tensor<4xf32>
  %3 = util.global.load immutable @v_immutable : tensor<i32>
  %4 = util.align %1, %1 : index
  util.return %1, %0#1 : index, i64
}
util.func private @g(tensor<4xf32>) -> tensor<4xf32>
util.func private @h(%arg0: tensor<4xf32>) -> %arg0 as tensor<4xf32> {
  %0 = util.call @g(%arg0) : (tensor<4xf32>) -> %arg0
  util.return %0 : tensor<4xf32>
}

// CHECK:      builtin.module {
// CHECK-NEXT:   util.global public @v_immutable : tensor<i32>
// CHECK-NEXT:   util.global public mutable @v_mutable : tensor<i32>
// CHECK-NEXT:   util.global private @v_const3 = dense<4> : tensor<4xi32>
// CHECK-NEXT:   util.global public @v_const5 : tensor<4xf32> = dense<4> : tensor<4xi32>
// CHECK-NEXT:   util.initializer {
// CHECK-NEXT:     %0 = arith.constant dense<1> : tensor<4xi32>
// CHECK-NEXT:     util.global.store %0, @v_const3 : tensor<4xi32>
// CHECK-NEXT:     util.return
// CHECK-NEXT:   }
// CHECK-NEXT:   util.func public @f(%arg0: index, %arg1: i64 {iree.abi.affinity = "x"}) -> (index, i64) {
// CHECK-NEXT:     %0, %1 = util.assume.int %arg0[<umin = 0>, <udiv = 5>], %arg1<umin = 1, umax = 10, udiv = 6> : index, i64
// CHECK-NEXT:     %2 = util.optimization_barrier %0 : index
// CHECK-NEXT:     %3 = util.unfoldable_constant dense<1.500000e+00> : tensor<4xf32>
// CHECK-NEXT:     %4 = util.global.load immutable @v_immutable : tensor<i32>
// CHECK-NEXT:     %5 = util.align %2, %2 : index
// CHECK-NEXT:     util.return %2, %1 : index, i64
// CHECK-NEXT:   }
// CHECK-NEXT:   util.func private @g(tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:   util.func private @h(%arg0: tensor<4xf32>) -> %arg0 as tensor<4xf32> {
// CHECK-NEXT:     %0 = util.call @g(%arg0) : (tensor<4xf32>) -> %arg0
// CHECK-NEXT:     util.return %0 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
