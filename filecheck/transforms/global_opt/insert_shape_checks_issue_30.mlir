// RUN: xdsl-opt %s -p irees-insert-shape-checks | filecheck %s

// Analyses count on what is assumed: bounds without a sign, multiples, one of several.
// CHECK-LABEL: func.func @assumed
// CHECK:         %[[MIN:.*]] = arith.cmpi uge, %n, %{{.*}} : index
// CHECK:         %[[MAX:.*]] = arith.cmpi ule, %n, %{{.*}} : index
// CHECK:         %[[BOTH:.*]] = arith.andi %[[MIN]], %[[MAX]] : i1
// CHECK:         cf.assert %[[BOTH]], "an operand of util.assume.int is not what is assumed"
// CHECK:         arith.remui %m, %{{.*}} : index
// CHECK:         %[[EITHER:.*]] = arith.ori %{{.*}}, %{{.*}} : i1
// CHECK:         cf.assert %[[EITHER]], "an operand of util.assume.int is not what is assumed"
// CHECK-NEXT:    util.assume.int %n<umin = 1, umax = 9>, %m[<umax = 3>, <udiv = 8>]
func.func @assumed(%n: index, %m: index) -> (index, index) {
  %a:2 = util.assume.int %n<umin = 1, umax = 9>, %m[<umax = 3>, <udiv = 8>] : index, index
  return %a#0, %a#1 : index, index
}

// A body has no asserts: nothing is assumed in it.
// CHECK-LABEL: func.func @assumed_in_a_body
// CHECK-NOT:     util.assume.int
// CHECK:         return
func.func @assumed_in_a_body(%x: tensor<?xi32>) -> tensor<?xi32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<?xi32>) outs(%x : tensor<?xi32>) {
  ^bb0(%v: i32, %o: i32):
    %a = util.assume.int %v<umax = 3> : i32
    linalg.yield %a : i32
  } -> tensor<?xi32>
  return %r : tensor<?xi32>
}
