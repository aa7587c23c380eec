// RUN: xdsl-opt %s -p irees-inline-kernels | filecheck %s

// The block takes the place of the kernel, on its operands.
// CHECK-LABEL: func.func @serial
// CHECK-SAME: (%[[X:.+]]: memref<?xf32>, %[[N:.+]]: index)
// CHECK-NOT: irees.kernel
// CHECK: scf.for %[[I:.+]] = %{{.+}} to %[[N]]
// CHECK-NEXT: memref.store %{{.+}}, %[[X]][%[[I]]]
func.func @serial(%x: memref<?xf32>, %n: index) {
  irees.kernel ins(%n : index) outs(%x : memref<?xf32>) {
  ^bb0(%m: index, %y: memref<?xf32>):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %v = arith.constant 1.0 : f32
    scf.for %i = %c0 to %m step %c1 {
      memref.store %v, %y[%i] : memref<?xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @parallel
// CHECK: scf.forall (%[[I:.+]], %[[J:.+]]) in (%{{.+}}, 3)
// CHECK-NEXT: memref.store %{{.+}}, %{{.+}}[%[[I]], %[[J]]]
func.func @parallel(%x: memref<?x3xf32>, %n: index) {
  irees.kernel ins(%n : index) outs(%x : memref<?x3xf32>) {
  ^bb0(%m: index, %y: memref<?x3xf32>):
    %v = arith.constant 1.0 : f32
    scf.forall (%i, %j) in (%m, 3) {
      memref.store %v, %y[%i, %j] : memref<?x3xf32>
    }
  }
  func.return
}

// Other passes may know more of the sizes than the program says.
// CHECK-LABEL: func.func @cast
// CHECK: memref.cast %{{.+}} : memref<4xf32> to memref<?xf32>
func.func @cast(%x: memref<4xf32>) {
  irees.kernel ins() outs(%x : memref<4xf32>) {
  ^bb0(%y: memref<?xf32>):
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : f32
    memref.store %v, %y[%c0] : memref<?xf32>
  }
  func.return
}

// One on tensors is left for bufferization.
// CHECK-LABEL: func.func @tensors
// CHECK: irees.kernel
func.func @tensors(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = irees.kernel ins() outs(%x : tensor<4xf32>) {
  ^bb0(%y: memref<4xf32>):
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : f32
    memref.store %v, %y[%c0] : memref<4xf32>
  } -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}
