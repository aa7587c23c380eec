// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=32"},irees-expand-math' | filecheck %s
// RUN: xdsl-opt %s -p irees-expand-math | filecheck %s --check-prefix=TABLE
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="gpu.native_math=math.exp,math.sin,arith.maxnumf"},irees-expand-math' | filecheck %s --check-prefix=NATIVE

// n = round(x log2(e)) by a magic number, p(x - n ln2), then times 2^n.
// CHECK-LABEL: func.func @exp
// CHECK:         %[[LOW:.*]] = arith.constant -1.040000e+02 : f32
// CHECK:         arith.select %{{.*}}, %[[LOW]], %x : f32
// CHECK:         %[[SHIFTED:.*]] = arith.addf
// CHECK:         %[[N:.*]] = arith.subf %[[SHIFTED]], %{{.*}} : f32
// CHECK:         %[[Y:.*]] = irees.ldexp %{{.*}}, %[[N]] : f32
// CHECK-NOT:     math.exp
// CHECK:         func.return

// By sixteen powers: n is a multiple of 1/16, and its lowest bits are the number of a power. Nothing
// is clamped; the highest bit of the exponent of n - x log2(e) is taken off.
// TABLE-LABEL: func.func @exp
// TABLE:         %[[M:.*]] = math.fma %x, %{{.*}}, %{{.*}} : f32
// TABLE:         %[[N:.*]] = arith.subf %[[M]], %{{.*}} : f32
// TABLE:         %[[LOW:.*]] = arith.constant -1.92596303e-08 : f32
// TABLE-NEXT:    math.fma %x, %[[LOW]]
// TABLE:         %[[BIT:.*]] = arith.constant -1073741825 : i32
// TABLE-NEXT:    arith.andi %{{.*}}, %[[BIT]] : i32
// TABLE:         %[[BITS:.*]] = arith.bitcast %[[M]] : f32 to i32
// TABLE:         %[[POWER:.*]] = irees.lookup %{{.*}}[%[[BITS]]] : i32 -> f32
// TABLE-NEXT:    %[[P:.*]] = math.fma %[[POWER]], %{{.*}}, %[[POWER]] : f32
// TABLE-NEXT:    %[[Y:.*]] = irees.scalef %[[P]], %[[N]] : f32
// TABLE-NEXT:    func.return %[[Y]] : f32
func.func @exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

// A negation is one of the constants.
// TABLE-LABEL: func.func @exp_of_minus
// TABLE:         %[[L:.*]] = arith.constant -1.44269502 : f32
// TABLE-NEXT:    math.fma %x, %[[L]]
// TABLE-NOT:     math.fma %y
// TABLE:         func.return
func.func @exp_of_minus(%x: f32) -> f32 {
  %y = arith.negf %x : f32
  %z = math.exp %y : f32
  return %z : f32
}

// Vectors get the same arithmetic on constants that are splats.
// CHECK-LABEL: func.func @vector
// CHECK:         arith.constant dense<2147483647> : vector<8xi32>
// CHECK:         arith.divf %{{.*}} : vector<8xf32>
// CHECK:         arith.constant dense<6.250000e-01> : vector<8xf32>
// CHECK:         arith.select %{{.*}} : vector<8xi1>, vector<8xf32>
// CHECK-NEXT:    arith.bitcast %x : vector<8xf32> to vector<8xi32>
func.func @vector(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.tanh %x : vector<8xf32>
  return %y : vector<8xf32>
}

// The reciprocal root is a root and a division.
// CHECK-LABEL: func.func @rsqrt
// CHECK:         %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:    %[[ROOT:.*]] = math.sqrt %x : f32
// CHECK-NEXT:    arith.divf %[[ONE]], %[[ROOT]] : f32
func.func @rsqrt(%x: f32) -> f32 {
  %y = math.rsqrt %x : f32
  return %y : f32
}

// NaN is kept, zero gives minus infinity.
// CHECK-LABEL: func.func @log
// CHECK:         %[[INF:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
// CHECK:         arith.select %{{.*}}, %{{.*}}, %[[INF]] : f32
// CHECK:         %[[NAN:.*]] = arith.cmpf uno, %x, %x : f32
// CHECK-NEXT:    arith.select %[[NAN]], %x, %{{.*}} : f32
func.func @log(%x: f32) -> f32 {
  %y = math.log %x : f32
  return %y : f32
}

// The argument is clamped to [-4, 4], then a quotient of polynomials.
// CHECK-LABEL: func.func @erf
// CHECK:         arith.constant -4.000000e+00 : f32
// CHECK-NEXT:    arith.constant 4.000000e+00 : f32
// CHECK:         arith.divf
// CHECK-NEXT:    func.return
func.func @erf(%x: f32) -> f32 {
  %y = math.erf %x : f32
  return %y : f32
}

// Small whole powers are products.
// CHECK-LABEL: func.func @powers
// CHECK:         %[[Y:.*]] = arith.mulf %x, %x : f32
// CHECK:         %[[SQUARE:.*]] = arith.mulf %x, %x : f32
// CHECK:         %[[Z:.*]] = arith.mulf %[[SQUARE]], %x : f32
// CHECK:         func.return %[[Y]], %[[Z]]
func.func @powers(%x: f32) -> (f32, f32) {
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3 : i32
  %y = math.powf %x, %two : f32
  %z = math.fpowi %x, %three : f32, i32
  return %y, %z : f32, f32
}

// So do other widths: the coefficients are those of f32 and f64.
// CHECK-LABEL: func.func @no_other_width
// CHECK-NEXT:    math.exp %y : f16
func.func @no_other_width(%y: f16) -> f16 {
  %b = math.exp %y : f16
  return %b : f16
}

// What is not listed stays a call per lane.
// CHECK-LABEL: func.func @no_cbrt
// CHECK-NEXT:    math.cbrt %x : f32
func.func @no_cbrt(%x: f32) -> f32 {
  %y = math.cbrt %x : f32
  return %y : f32
}

// Angles of many turns are reduced by libm; one in a vector is enough. A GPU keeps its own function.
// CHECK-LABEL: func.func @angles
// CHECK:         %[[SMALL:.*]] = vector.reduction <and>, %{{.*}} : vector<8xi1> into i1
// CHECK-NEXT:    scf.if %[[SMALL]] -> (vector<8xf32>) {
// CHECK-NOT:       math.sin
// CHECK:           arith.xori
// CHECK:         } else {
// CHECK-NEXT:      math.sin %x : vector<8xf32>
// NATIVE-LABEL: func.func @angles
// NATIVE-NEXT:   math.sin %x : vector<8xf32>
func.func @angles(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.sin %x : vector<8xf32>
  return %y : vector<8xf32>
}

// An accumulator that starts from a number stays one.
// CHECK-LABEL: func.func @largest
// CHECK:         scf.for %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<8xf32>) {
// CHECK:           %[[X:.*]] = vector.load
// CHECK-NEXT:      %[[LESS:.*]] = arith.cmpf olt, %[[ACC]], %[[X]] : vector<8xf32>
// CHECK-NEXT:      arith.select %[[LESS]], %[[X]], %[[ACC]] : vector<8xi1>, vector<8xf32>
// CHECK-NOT:     arith.maxnumf
// CHECK:         func.return
func.func @largest(%x: memref<64xf32>) -> vector<8xf32> {
  %low = arith.constant 0xFF800000 : f32
  %start = vector.broadcast %low : f32 to vector<8xf32>
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %i = %c0 to %c64 step %c8 iter_args(%acc = %start) -> (vector<8xf32>) {
    %v = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
    %m = arith.maxnumf %v, %acc : vector<8xf32>
    scf.yield %m : vector<8xf32>
  }
  return %r : vector<8xf32>
}

// It may be NaN at first, or become NaN on the way.
// CHECK-LABEL: func.func @no_number
// CHECK:         arith.minnumf %x, %y : f32
// CHECK:         arith.maxnumf
// CHECK-NOT:     arith.cmpf
// CHECK:         func.return
func.func @no_number(%x: f32, %y: f32, %n: index) -> (f32, f32) {
  %a = arith.minnumf %x, %y : f32
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %m = arith.maxnumf %x, %acc : f32
    %s = arith.addf %m, %x : f32
    scf.yield %s : f32
  }
  return %a, %r : f32, f32
}

// What a target computes by itself stays; of maxima those where the sign of a zero does not matter.
// NATIVE-LABEL: func.func @native
// NATIVE-NEXT:    math.exp %x : f32
// NATIVE-NEXT:    arith.constant
// NATIVE-NEXT:    arith.maxnumf %{{.*}}, %{{.*}} fastmath<nsz> : f32
// NATIVE-NOT:     arith.maxnumf
// NATIVE-NOT:     math.tanh
// NATIVE:         func.return
func.func @native(%x: f32) -> (f32, f32, f32) {
  %y = math.exp %x : f32
  %one = arith.constant 1.0 : f32
  %m = arith.maxnumf %y, %one fastmath<nsz> : f32
  %n = arith.maxnumf %y, %one : f32
  %t = math.tanh %x : f32
  return %m, %n, %t : f32, f32, f32
}
