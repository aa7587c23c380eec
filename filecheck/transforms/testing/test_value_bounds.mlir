// RUN: irees opt %s -p irees-test-value-bounds --allow-unregistered-dialect | filecheck %s

// Equal to a form of the operands.
// CHECK-LABEL: func.func @equal
// CHECK:         affine.apply affine_map<()[s0] -> ((s0 + 5))> ()[%a]
// CHECK:         affine.apply affine_map<()[s0] -> ((s0 floordiv 5))> ()[%a]
func.func @equal(%a: index) -> (index, index) {
  %c5 = arith.constant 5 : index
  %0 = arith.addi %c5, %a : index
  %1 = arith.floordivsi %a, %c5 : index
  %2 = "test.reify_bound"(%0) : (index) -> index
  %3 = "test.reify_bound"(%1) : (index) -> index
  func.return %2, %3 : index, index
}

// divsi rounds towards zero: each sign of the dividend has its own bounds.
// CHECK-LABEL: func.func @divsi_signs
// CHECK:         arith.remsi
// CHECK-NEXT:    arith.constant -2 : index
// CHECK-NEXT:    arith.constant 3 : index
// CHECK-NEXT:    arith.constant -6 : index
// CHECK-NEXT:    arith.constant 7 : index
func.func @divsi_signs(%x: index) {
  %c7 = arith.constant 7 : index
  %c20 = arith.constant 20 : index
  %cm20 = arith.constant -20 : index
  %low = arith.maxsi %x, %cm20 : index
  %both = arith.minsi %low, %c20 : index
  %q = arith.divsi %both, %c7 : index
  %r = arith.remsi %both, %c7 : index
  %0 = "test.reify_constant_bound"(%q) {type = "LB"} : (index) -> index
  %1 = "test.reify_constant_bound"(%q) {type = "UB"} : (index) -> index
  %2 = "test.reify_constant_bound"(%r) {type = "LB"} : (index) -> index
  %3 = "test.reify_constant_bound"(%r) {type = "UB"} : (index) -> index
  "test.use"(%0, %1, %2, %3) : (index, index, index, index) -> ()
  func.return
}

// The dims of a padded tensor.
// CHECK-LABEL: func.func @dynamic_pad
// CHECK:         %[[D:.*]] = tensor.dim %t
// CHECK:         affine.apply affine_map<()[s0, s1] -> ((s0 + (s1 * 2)))> ()[%[[D]], %a]
func.func @dynamic_pad(%t: tensor<?xf32>, %a: index) -> index {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %t low[%a] high[%a] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<?xf32>
  %1 = "test.reify_bound"(%0) {dim = 0} : (tensor<?xf32>) -> index
  func.return %1 : index
}

// Between two values in a known order, below a loop's bound.
// CHECK-LABEL: func.func @limits
// CHECK:         "test.use"(%{{.*}}, %b)
func.func @limits(%a: index, %b: index, %c: index) {
  %c3 = arith.constant 3 : index
  scf.for %i = %a to %b step %c {
    %0 = arith.minsi %i, %c3 : index
    %1 = "test.reify_bound"(%0) {type = "UB"} : (index) -> index
    %2 = "test.reify_bound"(%i) {type = "UB"} : (index) -> index
    "test.compare"(%0, %b) {cmp = "LT"} : (index, index) -> ()
    "test.use"(%1, %2) : (index, index) -> ()
  }
  func.return
}

// Nobody asks.
// CHECK-LABEL: func.func @no_question
// CHECK-NEXT:    arith.addi
func.func @no_question(%a: index) -> index {
  %0 = arith.addi %a, %a : index
  func.return %0 : index
}
