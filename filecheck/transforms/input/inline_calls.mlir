// RUN: xdsl-opt %s -p irees-inline-calls --split-input-file | filecheck %s

// The body of a private function stands where it was called, and the function is gone.
// CHECK-NOT:   @g
// CHECK-LABEL: func.func @straight
func.func private @g(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = math.exp %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @straight(%x: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK-NEXT: %[[A:.*]] = math.exp %x
  // CHECK-NEXT: %[[B:.*]] = math.exp %[[A]]
  // CHECK-NEXT: return %[[B]]
  %0 = func.call @g(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %1 = func.call @g(%0) : (tensor<?xf32>) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// What callers see stays; an argument may be a result; calls in calls, in regions.
// CHECK-LABEL: func.func @seen
// CHECK-NEXT:    math.exp
// CHECK-NEXT:    return
// CHECK-LABEL: func.func @deep
// CHECK:         scf.if %c
// CHECK-NEXT:      %[[A:.*]] = math.exp %x
// CHECK-NEXT:      scf.yield %[[A]]
// CHECK:           scf.yield %x
// CHECK-NOT:     @both
func.func @seen(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @both(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = func.call @seen(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %x, %0 : tensor<4xf32>, tensor<4xf32>
}
func.func @deep(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = scf.if %c -> tensor<4xf32> {
    %0:2 = func.call @both(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    scf.yield %0#1 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// What calls itself has no end to inline, and what is only declared no body.
// CHECK-LABEL: func.func private @no_end
// CHECK:         func.call @no_end
// CHECK:       func.func private @elsewhere
// CHECK-LABEL: func.func @main
// CHECK:         func.call @no_end
// CHECK:         func.call @elsewhere
func.func private @no_end(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @no_end(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @no_end(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @elsewhere(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
