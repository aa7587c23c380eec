// RUN: irees opt %s -p irees-test-value-bounds{wraps=true} --allow-unregistered-dialect --split-input-file --verify-diagnostics

// With overflow, a sum is no bound: a + 4 may be below a.
func.func @sum(%a: index, %c: i1) -> index {
  %c4 = arith.constant 4 : index
  %0 = arith.addi %a, %c4 : index
  %1 = arith.select %c, %a, %0 : index
  // expected-error @+1 {{could not reify bound}}
  %2 = "test.reify_bound"(%1) {type = "UB"} : (index) -> index
  func.return %2 : index
}

// -----

// A product of unknowns is not linear.
func.func @product(%a: index, %b: index) -> index {
  %0 = arith.muli %a, %b : index
  // expected-error @+1 {{could not reify bound}}
  %1 = "test.reify_bound"(%0) : (index) -> index
  func.return %1 : index
}

// -----

// Two dims may be equal or not.
func.func @dims(%t: tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = tensor.dim %t, %c0 : tensor<?x?xf32>
  %1 = tensor.dim %t, %c1 : tensor<?x?xf32>
  // expected-error @+1 {{unknown}}
  "test.compare"(%0, %1) : (index, index) -> ()
  func.return
}
