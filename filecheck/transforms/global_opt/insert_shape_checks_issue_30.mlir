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

// A loop whose step is not known counts its iterations; one by a constant stays.
// CHECK-LABEL: func.func @steps
// CHECK:         %[[POSITIVE:.*]] = arith.cmpi sle, %[[ONE:.*]], %s : index
// CHECK-NEXT:    cf.assert %[[POSITIVE]], "a step of scf.for is not positive"
// CHECK-NEXT:    %[[S:.*]] = arith.maxsi %s, %[[ONE]] : index
// CHECK-NEXT:    %[[SPAN:.*]] = arith.subi %n, %m : index
// CHECK-NEXT:    %[[LAST:.*]] = arith.subi %[[SPAN]], %[[ONE]] : index
// CHECK-NEXT:    %[[TRIPS:.*]] = arith.divui %[[LAST]], %[[S]] : index
// CHECK-NEXT:    %[[MORE:.*]] = arith.addi %[[TRIPS]], %[[ONE]] : index
// CHECK-NEXT:    %[[SOME:.*]] = arith.cmpi slt, %m, %n : index
// CHECK-NEXT:    %[[N:.*]] = arith.select %[[SOME]], %[[MORE]], %[[ZERO:.*]] : index
// CHECK-NEXT:    %[[FITS:.*]] = arith.cmpi sle, %[[ZERO]], %[[N]] : index
// CHECK-NEXT:    cf.assert %[[FITS]], "scf.for has too many iterations"
// CHECK-NEXT:    scf.for %[[K:.*]] = %[[ZERO]] to %[[N]] step %[[ONE]]
// CHECK-NEXT:      %[[OFFSET:.*]] = arith.muli %[[K]], %[[S]] : index
// CHECK-NEXT:      %[[I:.*]] = arith.addi %m, %[[OFFSET]] : index
// CHECK-NEXT:      %{{.*}} = arith.addi %{{.*}}, %[[I]] : index
// CHECK:         scf.for %{{.*}} = %m to %n step %c2
func.func @steps(%m: index, %n: index, %s: index) -> index {
  %c2 = arith.constant 2 : index
  %r = scf.for %i = %m to %n step %s iter_args(%t = %m) -> index {
    %u = arith.addi %t, %i : index
    scf.yield %u : index
  }
  %q = scf.for %i = %m to %n step %c2 iter_args(%t = %r) -> index {
    %u = arith.addi %t, %i : index
    scf.yield %u : index
  }
  return %q : index
}

// An i8 from 0 to 127 by 2 would be -128 after 126.
// CHECK-LABEL: func.func @narrow
// CHECK:         scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (i8) {
// CHECK:           %[[I:.*]] = arith.index_cast %{{.*}} : index to i8
func.func @narrow() -> i8 {
  %c0 = arith.constant 0 : i8
  %c2 = arith.constant 2 : i8
  %n = arith.constant 127 : i8
  %r = scf.for %i = %c0 to %n step %c2 iter_args(%t = %c0) -> i8 : i8 {
    %u = arith.addi %t, %i : i8
    scf.yield %u : i8
  }
  return %r : i8
}

// Loop j has points, but the nest has none where i or k is empty.
// CHECK-LABEL: func.func @points_of_an_empty_nest
// CHECK:         %[[K:.*]] = tensor.dim %y, %{{.*}}
// CHECK:         %[[I:.*]] = tensor.dim %y, %{{.*}}
// CHECK:         scf.for
// CHECK:           %[[IN:.*]] = arith.cmpi sle
// CHECK:           %[[E:.*]] = arith.cmpi eq, %[[K]], %{{.*}} : index
// CHECK-NEXT:      %[[O:.*]] = arith.ori %[[IN]], %[[E]] : i1
// CHECK:           %[[F:.*]] = arith.cmpi eq, %[[I]], %{{.*}} : index
// CHECK-NEXT:      %[[P:.*]] = arith.ori %[[O]], %[[F]] : i1
// CHECK-NEXT:      cf.assert %[[P]], "the window of linalg.generic must lie inside dim 0 of operand 0"
func.func @points_of_an_empty_nest(%x: tensor<2xf32>, %y: tensor<?x?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> ((j + j) mod 5)>, affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (j)>], iterator_types = ["reduction", "parallel", "reduction"]} ins(%x, %y : tensor<2xf32>, tensor<?x?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// Of no elements the last dim may be empty, and the product of the first two wrap around.
// CHECK-LABEL: func.func @collapse_of_what_may_be_empty
// CHECK:         %[[MOST:.*]] = arith.constant 288230376151711744 : index
// CHECK:         %[[LEFT:.*]] = arith.divui %[[MOST]], %{{.*}} : index
// CHECK:         %[[FITS:.*]] = arith.cmpi sle, %{{.*}}, %[[LEFT]] : index
// CHECK-NEXT:    cf.assert %[[FITS]], "dim 0 of the result of tensor.collapse_shape is too large"
func.func @collapse_of_what_may_be_empty(%x: tensor<?x?x?xf32>) -> tensor<?x?xf32> {
  %r = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x?xf32> into tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @no_collapse_of_some
// CHECK-NOT:     cf.assert
// CHECK:         return
func.func @no_collapse_of_some(%x: tensor<?x?x4xf32>) -> tensor<?x4xf32> {
  %r = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x4xf32> into tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// The verifier sees that the first and the last point are inside; the second is not.
// CHECK-LABEL: func.func @remainder_between_the_ends
// CHECK:         scf.for
// CHECK:           cf.assert %{{.*}}, "the window of linalg.generic must lie inside dim 0 of operand 0"
func.func @remainder_between_the_ends(%o: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c = arith.constant 1.0 : f32
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> ((i + 1) mod 3, i)>], iterator_types = ["parallel"]} outs(%o : tensor<2x4xf32>) {
  ^bb0(%a: f32):
    linalg.yield %c : f32
  } -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// A remainder of 3 is inside of 3 elements at every point.
// CHECK-LABEL: func.func @no_remainder
// CHECK-NOT:     cf.assert
// CHECK:         return
func.func @no_remainder(%o: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %c = arith.constant 1.0 : f32
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> ((i + 1) mod 3, i)>], iterator_types = ["parallel"]} outs(%o : tensor<3x4xf32>) {
  ^bb0(%a: f32):
    linalg.yield %c : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
