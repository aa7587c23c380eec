// RUN: irees opt %s -p irees-test-integer-divisibility --allow-unregistered-dialect | filecheck %s

// Sums keep what both sides share, products multiply, exact quotients divide.
// CHECK-LABEL: util.func @arithmetic
// CHECK:         divisibility = "udiv = 6, sdiv = 6"
// CHECK:         divisibility = "udiv = 216, sdiv = 216"
// CHECK:         divisibility = "udiv = 3, sdiv = 3"
util.func @arithmetic(%x: index, %y: index) {
  %c4 = arith.constant 4 : index
  %a:2 = util.assume.int %x<udiv = 12>, %y<udiv = 18> : index, index
  %sum = arith.subi %a#0, %a#1 : index
  %product = arith.muli %a#0, %a#1 : index
  %quotient = arith.divui %a#0, %c4 : index
  %0 = "iree_unregistered.test_int_divisibility"(%sum) : (index) -> index
  %1 = "iree_unregistered.test_int_divisibility"(%product) : (index) -> index
  %2 = "iree_unregistered.test_int_divisibility"(%quotient) : (index) -> index
  util.return
}

// The remainder of a multiple of the divisor is 0, which everything divides.
// CHECK-LABEL: util.func @dynamic_basis
// CHECK:         divisibility = "udiv = 0, sdiv = 0"
// CHECK:         divisibility = "udiv = 1, sdiv = 1"
util.func @dynamic_basis(%x: index, %n: index) {
  %a = util.assume.int %x<udiv = 32> : index
  %b:2 = affine.delinearize_index %a into (16) : index, index
  %c:2 = affine.delinearize_index %a into (%n) : index, index
  %0 = "iree_unregistered.test_int_divisibility"(%b#1) : (index) -> index
  %1 = "iree_unregistered.test_int_divisibility"(%c#1) : (index) -> index
  util.return
}

// A counter is a start and steps.
// CHECK-LABEL: util.func @counter
// CHECK:         divisibility = "udiv = 6, sdiv = 6"
util.func @counter() {
  %c12 = arith.constant 12 : index
  %c18 = arith.constant 18 : index
  %c100 = arith.constant 100 : index
  scf.for %i = %c12 to %c100 step %c18 {
    %0 = "iree_unregistered.test_int_divisibility"(%i) : (index) -> index
  }
  util.return
}

// Other ops are not asked.
// CHECK-LABEL: util.func @no_question
// CHECK-NOT:     divisibility
util.func @no_question(%x: index) {
  %0 = "iree_unregistered.something"(%x) : (index) -> index
  util.return
}
