// RUN: xdsl-opt %s -p irees-expand-arith --split-input-file | filecheck %s

// CHECK-LABEL: func.func @carry
// CHECK-NEXT:    %[[S:.*]] = arith.addi %a, %b : i32
// CHECK-NEXT:    %[[C:.*]] = arith.cmpi ult, %[[S]], %a : i32
// CHECK-NEXT:    func.return %[[S]], %[[C]]
func.func @carry(%a: i32, %b: i32) -> (i32, i1) {
  %s, %c = arith.addui_extended %a, %b : i32, i1
  return %s, %c : i32, i1
}

// -----

// CHECK-LABEL: func.func @narrow
// CHECK-NEXT:    %[[L:.*]] = arith.muli %a, %b : i8
// CHECK-NEXT:    %[[A:.*]] = arith.extsi %a : i8 to i64
// CHECK-NEXT:    %[[B:.*]] = arith.extsi %b : i8 to i64
// CHECK-NEXT:    %[[P:.*]] = arith.muli %[[A]], %[[B]] : i64
// CHECK-NEXT:    %[[N:.*]] = arith.constant 8 : i64
// CHECK-NEXT:    %[[S:.*]] = arith.shrui %[[P]], %[[N]] : i64
// CHECK-NEXT:    %[[H:.*]] = arith.trunci %[[S]] : i64 to i8
// CHECK-NEXT:    func.return %[[L]], %[[H]]
func.func @narrow(%a: i8, %b: i8) -> (i8, i8) {
  %l, %h = arith.mulsi_extended %a, %b : i8
  return %l, %h : i8, i8
}

// -----

// Four products of halves.
// CHECK-LABEL: func.func @wide
// CHECK-NEXT:    arith.muli %a, %b : i64
// CHECK-COUNT-4: arith.muli {{.*}} : i64
// CHECK-NOT:     extended
func.func @wide(%a: i64, %b: i64) -> (i64, i64) {
  %l, %h = arith.mului_extended %a, %b : i64
  return %l, %h : i64, i64
}

// -----

// No one op has the upper half of these.
// CHECK-LABEL: func.func @odd
// CHECK-NEXT:    arith.mulsi_extended
func.func @odd(%a: i48, %b: i48) -> (i48, i48) {
  %l, %h = arith.mulsi_extended %a, %b : i48
  return %l, %h : i48, i48
}

// -----

// CHECK-LABEL: func.func @number
// CHECK-NEXT:    %[[A:.*]] = arith.cmpf uno, %a, %a : f32
// CHECK-NEXT:    %[[B:.*]] = arith.cmpf uno, %b, %b : f32
// CHECK-NEXT:    %[[M:.*]] = arith.maximumf %a, %b : f32
// CHECK-NEXT:    %[[N:.*]] = arith.select %[[A]], %b, %[[M]] : f32
// CHECK-NEXT:    %[[R:.*]] = arith.select %[[B]], %a, %[[N]] : f32
// CHECK-NEXT:    func.return %[[R]]
func.func @number(%a: f32, %b: f32) -> f32 {
  %r = arith.maximumnumf %a, %b : f32
  return %r : f32
}

// -----

// CHECK-LABEL: func.func @normal
// CHECK-NEXT:    %[[X:.*]] = math.absf %a : f16
// CHECK-NEXT:    %[[S:.*]] = arith.constant 6.103520e-05 : f16
// CHECK-NEXT:    %[[E:.*]] = arith.cmpf oge, %[[X]], %[[S]] : f16
// CHECK-NEXT:    %[[I:.*]] = arith.constant 0x7C00 : f16
// CHECK-NEXT:    %[[F:.*]] = arith.cmpf olt, %[[X]], %[[I]] : f16
// CHECK-NEXT:    %[[R:.*]] = arith.andi %[[E]], %[[F]] : i1
// CHECK:         math.sin %a
// CHECK-NEXT:    math.cos %a
// CHECK-NEXT:    %[[T:.*]] = arith.constant true
// CHECK-NEXT:    %[[N:.*]] = arith.xori %c, %[[T]] : i1
func.func @normal(%a: f16, %c: i1, %i: i8) -> (i1, f16, f16, i1, i8) {
  %r = math.isnormal %a : f16
  %s, %t = math.sincos %a : f16
  %n = math.ctlz %c : i1
  // CHECK-NEXT: math.ctlz %i : i8
  %z = math.ctlz %i : i8
  return %r, %s, %t, %n, %z : i1, f16, f16, i1, i8
}

// -----

// CHECK-LABEL: func.func @complex
// CHECK:         math.atan2
// CHECK:         complex.sqrt %z
// CHECK-NEXT:    complex.div
// CHECK:         complex.abs %z
// CHECK:         arith.select %{{.*}}, %z, %{{.*}} : complex<f32>
// CHECK:         complex.tanh
// CHECK:         math.expm1
func.func @complex(%z: complex<f32>) -> (complex<f32>, complex<f32>, complex<f32>, complex<f32>, complex<f32>) {
  %0 = complex.log1p %z : complex<f32>
  %1 = complex.rsqrt %z : complex<f32>
  %2 = complex.sign %z : complex<f32>
  %3 = complex.tan %z : complex<f32>
  %4 = complex.expm1 %z : complex<f32>
  return %0, %1, %2, %3, %4 : complex<f32>, complex<f32>, complex<f32>, complex<f32>, complex<f32>
}

// -----

// CHECK-LABEL: func.func @complex_of_two
// CHECK:         complex.log
// CHECK:         complex.create
// CHECK:         arith.bitcast %{{.*}} : f32 to i32
// CHECK:         arith.shli
// CHECK:         arith.ori
// CHECK:         arith.bitcast %n : f64 to i64
// CHECK:         arith.shrui
// CHECK:         complex.create
// CHECK-NEXT:    func.return %{{.*}}, %{{.*}}, %{{.*}}, %z
func.func @complex_of_two(%z: complex<f32>, %w: complex<f32>, %n: f64) -> (complex<f32>, i64, complex<f32>, complex<f32>) {
  %0 = complex.atan2 %z, %w : complex<f32>
  %1 = complex.bitcast %z : complex<f32> to i64
  %2 = complex.bitcast %n : f64 to complex<f32>
  %3 = complex.bitcast %z : complex<f32> to complex<f32>
  return %0, %1, %2, %3 : complex<f32>, i64, complex<f32>, complex<f32>
}

// -----

// On tensors they are arithmetic of elements first.
// CHECK-LABEL: func.func @tensors
// CHECK-NEXT:    math.sincos
func.func @tensors(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s, %c = math.sincos %x : tensor<4xf32>
  return %s : tensor<4xf32>
}
