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
// CHECK-NEXT:     %3 = tensor.insert %x into %1[%i] : tensor<?xf32>
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
      memref.store %x, %a[%i] : memref<?xf32>
    }
  }
  return
}
