// RUN: xdsl-opt %s -p 'irees-assign-target{facts="features=avx"},irees-lower-vector-reductions' | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{target="cuda:sm_80"},irees-lower-vector-reductions' | filecheck %s --check-prefix=GPU

// Halves are combined until one lane is left; the accumulator comes last.
// CHECK-LABEL: func.func @sum
// CHECK-NEXT:    %[[H:.*]] = vector.shuffle %v, %v [2, 3, 0, 1] : vector<4xf32>, vector<4xf32>
// CHECK-NEXT:    %[[A:.*]] = arith.addf %v, %[[H]] : vector<4xf32>
// CHECK-NEXT:    %[[Q:.*]] = vector.shuffle %[[A]], %[[A]] [1, 0, 3, 2] : vector<4xf32>, vector<4xf32>
// CHECK-NEXT:    %[[B:.*]] = arith.addf %[[A]], %[[Q]] : vector<4xf32>
// CHECK-NEXT:    %[[R:.*]] = vector.extract %[[B]][0] : f32 from vector<4xf32>
// CHECK-NEXT:    arith.addf %[[R]], %x : f32
// GPU-LABEL:   func.func @sum
// GPU-NEXT:      %[[R:.*]] = vector.reduction <add>, %v : vector<4xf32> into f32
// GPU-NEXT:      arith.addf %[[R]], %x : f32
func.func @sum(%v: vector<4xf32>, %x: f32) -> f32 {
  %r = vector.reduction <add>, %v, %x : vector<4xf32> into f32
  return %r : f32
}

// Three lanes have no halves.
// CHECK-LABEL: func.func @largest
// CHECK:         vector.extract %v[0]
// CHECK-NEXT:    vector.extract %v[1]
// CHECK-NEXT:    arith.maxui
// CHECK-NEXT:    vector.extract %v[2]
// CHECK-NEXT:    arith.maxui
// CHECK-NOT:     vector.shuffle
func.func @largest(%v: vector<3xi32>) -> i32 {
  %r = vector.reduction <maxui>, %v : vector<3xi32> into i32
  return %r : i32
}

// The signs of a mask move to a scalar register at once. Those of 16 lanes need AVX-512.
// CHECK-LABEL: func.func @tests
// CHECK-NEXT:    vector.reduction <and>, %a : vector<8xi1> into i1
// CHECK-NEXT:    vector.shuffle %b, %b
// GPU-LABEL:   func.func @tests
// GPU-NEXT:      vector.reduction <and>, %a
// GPU-NEXT:      vector.reduction <or>, %b
func.func @tests(%a: vector<8xi1>, %b: vector<16xi1>) -> (i1, i1) {
  %r = vector.reduction <and>, %a : vector<8xi1> into i1
  %s = vector.reduction <or>, %b : vector<16xi1> into i1
  return %r, %s : i1, i1
}
