// RUN: xdsl-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: tensor<?xf32> has 1 dynamic dims, but 0 are given
util.func private @dims(%x: tensor<?xf32>) {
  %0 = flow.tensor.clone %x : tensor<?xf32>
  util.return
}

// -----

// CHECK: expected one element type
util.func private @element(%x: tensor<4xf32>) {
  %0 = flow.tensor.reshape %x : tensor<4xf32> -> tensor<2x2xi32>
  util.return
}

// -----

// CHECK: expected a scalar of the element type
util.func private @splat(%x: i32) {
  %0 = "flow.tensor.splat"(%x) : (i32) -> tensor<4xf32>
  util.return
}

// -----

// CHECK: has no operand 2 to tie a result to
util.func private @tied(%x: tensor<4xf32>) {
  %0 = "flow.dispatch"(%x) <{entry_points = [@e], operandSegmentSizes = array<i32: 0, 1, 0, 0>, tied_operands = [2 : index]}> : (tensor<4xf32>) -> tensor<4xf32>
  util.return
}

// -----

// CHECK: has 1 results, but 2 tied operands
util.func private @tied_count(%x: tensor<4xf32>) {
  %0 = "flow.dispatch"(%x) <{entry_points = [@e], operandSegmentSizes = array<i32: 0, 1, 0, 0>, tied_operands = [0 : index, 0 : index]}> : (tensor<4xf32>) -> tensor<4xf32>
  util.return
}

// -----

// CHECK: expected an entry point
util.func private @entry() {
  flow.dispatch {}() : () -> ()
  util.return
}

// -----

// CHECK: expected affinities of one device each
util.func private @nested(%x: tensor<4xf32>) {
  %0 = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.optimal<[#hal.device.optimal<[]>]>
  util.return
}

// -----

// CHECK: the values have 1 dynamic dims, but 0 are given
util.func private @trace(%x: tensor<?xf32>) {
  flow.tensor.trace "x" = [%x : tensor<?xf32>]
  util.return
}

// -----

// CHECK: expected 2 indices into tensor<4x3xf32>, got 1
func.func @load(%x: tensor<4x3xf32>, %i: index) -> f32 {
  %v = flow.tensor.load %x[%i] : tensor<4x3xf32>
  return %v : f32
}

// -----

// CHECK: expected 2 indices into tensor<4x3xf32>, got 3
func.func @store(%x: tensor<4x3xf32>, %v: f32, %i: index) -> tensor<4x3xf32> {
  %y = flow.tensor.store %v, %x[%i, %i, %i] : tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

// CHECK: cannot reshape 12 elements to 5
func.func @reshape(%x: tensor<4x3xf32>) -> tensor<5xf32> {
  %y = flow.tensor.reshape %x : tensor<4x3xf32> -> tensor<5xf32>
  return %y : tensor<5xf32>
}
