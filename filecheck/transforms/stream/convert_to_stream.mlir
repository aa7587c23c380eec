// RUN: xdsl-opt %s -p irees-convert-to-stream | filecheck %s

// The bytes of a constant are not on the stack of any function.
// CHECK: memref.global "private" constant @__constant_0 : memref<2xf32> = dense<[1.000000e+00, 2.000000e+00]>

flow.executable @k {
  builtin.module {
  }
}

// A dispatch result is a new buffer that the dispatch writes.
// CHECK-LABEL: func.func @dispatch
// CHECK-SAME:    (%x: memref<4xf32>) -> memref<4xf32>
// CHECK-NEXT:    %[[R:.*]] = memref.alloc() : memref<4xf32>
// CHECK-NEXT:    stream.cmd.dispatch @k::@k(%x, %[[R]]) : memref<4xf32>, memref<4xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @dispatch(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = flow.dispatch @k::@k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// Its size is that of the result dims.
// CHECK-LABEL: func.func @dynamic
// CHECK-NEXT:    %[[R:.*]] = memref.alloc(%n) : memref<?xf32>
// CHECK-NEXT:    stream.cmd.dispatch @k::@k(%x, %n, %[[R]]) : memref<?xf32>, index, memref<?xf32>
func.func @dynamic(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %r = flow.dispatch @k::@k(%x, %n) : (tensor<?xf32>, index) -> tensor<?xf32>{%n}
  return %r : tensor<?xf32>
}

// A reshape is another view of the same bytes; dims become dims of buffers.
// CHECK-LABEL: func.func @reshape
// CHECK:         %[[D:.*]] = memref.dim %x
// CHECK:         %[[Y:.*]] = memref.alloc(%[[D]]) : memref<?x4xf32>
// CHECK:         %[[SIZE:.*]] = arith.muli %{{.*}}, %[[D]] : index
// CHECK:         %[[R:.*]] = memref.reinterpret_cast %[[Y]] to offset: [0], sizes: [%[[SIZE]]], strides: [1] : memref<?x4xf32> to memref<?xf32>
// CHECK-NEXT:    func.return %[[R]], %[[D]]
func.func @reshape(%x: tensor<?x4xf32>) -> (tensor<?xf32>, index) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x4xf32>
  %y = flow.dispatch @k::@k(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>{%d}
  %r = tensor.collapse_shape %y [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  return %r, %d : tensor<?xf32>, index
}

// A constant is a global, one for all equal constants.
// CHECK-LABEL: func.func @constant
// CHECK:         %[[A:.*]] = memref.get_global @__constant_0 : memref<2xf32>
// CHECK-NEXT:    %[[B:.*]] = memref.get_global @__constant_0 : memref<2xf32>
// CHECK:         stream.cmd.dispatch @k::@k(%[[A]], %[[B]], %{{.*}})
func.func @constant(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %r = flow.dispatch @k::@k(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// An element that the host needs is loaded, from the nearest place inside.
// CHECK-LABEL: func.func @extract
// CHECK:         %[[LOW:.*]] = arith.minsi %i, %{{.*}} : index
// CHECK:         %[[AT:.*]] = arith.maxsi %[[LOW]], %{{.*}} : index
// CHECK-NEXT:    memref.load %x[%[[AT]]] : memref<4xi64>
func.func @extract(%x: tensor<4xi64>, %i: index) -> i64 {
  %v = tensor.extract %x[%i] : tensor<4xi64>
  return %v : i64
}

// One that is put outside is dropped.
// CHECK-LABEL: func.func @insert
// CHECK:         %[[INSIDE:.*]] = arith.cmpi ult, %i, %{{.*}} : index
// CHECK-NEXT:    scf.if %[[INSIDE]] {
// CHECK-NEXT:      memref.store %v, %{{.*}}[%i] : memref<4xi64>
func.func @insert(%x: tensor<4xi64>, %v: i64, %i: index) -> tensor<4xi64> {
  %r = tensor.insert %v into %x[%i] : tensor<4xi64>
  return %r : tensor<4xi64>
}

// A loop carries its tensors in buffers that the host owns.
// CHECK-LABEL: func.func @loop
// CHECK:         %[[HOME:.*]] = memref.alloc() : memref<4xf32>
// CHECK-NEXT:    memref.copy %x, %[[HOME]]
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      %[[NEW:.*]] = memref.alloc() : memref<4xf32>
// CHECK-NEXT:      stream.cmd.dispatch @k::@k(%[[HOME]], %[[NEW]])
// CHECK-NEXT:      memref.copy %[[NEW]], %[[HOME]]
// CHECK:         func.return %[[HOME]]
func.func @loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<4xf32>) {
    %b = flow.dispatch @k::@k(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// So do both regions of a while, and a branch writes its results into one.
// CHECK-LABEL: func.func @while
// CHECK:         memref.copy %x, %[[HOME:.*]] : memref<4xf32>
// CHECK-NEXT:    scf.while
// CHECK:         %[[BRANCH:.*]] = memref.alloc
// CHECK-NEXT:      scf.if %c {
// CHECK:         memref.copy %{{.*}}, %[[BRANCH]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        memref.copy %x, %[[BRANCH]]
// CHECK:         memref.copy %[[BRANCH]], %[[HOME]]
// CHECK:         func.return %[[HOME]]
func.func @while(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %r = scf.while (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    scf.condition(%c) %a : tensor<4xf32>
  } do {
  ^bb0(%a: tensor<4xf32>):
    %b = scf.if %c -> (tensor<4xf32>) {
      %d = flow.dispatch @k::@k(%a) : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %d : tensor<4xf32>
    } else {
      scf.yield %x : tensor<4xf32>
    }
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// A tensor that may change its size is carried itself; each iteration allocates the next one.
// CHECK-LABEL: func.func @resized_loop
// CHECK:         memref.copy %x, %[[FIRST:.*]] : memref<?xf32>
// CHECK-NEXT:    %[[R:.*]] = scf.for %{{.*}} iter_args(%[[A:.*]] = %[[FIRST]]) -> (memref<?xf32>) {
// CHECK:           %[[N:.*]] = memref.dim %[[A]]
// CHECK:           %[[NEXT:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK-NEXT:      stream.cmd.dispatch @k::@k(%[[A]], %[[NEXT]])
// CHECK-NEXT:      scf.yield %[[NEXT]] : memref<?xf32>
// CHECK:         memref.copy %[[R]], %[[RESULT:.*]] : memref<?xf32>
// CHECK:         func.return %[[RESULT]]
func.func @resized_loop(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<?xf32>) {
    %d = tensor.dim %a, %c0 : tensor<?xf32>
    %m = arith.addi %d, %c1 : index
    %b = flow.dispatch @k::@k(%a) : (tensor<?xf32>) -> tensor<?xf32>{%m}
    scf.yield %b : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// Each region of a branch allocates what it yields.
// CHECK-LABEL: func.func @resized_branch
// CHECK-NEXT:    %[[R:.*]] = scf.if %c -> (memref<?xf32>) {
// CHECK:           memref.copy %x, %[[X:.*]] : memref<?xf32>
// CHECK-NEXT:      scf.yield %[[X]] : memref<?xf32>
// CHECK-NEXT:    } else {
// CHECK:           memref.copy %y, %[[Y:.*]] : memref<?xf32>
// CHECK-NEXT:      scf.yield %[[Y]] : memref<?xf32>
func.func @resized_branch(%x: tensor<?xf32>, %y: tensor<?xf32>, %c: i1) -> tensor<?xf32> {
  %r = scf.if %c -> (tensor<?xf32>) {
    scf.yield %x : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// The caller must not receive its own argument, nor one buffer twice.
// CHECK-LABEL: func.func @no_alias
// CHECK-NEXT:    %[[R:.*]] = memref.alloc() : memref<4xf32>
// CHECK:         memref.copy %x, %[[X:.*]] : memref<4xf32>
// CHECK:         memref.copy %[[R]], %[[COPY:.*]] : memref<4xf32>
// CHECK:         func.return %[[X]], %[[R]], %[[COPY]]
func.func @no_alias(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r = flow.dispatch @k::@k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %x, %r, %r : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What is no tensor is left alone.
// CHECK-LABEL: func.func @no_tensor
// CHECK-SAME:    (%a: i64, %b: i64) -> i64
// CHECK-NEXT:    arith.addi %a, %b : i64
func.func @no_tensor(%a: i64, %b: i64) -> i64 {
  %s = arith.addi %a, %b : i64
  return %s : i64
}

// An argument that is stored is a buffer already.
// CHECK-LABEL: func.func @stored
util.global private mutable @kept = dense<0> : tensor<4xi32>
func.func @stored(%x: tensor<4xi32>) {
  // CHECK-NEXT: %[[G:.*]] = memref.get_global @kept : memref<4xi32>
  // CHECK-NEXT: memref.copy{{.*}} %x, %[[G]]
  util.global.store %x, @kept : tensor<4xi32>
  return
}

// A reshape to sizes that are computed is another view, though the types are equal.
// CHECK-LABEL: func.func @other_sizes
// CHECK:         %[[VIEW:.*]] = memref.reinterpret_cast %x to offset: [0], sizes: [%m, %n], strides: [%n, 1]
// CHECK:         %[[OUT:.*]] = memref.alloc(%{{.*}}, %{{.*}}) : memref<?x?xf32>
// CHECK:         memref.copy %[[VIEW]], %[[OUT]]
func.func @other_sizes(%x: tensor<?x?xf32>, %m: index, %n: index) -> tensor<?x?xf32> {
  %s = tensor.from_elements %m, %n : tensor<2xindex>
  %r = tensor.reshape %x(%s) : (tensor<?x?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
