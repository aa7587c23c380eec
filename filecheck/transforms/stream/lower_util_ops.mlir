// RUN: xdsl-opt %s -p irees-lower-util-ops | filecheck %s

// CHECK-LABEL: func.func @hints
// CHECK-SAME:    (%x: tensor<4xf32>, %n: index, %m: index)
// CHECK-NEXT:    %c = arith.constant 42 : i32
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[REST:.*]] = arith.subi %m, %[[ONE]]
// CHECK-NEXT:    %[[ABOVE:.*]] = arith.addi %n, %[[REST]]
// CHECK-NEXT:    %[[MASK:.*]] = arith.subi %[[ZERO]], %m
// CHECK-NEXT:    %[[A:.*]] = arith.andi %[[ABOVE]], %[[MASK]]
// CHECK-NEXT:    func.return %x, %[[A]], %n, %c
func.func @hints(%x: tensor<4xf32>, %n: index, %m: index) -> (tensor<4xf32>, index, index, i32) {
  %y, %k = util.optimization_barrier %x, %n : tensor<4xf32>, index
  %l = util.assume.int %k<umin = 1, umax = 10> : index
  %c = util.unfoldable_constant 42 : i32
  %a = util.align %l, %m : index
  return %y, %a, %l, %c : tensor<4xf32>, index, index, i32
}
