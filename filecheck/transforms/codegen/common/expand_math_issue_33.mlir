// RUN: xdsl-opt %s -p 'irees-assign-target{facts="features=fma"},irees-expand-math' | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=32"},irees-expand-math' | filecheck %s --check-prefix=UNFUSED

// A quotient below 2^52 in all lanes: one fused multiply-add, and the divisor once more below zero.
// CHECK-LABEL: func.func @remainder
// CHECK:         %[[Q:.*]] = arith.divf %[[A:.*]], %[[B:.*]] : vector<4xf64>
// CHECK:         arith.constant dense<0x4330000000000000> : vector<4xf64>
// CHECK:         %[[SMALL:.*]] = vector.reduction <and>, %{{.*}} : vector<4xi1> into i1
// CHECK-NEXT:    scf.if %[[SMALL]] -> (vector<4xf64>) {
// CHECK-NEXT:      %[[N:.*]] = math.trunc %[[Q]] : vector<4xf64>
// CHECK:           %[[R:.*]] = math.fma %[[N]], %{{.*}}, %[[A]] : vector<4xf64>
// CHECK:           arith.addf %[[R]], %[[B]]
// CHECK:         } else {
// CHECK-NEXT:      arith.remf %x, %y : vector<4xf64>
// UNFUSED-LABEL: func.func @remainder
// UNFUSED-NEXT:    arith.remf
// UNFUSED-NEXT:    func.return
func.func @remainder(%x: vector<4xf64>, %y: vector<4xf64>) -> vector<4xf64> {
  %r = arith.remf %x, %y : vector<4xf64>
  return %r : vector<4xf64>
}

// A single remainder is a call.
// CHECK-LABEL: func.func @no_vector
// CHECK-NEXT:    arith.remf
// CHECK-NEXT:    func.return
func.func @no_vector(%x: f32, %y: f32) -> f32 {
  %r = arith.remf %x, %y : f32
  return %r : f32
}
