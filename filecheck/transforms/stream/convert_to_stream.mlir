// RUN: xdsl-opt %s -p irees-convert-to-stream | filecheck %s

flow.executable @k {
  builtin.module {
  }
}

// A dispatch result is a new buffer that the dispatch writes.
func.func @dispatch(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = flow.dispatch @k::@k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// Its size is that of the result dims.
func.func @dynamic(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %r = flow.dispatch @k::@k(%x, %n) {%n} : (tensor<?xf32>, index) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// A reshape is another view of the same bytes; dims become dims of buffers.
func.func @reshape(%x: tensor<?x4xf32>) -> (tensor<?xf32>, index) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x4xf32>
  %y = flow.dispatch @k::@k(%x) {%d} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = tensor.collapse_shape %y [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  return %r, %d : tensor<?xf32>, index
}

// A constant is a global, one for all equal constants.
func.func @constant(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %r = flow.dispatch @k::@k(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// An element that the host needs is loaded.
func.func @extract(%x: tensor<4xi64>, %i: index) -> i64 {
  %v = tensor.extract %x[%i] : tensor<4xi64>
  return %v : i64
}

// A loop carries its tensors in buffers that the host owns.
func.func @loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<4xf32>) {
    %b = flow.dispatch @k::@k(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// The caller must not receive its own argument, nor one buffer twice.
func.func @no_alias(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r = flow.dispatch @k::@k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %x, %r, %r : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What is no tensor is left alone.
func.func @no_tensor(%a: i64, %b: i64) -> i64 {
  %s = arith.addi %a, %b : i64
  return %s : i64
}
