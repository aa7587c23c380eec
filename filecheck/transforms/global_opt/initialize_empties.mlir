// RUN: xdsl-opt %s -p irees-initialize-empties | filecheck %s

// What is returned is read.
// CHECK-LABEL: func.func @returned
// CHECK:         %[[E:.*]] = tensor.empty(%n) : tensor<?xf32>
// CHECK:         %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[E]] : tensor<?xf32>)
// CHECK:         func.return %[[F]]
func.func @returned(%n: index) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  return %e : tensor<?xf32>
}

// An insertion leaves what is beside it.
// CHECK-LABEL: func.func @beside
// CHECK:         %[[F:.*]] = linalg.fill
// CHECK:         tensor.insert_slice %x into %[[F]]
func.func @beside(%x: tensor<4xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = tensor.insert_slice %x into %e[1] [4] [1] : tensor<4xf32> into tensor<8xf32>
  return %r : tensor<8xf32>
}

// A sum of what was never written.
// CHECK-LABEL: func.func @summed
// CHECK:         linalg.fill
// CHECK:         linalg.generic
func.func @summed(%x: tensor<4xf32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<4xf32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// One that goes round a loop may be read there.
// CHECK-LABEL: func.func @carried
// CHECK:         linalg.fill
// CHECK:         scf.for
func.func @carried(%x: tensor<1xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %e) -> (tensor<8xf32>) {
    %u = tensor.insert_slice %x into %t[%i] [1] [1] : tensor<1xf32> into tensor<8xf32>
    scf.yield %u : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// Insertions from end to end leave nothing of it, whatever the sizes are.
// CHECK-LABEL: func.func @no_concatenation
// CHECK-NOT:     linalg.fill
// CHECK:         func.return
func.func @no_concatenation(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x3xf32>
  %n = tensor.dim %y, %c0 : tensor<?x3xf32>
  %s = arith.addi %m, %n : index
  %e = tensor.empty(%s) : tensor<?x3xf32>
  %a = tensor.insert_slice %x into %e[0, 0] [%m, 3] [1, 1] : tensor<?x3xf32> into tensor<?x3xf32>
  %b = tensor.insert_slice %y into %a[%m, 0] [%n, 3] [1, 1] : tensor<?x3xf32> into tensor<?x3xf32>
  return %b : tensor<?x3xf32>
}

// Nor does an op that writes all of it.
// CHECK-LABEL: func.func @no_elementwise
// CHECK-NOT:     linalg.fill
// CHECK:         func.return
func.func @no_elementwise(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// What is filled has the type of what was read, whatever is known of its size.
// CHECK-LABEL: func.func @size_that_is_a_constant
// CHECK:         %[[E:.*]] = tensor.empty(%one) : tensor<?xf32>
// CHECK-NEXT:    %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[E]] : tensor<?xf32>) -> tensor<?xf32>
// CHECK-NEXT:    func.return %[[F]] : tensor<?xf32>
func.func @size_that_is_a_constant() -> tensor<?xf32> {
  %one = arith.constant 1 : index
  %e = tensor.empty(%one) : tensor<?xf32>
  return %e : tensor<?xf32>
}
