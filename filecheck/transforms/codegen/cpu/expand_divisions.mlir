// RUN: xdsl-opt %s -p 'irees-assign-target{facts="features=avx512dq"},irees-expand-divisions' | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="features=fma"},irees-expand-divisions' | filecheck %s --check-prefix=NONE

// f64 holds both operands; a divisor of 0 becomes 1, and the quotient -1.
// CHECK-LABEL: func.func @short
// CHECK:         %[[Z:.*]] = arith.cmpi eq, %y, %{{.*}} : vector<8xi32>
// CHECK:         %[[D:.*]] = arith.select %[[Z]], %{{.*}}, %y : vector<8xi1>, vector<8xi32>
// CHECK-NEXT:    %[[A:.*]] = arith.sitofp %x : vector<8xi32> to vector<8xf64>
// CHECK-NEXT:    %[[B:.*]] = arith.sitofp %[[D]] : vector<8xi32> to vector<8xf64>
// CHECK-NEXT:    %[[Q:.*]] = arith.divf %[[A]], %[[B]] : vector<8xf64>
// CHECK-NEXT:    %[[I:.*]] = arith.fptosi %[[Q]] : vector<8xf64> to vector<8xi64>
// CHECK-NEXT:    %[[W:.*]] = arith.trunci %[[I]] : vector<8xi64> to vector<8xi32>
// CHECK:         arith.select %[[Z]], %{{.*}}, %[[W]] : vector<8xi1>, vector<8xi32>
// NONE-LABEL: func.func @short
// NONE-NEXT:    arith.divsi %x, %y : vector<8xi32>
func.func @short(%x: vector<8xi32>, %y: vector<8xi32>) -> vector<8xi32> {
  %q = arith.divsi %x, %y : vector<8xi32>
  return %q : vector<8xi32>
}

// Unsigned ones are cast as such.
// CHECK-LABEL: func.func @unsigned
// CHECK-COUNT-2: arith.uitofp
func.func @unsigned(%x: vector<8xi32>, %y: vector<8xi32>) -> vector<8xi32> {
  %q = arith.remui %x, %y : vector<8xi32>
  return %q : vector<8xi32>
}

// Two quotients by one reciprocal; the rest has the sign of the dividend.
// CHECK-LABEL: func.func @long
// CHECK-COUNT-1: arith.divf
// CHECK-COUNT-2: arith.fptosi
// CHECK:         arith.cmpi uge
// CHECK-NOT:     arith.divf
// CHECK:         return
func.func @long(%x: vector<8xi64>, %y: vector<8xi64>) -> vector<8xi64> {
  %q = arith.remsi %x, %y : vector<8xi64>
  return %q : vector<8xi64>
}

// The reciprocal of a constant is one. It needs no choice for 0, and no mask.
// CHECK-LABEL: func.func @constant
// CHECK-NOT:     arith.divf
// CHECK-NOT:     arith.cmpi
// CHECK:         arith.constant dense<0.00099999999999999{{.*}}> : vector<8xf64>
// CHECK-COUNT-2: arith.fptosi
// CHECK-NOT:     arith.select
// CHECK:         return
func.func @constant(%x: vector<8xi64>) -> vector<8xi64> {
  %d = arith.constant dense<1000> : vector<8xi64>
  %q = arith.divsi %x, %d : vector<8xi64>
  return %q : vector<8xi64>
}

// CHECK-LABEL: func.func @power
// CHECK-NOT:     arith.fptosi
// CHECK:         %[[S:.*]] = arith.constant dense<4> : vector<8xi64>
// CHECK:         arith.shrsi %{{.*}}, %[[S]] : vector<8xi64>
func.func @power(%x: vector<8xi64>) -> vector<8xi64> {
  %d = arith.constant dense<16> : vector<8xi64>
  %q = arith.divsi %x, %d : vector<8xi64>
  return %q : vector<8xi64>
}

// Scalars, unsigned numbers of 64 bits and short ones by constants stay.
// CHECK-LABEL: func.func @stay
// CHECK-DAG:     arith.divsi %{{.*}} : i64
// CHECK-DAG:     arith.divui %{{.*}} : vector<8xi64>
// CHECK-DAG:     arith.divsi %{{.*}} : vector<8xi32>
// CHECK-NOT:     arith.fptosi
func.func @stay(%a: i64, %x: vector<8xi64>, %y: vector<8xi32>) -> (i64, vector<8xi64>, vector<8xi32>) {
  %d = arith.constant dense<10> : vector<8xi32>
  %p = arith.divsi %a, %a : i64
  %q = arith.divui %x, %x : vector<8xi64>
  %r = arith.divsi %y, %d : vector<8xi32>
  return %p, %q, %r : i64, vector<8xi64>, vector<8xi32>
}
