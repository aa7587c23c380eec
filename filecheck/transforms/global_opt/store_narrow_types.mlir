// RUN: xdsl-opt %s -p irees-store-narrow-types | filecheck %s

// A float of 8 bits is stored as its code, and callers know its type. Widening shifts the code to
// the place of f32's mantissa and mends the bias of its exponent.
// CHECK-LABEL: func.func @widen
// CHECK-SAME:    (%x: tensor<?xi8> {irees.element = "f8E5M2"}, %o: tensor<?xf32>) -> tensor<?xf32>
// CHECK:         ^bb0(%[[A:.*]]: i8, %{{.*}}: f32):
// CHECK-NEXT:      %[[CODE:.*]] = arith.extui %[[A]] : i8 to i32
// CHECK:           %[[SHIFTED:.*]] = arith.shli
// CHECK-NEXT:      %[[NUMBER:.*]] = arith.bitcast %[[SHIFTED]] : i32 to f32
// CHECK-NEXT:      arith.mulf %[[NUMBER]]
// CHECK-NOT:     arith.extf
func.func @widen(%x: tensor<?xf8E5M2>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf8E5M2>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f8E5M2, %b: f32):
    %w = arith.extf %a : f8E5M2 to f32
    linalg.yield %w : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// Arithmetic is done in f32 and rounded; an f16 becomes an f32 first.
// CHECK-LABEL: func.func @compute
// CHECK:         %[[WIDE:.*]] = arith.extf %y : f16 to f32
// CHECK:         %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NOT:     f4E2M1FN
// CHECK:         func.return %{{.*}} : i8
func.func @compute(%x: f4E2M1FN, %y: f16) -> f4E2M1FN {
  %z = arith.truncf %y : f16 to f4E2M1FN
  %s = arith.addf %x, %z : f4E2M1FN
  return %s : f4E2M1FN
}

// Constants are stored as codes.
// CHECK-LABEL: func.func @constants
// CHECK:         arith.constant 124 : i8
// CHECK:         arith.constant dense<[64, 127]> : tensor<2xi8>
// CHECK:         arith.constant dense<-1> : tensor<2xi8>
func.func @constants() -> (f8E5M2, tensor<2xf8E4M3FN>, tensor<2xi4>) {
  %a = arith.constant 0x7C : f8E5M2
  %b = arith.constant dense<[2.0, 0x7F]> : tensor<2xf8E4M3FN>
  %c = arith.constant dense<15> : tensor<2xi4>
  return %a, %b, %c : f8E5M2, tensor<2xf8E4M3FN>, tensor<2xi4>
}

// Sums of integers are wrapped to their width. An unsigned op masks its operands first.
// CHECK-LABEL: func.func @integers
// CHECK-SAME:    (%x: i8 {irees.element = "i4"}, %y: i8 {irees.element = "i4"})
// CHECK:         %[[SUM:.*]] = arith.addi %{{.*}}, %{{.*}} : i8
// CHECK:         %[[UP:.*]] = arith.shli %[[SUM]], %[[FOUR:.*]] : i8
// CHECK-NEXT:    arith.shrsi %[[UP]], %[[FOUR]] : i8
// CHECK:         %[[MASK:.*]] = arith.constant 15 : i8
// CHECK-NEXT:    %[[UNSIGNED:.*]] = arith.andi %{{.*}}, %[[MASK]] : i8
// CHECK-NEXT:    arith.uitofp %[[UNSIGNED]] : i8 to f32
func.func @integers(%x: i4, %y: i4) -> (i4, f32) {
  %s = arith.addi %x, %y : i4
  %f = arith.uitofp %x : i4 to f32
  return %s, %f : i4, f32
}

// The byte of a caller may have any bits above those of the number.
// CHECK-LABEL: func.func @extended
// CHECK:         linalg.generic
// CHECK:           %[[UP:.*]] = arith.shli %{{.*}}, %[[SIX:.*]] : i8
// CHECK-NEXT:      %[[DOWN:.*]] = arith.shrsi %[[UP]], %[[SIX]] : i8
// CHECK-NEXT:      linalg.yield %[[DOWN]] : i8
func.func @extended(%x: tensor<?xi2>) -> tensor<?xi2> {
  return %x : tensor<?xi2>
}

// A sign-extended integer keeps its order, as an unsigned number, too.
// CHECK-LABEL: func.func @no_masks
// CHECK:         %[[Y:.*]] = arith.shrsi
// CHECK:         %[[X:.*]] = arith.shrsi
// CHECK-NEXT:    %[[LESS:.*]] = arith.cmpi ult, %[[X]], %[[Y]] : i8
// CHECK-NEXT:    arith.select %[[LESS]], %[[X]], %[[Y]] : i8
// CHECK-NEXT:    func.return
func.func @no_masks(%x: i3, %y: i3) -> i3 {
  %c = arith.cmpi ult, %x, %y : i3
  %r = arith.select %c, %x, %y : i3
  return %r : i3
}

// Integers of 1, 8, 16, 32 and 64 bits stay.
// CHECK-LABEL: func.func @no_change
// CHECK-SAME:    (%x: i1, %y: tensor<?xi8>, %z: index)
// CHECK-NEXT:    func.return
func.func @no_change(%x: i1, %y: tensor<?xi8>, %z: index) -> i1 {
  return %x : i1
}
