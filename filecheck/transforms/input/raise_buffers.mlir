// RUN: irees opt %s -p irees-raise-buffers --split-input-file | filecheck %s

// What is written into an argument is a result that updates it.
// CHECK:      func.func @add(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32> {irees.updates = 1 : index}) {
// CHECK-NEXT:   %0 = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%b : tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:   func.return %0 : tensor<4xf32>
func.func @add(%a: memref<4xf32>, %b: memref<4xf32>) {
  linalg.add ins(%a, %a : memref<4xf32>, memref<4xf32>) outs(%b : memref<4xf32>)
  return
}

// -----

// A write to a view is an insertion, and a read after it a slice of the new value.
// CHECK:      func.func @view(%a: tensor<8xf32>, %x: f32) -> (f32, tensor<8xf32> {irees.updates = 0 : index}) {
// CHECK:        %0 = tensor.extract_slice %a[4] [4] [1] : tensor<8xf32> to tensor<4xf32>
// CHECK-NEXT:   %1 = linalg.fill ins(%x : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:   %2 = tensor.insert_slice %1 into %a[4] [4] [1] : tensor<4xf32> into tensor<8xf32>
// CHECK-NEXT:   %c5 = arith.constant 5 : index
// CHECK-NEXT:   %r = tensor.extract %2[%c5] : tensor<8xf32>
// CHECK-NEXT:   func.return %r, %2 : f32, tensor<8xf32>
func.func @view(%a: memref<8xf32>, %x: f32) -> f32 {
  %v = memref.subview %a[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  linalg.fill ins(%x : f32) outs(%v : memref<4xf32, strided<[1], offset: 4>>)
  %c5 = arith.constant 5 : index
  %r = memref.load %a[%c5] : memref<8xf32>
  return %r : f32
}

// -----

// A loop carries what it writes, and a branch yields it.
// CHECK:      %0 = scf.for %i = %c0 to %n step %c1 iter_args(%1 = %a) -> (tensor<?xf32>) {
// CHECK-NEXT:   %2 = scf.if %p -> (tensor<?xf32>) {
// CHECK-NEXT:     %3 = linalg.fill ins(%x : f32) outs(%1 : tensor<?xf32>) -> tensor<?xf32>
// CHECK-NEXT:     scf.yield %3 : tensor<?xf32>
// CHECK-NEXT:   } else {
// CHECK-NEXT:     scf.yield %1 : tensor<?xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   scf.yield %2 : tensor<?xf32>
// CHECK-NEXT: }
// CHECK-NEXT: func.return %0 : tensor<?xf32>
func.func @loop(%a: memref<?xf32>, %x: f32, %p: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.if %p {
      linalg.fill ins(%x : f32) outs(%a : memref<?xf32>)
    }
  }
  return
}

// -----

// A loop without such ops is a kernel. It takes the buffers, copies of the constants, the scalars.
// CHECK-LABEL: func.func @kernel
// CHECK:      %[[R:.+]] = irees.kernel ins(%a, %n, %x : tensor<?xf32>, index, f32) outs(%b : tensor<?xf32>) {
// CHECK-NEXT: ^bb0(%[[A:.+]]: memref<?xf32>, %[[N:.+]]: index, %[[X:.+]]: f32, %[[B:.+]]: memref<?xf32>):
// CHECK-NEXT:   %[[C0:.+]] = arith.constant 0 : index
// CHECK-NEXT:   %[[C8:.+]] = arith.constant 8 : index
// CHECK-NEXT:   %[[XS:.+]] = vector.broadcast %[[X]] : f32 to vector<8xf32>
// CHECK-NEXT:   scf.for %[[I:.+]] = %[[C0]] to %[[N]] step %[[C8]] {
// CHECK-NEXT:     %[[V:.+]] = vector.load %[[A]][%[[I]]] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:     %[[W:.+]] = arith.mulf %[[V]], %[[XS]] : vector<8xf32>
// CHECK-NEXT:     vector.store %[[W]], %[[B]][%[[I]]] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: } -> tensor<?xf32>
// CHECK-NEXT: func.return %[[R]] : tensor<?xf32>
func.func @kernel(%a: memref<?xf32>, %b: memref<?xf32>, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %xs = vector.broadcast %x : f32 to vector<8xf32>
  scf.for %i = %c0 to %n step %c8 {
    %v = vector.load %a[%i] : memref<?xf32>, vector<8xf32>
    %w = arith.mulf %v, %xs : vector<8xf32>
    vector.store %w, %b[%i] : memref<?xf32>, vector<8xf32>
  }
  return
}

// -----

// Neighbours are one kernel, with the views that they use; a read behind it is of its result.
// CHECK-LABEL: func.func @neighbours
// CHECK:      %[[R:.+]] = irees.kernel ins(%{{.+}} : f32) outs(%a : tensor<8xf32>) {
// CHECK:        memref.subview
// CHECK:        scf.for
// CHECK:        scf.for
// CHECK:      } -> tensor<8xf32>
// CHECK-NEXT: tensor.extract %[[R]]
func.func @neighbours(%a: memref<8xf32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    memref.store %x, %a[%i] : memref<8xf32>
  }
  %v = memref.subview %a[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  scf.for %i = %c0 to %c4 step %c1 {
    memref.store %x, %v[%i] : memref<4xf32, strided<[1], offset: 4>>
  }
  %r = memref.load %a[%c1] : memref<8xf32>
  return %r : f32
}

// -----

// A kernel on tensors is as it should be.
// CHECK-LABEL: func.func @no_change
// CHECK-NEXT: irees.kernel ins() outs(%a : tensor<8xf32>)
func.func @no_change(%a: tensor<8xf32>) -> tensor<8xf32> {
  %r = irees.kernel ins() outs(%a : tensor<8xf32>) {
  ^bb0(%y: memref<8xf32>):
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : f32
    memref.store %v, %y[%c0] : memref<8xf32>
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// A constant global is a constant.
// CHECK-NOT: memref.global
// CHECK-LABEL: func.func @global
// CHECK: %[[W:.+]] = arith.constant dense<2.000000e+00> : tensor<4xf32>
// CHECK: tensor.extract %[[W]]
memref.global "private" constant @w : memref<4xf32> = dense<2.0>
func.func @global(%i: index) -> f32 {
  %w = memref.get_global @w : memref<4xf32>
  %x = memref.load %w[%i] : memref<4xf32>
  return %x : f32
}

// -----

// Loops that write nothing leave nothing behind; those that assert something have a result that nothing reads.
// CHECK-LABEL: func.func @only_reads
// CHECK-NOT:     vector.load
// CHECK:         %[[unread:.*]] = tensor.empty() : tensor<1xi32>
// CHECK-NEXT:    irees.kernel ins(%{{.*}} : tensor<8xf32>) outs(%[[unread]] : tensor<1xi32>)
// CHECK:           cf.assert
func.func @only_reads(%a: memref<8xf32>, %b: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %v = vector.load %b[%c0] : memref<8xf32>, vector<8xf32>
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<8xf32>
  memref.store %zero, %c[%c0] : memref<8xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %x = memref.load %a[%i] : memref<8xf32>
    %positive = arith.cmpf ogt, %x, %zero : f32
    cf.assert %positive, "not positive"
  }
  return
}

// A copy of another size is refused; only the dim that may differ is compared.
// CHECK-LABEL: func.func @copy
// CHECK:         %[[N:.*]] = tensor.dim %x
// CHECK:         %[[M:.*]] = tensor.dim %y
// CHECK:         %[[EQUAL:.*]] = arith.cmpi eq, %[[N]], %[[M]] : index
// CHECK-NEXT:    cf.assert %[[EQUAL]], "dim 0 of operand 0 must equal dim 0 of operand 1 of memref.copy"
// CHECK-NOT:     cf.assert
// CHECK:         func.return %x
func.func @copy(%x: memref<?x4xf32>, %y: memref<?x4xf32>) {
  memref.copy %x, %y : memref<?x4xf32> to memref<?x4xf32>
  return
}

// A tensor that is made a buffer is its first value.
// CHECK-LABEL: func.func @given
// CHECK-NEXT:    %[[R:.*]] = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%a : tensor<4xf32>)
// CHECK-NEXT:    func.return %[[R]] : tensor<4xf32>
func.func @given(%a: tensor<4xf32>) -> tensor<4xf32> {
  %m = bufferization.to_buffer %a : tensor<4xf32> to memref<4xf32>
  linalg.add ins(%m, %m : memref<4xf32>, memref<4xf32>) outs(%m : memref<4xf32>)
  %r = bufferization.to_tensor %m : memref<4xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}
