// RUN: xdsl-opt %s -p 'irees-assign-target{facts="features=fma"},irees-expand-casts' | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="features=avx512dq"},irees-expand-casts' | filecheck %s --check-prefix=WIDE
// RUN: xdsl-opt %s -p 'irees-assign-target{target="cuda:sm_80"},irees-expand-casts' | filecheck %s --check-prefix=GPU

// A vector is clamped, and cast to i32.
// CHECK-LABEL: func.func @to_bytes
// CHECK:         %[[MOST:.*]] = arith.constant dense<2.550000e+02> : vector<8xf32>
// CHECK:         %[[C:.*]] = arith.select %{{.*}}, %[[MOST]], %{{.*}} : vector<8xi1>, vector<8xf32>
// CHECK-NEXT:    %[[I:.*]] = arith.fptosi %[[C]] : vector<8xf32> to vector<8xi32>
// CHECK-NEXT:    arith.trunci %[[I]] : vector<8xi32> to vector<8xi8>
func.func @to_bytes(%x: vector<8xf32>) -> vector<8xi8> {
  %y = arith.fptoui %x : vector<8xf32> to vector<8xi8>
  return %y : vector<8xi8>
}

// The largest i32 is no f32: what is above the largest f32 in range becomes it.
// CHECK-LABEL: func.func @to_words
// CHECK:         arith.constant dense<2.14748352e+09> : vector<8xf32>
// CHECK:         %[[I:.*]] = arith.fptosi %{{.*}} : vector<8xf32> to vector<8xi32>
// CHECK:         %[[MAX:.*]] = arith.constant dense<2147483647> : vector<8xi32>
// CHECK-NEXT:    arith.select %{{.*}}, %[[MAX]], %[[I]] : vector<8xi1>, vector<8xi32>
func.func @to_words(%x: vector<8xf32>) -> vector<8xi32> {
  %y = arith.fptosi %x : vector<8xf32> to vector<8xi32>
  return %y : vector<8xi32>
}

// Unsigned words are two halves: each is the low bits of a sum with 1.5 * 2^23.
// CHECK-LABEL: func.func @to_unsigned_words
// CHECK:         arith.constant dense<1262485504> : vector<8xi32>
// CHECK-NEXT:    arith.subi %{{.*}} : vector<8xi32>
// CHECK:         arith.shli %{{.*}} : vector<8xi32>
// CHECK-NOT:     arith.fptosi
func.func @to_unsigned_words(%x: vector<8xf32>) -> vector<8xi32> {
  %y = arith.fptoui %x : vector<8xf32> to vector<8xi32>
  return %y : vector<8xi32>
}

// A scalar stays: the target casts it.
// CHECK-LABEL: func.func @scalar
// CHECK-NEXT:    arith.fptosi %x : f32 to i64
func.func @scalar(%x: f32) -> i64 {
  %y = arith.fptosi %x : f32 to i64
  return %y : i64
}

// The integers of 64 bits are two halves: each is the low bits of a sum with 1.5 * 2^52.
// CHECK-LABEL: func.func @longs
// CHECK:         arith.extf %x : vector<8xf32> to vector<8xf64>
// CHECK:         arith.constant dense<2.3283064365386963e-10> : vector<8xf64>
// CHECK:         arith.constant dense<4843621399236968448> : vector<8xi64>
// CHECK-NEXT:    arith.subi %{{.*}} : vector<8xi64>
// CHECK:         arith.constant dense<32> : vector<8xi64>
// CHECK-NEXT:    arith.shli
// CHECK-NOT:     arith.fptosi
// WIDE-LABEL: func.func @longs
// WIDE:         arith.constant dense<9.22337149e+18> : vector<8xf32>
// WIDE:         %[[C:.*]] = arith.fptosi %{{.*}} : vector<8xf32> to vector<8xi64>
// WIDE-NEXT:    %[[MAX:.*]] = arith.constant dense<9223372036854775807> : vector<8xi64>
// WIDE:         arith.select %{{.*}}, %[[MAX]], %[[C]] : vector<8xi1>, vector<8xi64>
func.func @longs(%x: vector<8xf32>) -> vector<8xi64> {
  %y = arith.fptosi %x : vector<8xf32> to vector<8xi64>
  return %y : vector<8xi64>
}

// What is selected in a range, else 0, is cast in f32.
// CHECK-LABEL: func.func @in_range
// CHECK-NOT:     vector<8xf64>
// CHECK:         %[[I:.*]] = arith.fptosi %{{.*}} : vector<8xf32> to vector<8xi32>
// CHECK-NEXT:    arith.extsi %[[I]] : vector<8xi32> to vector<8xi64>
func.func @in_range(%x: vector<8xf32>, %low: vector<8xf32>) -> vector<8xi64> {
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %most = arith.constant dense<63.0> : vector<8xf32>
  %f = math.floor %x : vector<8xf32>
  %a = arith.cmpf oge, %f, %zero : vector<8xf32>
  %b = arith.cmpf ole, %f, %most : vector<8xf32>
  %inside = arith.andi %a, %b : vector<8xi1>
  %s = arith.select %inside, %f, %zero : vector<8xi1>, vector<8xf32>
  %y = arith.fptosi %s : vector<8xf32> to vector<8xi64>
  return %y : vector<8xi64>
}

// Halves are cast through f32; what is not an f32 gets an odd last bit, so that rounding it again is
// no tie.
// CHECK-LABEL: func.func @halves
// CHECK-NEXT:    arith.extf %x : vector<8xf16> to vector<8xf32>
// CHECK-NEXT:    arith.extf %{{.*}} : vector<8xf32> to vector<8xf64>
// CHECK-NEXT:    arith.truncf %y : vector<8xf64> to vector<8xf32>
// CHECK:         arith.ori
// CHECK:         arith.bitcast %{{.*}} : vector<8xi32> to vector<8xf32>
// CHECK-NEXT:    arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
// GPU-LABEL: func.func @halves
// GPU-NEXT:   arith.extf %x : vector<8xf16> to vector<8xf64>
// GPU-NEXT:   arith.truncf %y : vector<8xf64> to vector<8xf16>
func.func @halves(%x: vector<8xf16>, %y: vector<8xf64>) -> (vector<8xf64>, vector<8xf16>) {
  %a = arith.extf %x : vector<8xf16> to vector<8xf64>
  %b = arith.truncf %y : vector<8xf64> to vector<8xf16>
  return %a, %b : vector<8xf64>, vector<8xf16>
}

// PyTorch's cast chooses the least integer before the cast; what was compared is no NaN.
// WIDE-LABEL: func.func @chosen
// WIDE:         %[[IN:.*]] = arith.cmpf olt, %x, %{{.*}} : vector<8xf32>
// WIDE:         %[[A:.*]] = arith.select %[[IN]], %x, %{{.*}} : vector<8xi1>, vector<8xf32>
// WIDE-NOT:     arith.cmpf uno
// WIDE:         arith.cmpf olt, %[[A]], %[[LEAST:.*]] : vector<8xf32>
// WIDE-NEXT:    %[[C:.*]] = arith.select %{{.*}}, %[[LEAST]], %[[A]] : vector<8xi1>, vector<8xf32>
// WIDE-NEXT:    %[[I:.*]] = arith.fptosi %[[C]] : vector<8xf32> to vector<8xi64>
// WIDE-NEXT:    return %[[I]]
func.func @chosen(%x: vector<8xf32>) -> vector<8xi64> {
  %least = arith.constant dense<-9223372036854775808> : vector<8xi64>
  %bound = arith.constant dense<9223372036854775808.0> : vector<8xf32>
  %in = arith.cmpf olt, %x, %bound : vector<8xf32>
  %i = arith.fptosi %x : vector<8xf32> to vector<8xi64>
  %y = arith.select %in, %i, %least : vector<8xi1>, vector<8xi64>
  return %y : vector<8xi64>
}

// Another limit or another integer is no such choice.
// WIDE-LABEL: func.func @no_choice
// WIDE-COUNT-2: arith.cmpf uno
// WIDE:         return
func.func @no_choice(%x: vector<8xf32>) -> (vector<8xi64>, vector<8xi64>) {
  %least = arith.constant dense<-9223372036854775808> : vector<8xi64>
  %zero = arith.constant dense<0> : vector<8xi64>
  %bound = arith.constant dense<9223372036854775808.0> : vector<8xf32>
  %less = arith.constant dense<1024.0> : vector<8xf32>
  %in = arith.cmpf olt, %x, %bound : vector<8xf32>
  %under = arith.cmpf olt, %x, %less : vector<8xf32>
  %i = arith.fptosi %x : vector<8xf32> to vector<8xi64>
  %j = arith.fptosi %x : vector<8xf32> to vector<8xi64>
  %y = arith.select %in, %i, %zero : vector<8xi1>, vector<8xi64>
  %z = arith.select %under, %j, %least : vector<8xi1>, vector<8xi64>
  return %y, %z : vector<8xi64>, vector<8xi64>
}

// A number that is known to be in range is cast as it is: no coordinate of an image is NaN.
// WIDE-LABEL: func.func @coordinate
// WIDE:         %[[A:.*]] = arith.select %{{.*}}, %x, %zero : vector<8xi1>, vector<8xf32>
// WIDE-NEXT:    arith.cmpf olt, %[[A]], %bound : vector<8xf32>
// WIDE-NEXT:    %[[I:.*]] = arith.fptosi %[[A]] : vector<8xf32> to vector<8xi32>
// WIDE-NEXT:    %[[L:.*]] = arith.extsi %[[I]] : vector<8xi32> to vector<8xi64>
// WIDE-NEXT:    return %[[L]]
func.func @coordinate(%x: vector<8xf32>) -> vector<8xi64> {
  %least = arith.constant dense<-9223372036854775808> : vector<8xi64>
  %bound = arith.constant dense<9223372036854775808.0> : vector<8xf32>
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %most = arith.constant dense<63.0> : vector<8xf32>
  %a = arith.cmpf oge, %x, %zero : vector<8xf32>
  %b = arith.cmpf ole, %x, %most : vector<8xf32>
  %c = arith.andi %a, %b : vector<8xi1>
  %v = arith.select %c, %x, %zero : vector<8xi1>, vector<8xf32>
  %in = arith.cmpf olt, %v, %bound : vector<8xf32>
  %i = arith.fptosi %v : vector<8xf32> to vector<8xi64>
  %y = arith.select %in, %i, %least : vector<8xi1>, vector<8xi64>
  return %y : vector<8xi64>
}
