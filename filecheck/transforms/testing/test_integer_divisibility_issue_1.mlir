// RUN: irees opt %s -p irees-test-integer-divisibility{wraps=true} --allow-unregistered-dialect | filecheck %s

// Where integers wrap, only a power of two survives, unless the range excludes overflow. (IREE
// says 6 of the first: 12 - 18 is 2^64 - 6 as an unsigned number, of which 3 is no divisor.)
// CHECK-LABEL: util.func @difference
// CHECK:         divisibility = "udiv = 2, sdiv = 2"
// CHECK:         divisibility = "udiv = 2, sdiv = 6"
util.func @difference(%x: index, %y: index) {
  %a:2 = util.assume.int %x<udiv = 12>, %y<udiv = 18> : index, index
  %b:2 = util.assume.int %x<umax = 1200, udiv = 12>, %y<umax = 1800, udiv = 18> : index, index
  %wide = arith.subi %a#0, %a#1 : index
  %small = arith.subi %b#0, %b#1 : index
  %0 = "iree_unregistered.test_int_divisibility"(%wide) : (index) -> index
  %1 = "iree_unregistered.test_int_divisibility"(%small) : (index) -> index
  util.return
}
