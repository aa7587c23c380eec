// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=16"},irees-cpu-lower-scans' | filecheck %s

// A running maximum: the elements of a vector are combined with those one lane before, then two.
// The last lane of a vector is the running value of the next.
// CHECK-LABEL: func.func @prefixes
// CHECK:         scf.for %[[I:.*]] = {{.*}} iter_args({{.*}}) -> (vector<4xi32>, vector<4xi32>, vector<4xi32>, vector<4xi32>) {
// CHECK:           %[[X:.*]] = vector.load %x[%{{.*}}, %[[I]]]
// CHECK:           %[[S:.*]] = vector.shuffle %[[X]], %[[X]] [0, 0, 1, 2] : vector<4xi32>, vector<4xi32>
// CHECK-NEXT:      %[[M:.*]] = arith.maxsi %[[S]], %[[X]]
// CHECK-NEXT:      %[[T:.*]] = vector.shuffle %[[M]], %[[M]] [0, 0, 0, 1] : vector<4xi32>, vector<4xi32>
// CHECK-NEXT:      %[[N:.*]] = arith.maxsi %[[T]], %[[M]]
// CHECK-NEXT:      %[[Y:.*]] = arith.maxsi %{{.*}}, %[[N]]
// CHECK-NEXT:      vector.store %[[Y]], %y[%{{.*}}, %[[I]]]
// CHECK-NEXT:      vector.shuffle %[[Y]], %[[Y]] [3, 3, 3, 3] : vector<4xi32>, vector<4xi32>
// CHECK:         scf.for {{.*}} -> (i32, i32, i32, i32) {
// CHECK-COUNT-4:   arith.maxsi %{{.*}} : i32
func.func @prefixes(%x: memref<4x9xi32>, %y: memref<4x9xi32>, %a: memref<4xi32>) {
  iree_linalg_ext.scan dimension(1) inclusive(true) ins(%x : memref<4x9xi32>) outs(%y, %a : memref<4x9xi32>, memref<4xi32>) {
  ^bb0(%l: i32, %r: i32):
    %s = arith.maxsi %l, %r : i32
    iree_linalg_ext.yield %s : i32
  }
  return
}

// Comparisons may select the operand: the last of the greatest, or the last NaN. Sizes may be dynamic.
// CHECK-LABEL: func.func @chosen
// CHECK-COUNT-2: vector.shuffle
// CHECK:         arith.select %{{.*}} : vector<4xi1>, vector<4xf32>
func.func @chosen(%x: memref<?xf32>, %y: memref<?xf32>, %a: memref<f32>) {
  iree_linalg_ext.scan dimension(0) inclusive(true) ins(%x : memref<?xf32>) outs(%y, %a : memref<?xf32>, memref<f32>) {
  ^bb0(%l: f32, %r: f32):
    %c = arith.cmpf oge, %r, %l : f32
    %n = math.isnan %r : f32
    %b = arith.ori %c, %n : i1
    %s = arith.select %b, %r, %l : f32
    iree_linalg_ext.yield %s : f32
  }
  return
}

// Without the test for NaN the order of combinations matters: 1, NaN, 2 is 2 from the left, but 1
// from the right.
// CHECK-LABEL: func.func @no_selection
// CHECK-NOT:     vector.
func.func @no_selection(%x: memref<64xf32>, %y: memref<64xf32>, %a: memref<f32>) {
  iree_linalg_ext.scan dimension(0) inclusive(true) ins(%x : memref<64xf32>) outs(%y, %a : memref<64xf32>, memref<f32>) {
  ^bb0(%l: f32, %r: f32):
    %c = arith.cmpf oge, %r, %l : f32
    %s = arith.select %c, %r, %l : f32
    iree_linalg_ext.yield %s : f32
  }
  return
}

// A value from outside the combiner is not one of its operands.
// CHECK-LABEL: func.func @no_outside
// CHECK-NOT:     vector.
func.func @no_outside(%x: memref<64xf32>, %y: memref<64xf32>, %a: memref<f32>, %z: f32) {
  iree_linalg_ext.scan dimension(0) inclusive(true) ins(%x : memref<64xf32>) outs(%y, %a : memref<64xf32>, memref<f32>) {
  ^bb0(%l: f32, %r: f32):
    %c = arith.cmpf oge, %r, %z : f32
    %s = arith.select %c, %r, %l : f32
    iree_linalg_ext.yield %s : f32
  }
  return
}
