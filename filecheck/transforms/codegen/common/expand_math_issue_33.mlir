// RUN: xdsl-opt %s -p 'irees-assign-target{facts="features=fma"},irees-expand-math' | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="features=avx2"},irees-expand-math' | filecheck %s --check-prefix=UNFUSED
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="gpu.native_math=math.sin"},irees-expand-math' | filecheck %s --check-prefix=NATIVE

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

// The parts of ln2 and the magic number of f64; a GPU computes f64 by its own functions.
// CHECK-LABEL: func.func @exp
// CHECK:         %[[LOW:.*]] = arith.constant dense<-7.460000e+02> : vector<4xf64>
// CHECK:         %[[MAGIC:.*]] = arith.constant dense<0x4338000000000000> : vector<4xf64>
// CHECK:         %[[SHIFTED:.*]] = arith.addf %{{.*}}, %[[MAGIC]]
// CHECK:         %[[N:.*]] = arith.subf %[[SHIFTED]], %{{.*}} : vector<4xf64>
// CHECK:         irees.ldexp %{{.*}}, %[[N]] : vector<4xf64>
// CHECK-NEXT:    func.return
// NATIVE-LABEL: func.func @exp
// NATIVE-NEXT:   math.exp %x : vector<4xf64>
func.func @exp(%x: vector<4xf64>) -> vector<4xf64> {
  %y = math.exp %x : vector<4xf64>
  return %y : vector<4xf64>
}

// The exponent of f64 is a whole number in the low bits of 2^52: no cast of an integer.
// CHECK-LABEL: func.func @log
// CHECK:         arith.shrui %{{.*}}, %{{.*}} : i64
// CHECK:         arith.ori
// CHECK-NOT:     arith.sitofp
// CHECK:         func.return
func.func @log(%x: f64) -> f64 {
  %y = math.log %x : f64
  return %y : f64
}

// A large angle is reduced by libm.
// CHECK-LABEL: func.func @angles
// CHECK:         arith.constant dense<0x4130000000000000> : vector<4xf64>
// CHECK:         scf.if %{{.*}} -> (vector<4xf64>) {
// CHECK-NOT:       math.cos
// CHECK:         } else {
// CHECK-NEXT:      math.cos %x : vector<4xf64>
func.func @angles(%x: vector<4xf64>) -> vector<4xf64> {
  %y = math.cos %x : vector<4xf64>
  return %y : vector<4xf64>
}

// A classification is a comparison, which has a form on vectors of every width.
// CHECK-LABEL: func.func @classes
// CHECK:         arith.cmpf uno, %x, %x : vector<8xf32>
// CHECK:         arith.andi
// CHECK:         arith.cmpf oeq, %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK:         arith.andi
// CHECK:         arith.cmpf olt, %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK-NOT:     math.is
func.func @classes(%x: vector<8xf32>) -> (vector<8xi1>, vector<8xi1>, vector<8xi1>) {
  %n = math.isnan %x : vector<8xf32>
  %i = math.isinf %x : vector<8xf32>
  %f = math.isfinite %x : vector<8xf32>
  return %n, %i, %f : vector<8xi1>, vector<8xi1>, vector<8xi1>
}

// A power is computed in f64, if these fit in a vector.
// CHECK-LABEL: func.func @power
// CHECK:         arith.extf %x : vector<2xf32> to vector<2xf64>
// CHECK-NOT:     math.powf
// CHECK:         arith.truncf %{{.*}} : vector<2xf64> to vector<2xf32>
// CHECK:         math.powf %z, %z : vector<16xf32>
func.func @power(%x: vector<2xf32>, %y: vector<2xf32>, %z: vector<16xf32>) -> (vector<2xf32>, vector<16xf32>) {
  %a = math.powf %x, %y : vector<2xf32>
  %b = math.powf %z, %z : vector<16xf32>
  return %a, %b : vector<2xf32>, vector<16xf32>
}
