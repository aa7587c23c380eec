// RUN: xdsl-opt %s -p irees-inline-calls --split-input-file | filecheck %s

// The body of a private function stands where it was called, and the function is gone.
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

// A function of several blocks splits the block that calls it.
// CHECK-LABEL: func.func @blocks
func.func private @h(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  cf.cond_br %c, ^a, ^b
^a:
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
^b:
  return %x : tensor<4xf32>
}
func.func @blocks(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: cf.br ^bb{{[0-9]+}}
  // CHECK: cf.cond_br %c
  // CHECK: math.exp
  // CHECK: ^bb{{[0-9]+}}(%{{.*}}: tensor<4xf32>):
  // CHECK-NEXT: math.absf
  %0 = func.call @h(%c, %x) : (i1, tensor<4xf32>) -> tensor<4xf32>
  %1 = math.absf %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// What calls itself has no end to inline.
// CHECK-LABEL: func.func private @no_end
func.func private @no_end(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: func.call @no_end
  %0 = func.call @no_end(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
