// RUN: irees opt %s -p irees-optimize-int-arithmetic | filecheck %s

// A comparison that can only go one way is a constant.
// CHECK-LABEL: util.func @known_comparisons
// CHECK:         util.return %{{.*}}, %{{.*}} : i1, i1
// CHECK-NOT:     cmpi
util.func @known_comparisons(%n: index) -> (i1, i1) {
  %c4 = arith.constant 4 : index
  %c101 = arith.constant 101 : index
  %m = util.assume.int %n<umin = 10, umax = 100> : index
  %a = arith.cmpi ult, %m, %c101 : index
  %b = arith.cmpi sle, %m, %c4 : index
  util.return %a, %b : i1, i1
}

// A bound that is missing in one row is missing.
// CHECK-LABEL: util.func @no_bound_of_all_rows
// CHECK:         arith.cmpi ult
util.func @no_bound_of_all_rows(%n: index) -> i1 {
  %c101 = arith.constant 101 : index
  %m = util.assume.int %n[<umin = 10, umax = 100>, <umin = 10>] : index
  %a = arith.cmpi ult, %m, %c101 : index
  util.return %a : i1
}

// What wraps has no bound: 200 + 100 is 44 in eight bits.
// CHECK-LABEL: util.func @no_bound_past_overflow
// CHECK:         arith.cmpi ugt
util.func @no_bound_past_overflow(%n: i8) -> i1 {
  %c100 = arith.constant 100 : i8
  %c150 = arith.constant -106 : i8
  %m = util.assume.int %n<umin = 100, umax = 200> : i8
  %s = arith.addi %m, %c100 : i8
  %a = arith.cmpi ugt, %s, %c150 : i8
  util.return %a : i1
}

// Signed ops of numbers that are not negative are unsigned; i64 detours go.
// CHECK-LABEL: util.func @index_detour
// CHECK:         %[[M:.*]] = util.assume.int
// CHECK-NEXT:    %[[J:.*]] = arith.divui %[[M]], %{{.*}} : index
// CHECK-NEXT:    util.return %[[J]]
util.func @index_detour(%n: index) -> index {
  %c16 = arith.constant 16 : i64
  %m = util.assume.int %n<umin = 10, umax = 100> : index
  %i = arith.index_cast %m : index to i64
  %q = arith.divsi %i, %c16 : i64
  %j = arith.index_cast %q : i64 to index
  util.return %j : index
}

// A dividend of unknown sign is rounded towards zero, which no unsigned op does.
// CHECK-LABEL: util.func @no_unsigned_division
// CHECK:         arith.divsi
util.func @no_unsigned_division(%i: i64) -> i64 {
  %c16 = arith.constant 16 : i64
  %q = arith.divsi %i, %c16 : i64
  util.return %q : i64
}

// The remainder of a multiple is 0; that of a number below the divisor is the number.
// CHECK-LABEL: util.func @remainders
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[M:.*]] = util.assume.int
// CHECK:         util.return %[[ZERO]], %[[M]]
util.func @remainders(%n: index) -> (index, index) {
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %m = util.assume.int %n<umin = 0, umax = 96, udiv = 16> : index
  %a = arith.remui %m, %c8 : index
  %b = arith.remsi %m, %c128 : index
  util.return %a, %b : index, index
}

// Multiples of 12 that may wrap are multiples of 4 only: 2^64 is no multiple of 3.
// CHECK-LABEL: util.func @no_odd_factor_past_overflow
// CHECK:         %[[R:.*]] = arith.remui
// CHECK:         util.return %[[R]], %{{.*}}
util.func @no_odd_factor_past_overflow(%n: index) -> (index, index) {
  %c4 = arith.constant 4 : index
  %c12 = arith.constant 12 : index
  %m = arith.muli %n, %c12 : index
  %a = arith.remui %m, %c12 : index
  %b = arith.remui %m, %c4 : index
  util.return %a, %b : index, index
}

// A product is undone by its factor where it cannot overflow.
// CHECK-LABEL: util.func @product_undone
// CHECK:         %[[M:.*]] = util.assume.int
// CHECK-NEXT:    util.return %[[M]]
util.func @product_undone(%n: index) -> index {
  %c12 = arith.constant 12 : index
  %m = util.assume.int %n<umin = 0, umax = 1000> : index
  %p = arith.muli %m, %c12 : index
  %q = arith.divui %p, %c12 : index
  util.return %q : index
}

// A dim is never negative; a minimum with 0 is 0, and dynamic dims stay.
// CHECK-LABEL: util.func @dynamic_dim
// CHECK:         %[[D:.*]] = tensor.dim
// CHECK:         util.return %[[D]], %{{.*}}
util.func @dynamic_dim(%t: tensor<?xf32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %t, %c0 : tensor<?xf32>
  %a = arith.maxsi %d, %c0 : index
  %b = arith.minsi %d, %c0 : index
  util.return %a, %b : index, index
}
