// RUN: xdsl-opt %s -p irees-return-updates | filecheck %s

// The function takes tensors, and returns what it wrote behind what it returned.
// CHECK-LABEL: func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (index, tensor<4xf32>) {
// CHECK-NEXT:    %[[B:.*]] = bufferization.to_buffer %b : tensor<4xf32> to memref<4xf32>
// CHECK-NEXT:    %[[A:.*]] = bufferization.to_buffer %a : tensor<4xf32> to memref<4xf32>
// CHECK-NEXT:    %n = arith.constant 2 : index
// CHECK-NEXT:    linalg.add ins(%[[A]], %[[A]] : memref<4xf32>, memref<4xf32>) outs(%[[B]] : memref<4xf32>)
// CHECK-NEXT:    %[[R:.*]] = bufferization.to_tensor %[[B]] : memref<4xf32> to tensor<4xf32>
// CHECK-NEXT:    func.return %n, %[[R]] : index, tensor<4xf32>
func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) -> index {
  %n = arith.constant 2 : index
  linalg.add ins(%a, %a : memref<4xf32>, memref<4xf32>) outs(%b : memref<4xf32>)
  return %n : index
}

// A view of an argument is written, of dynamic size.
// CHECK-LABEL: func.func @view(%a: tensor<?xf32>, %x: f32) -> tensor<?xf32> {
// CHECK-NEXT:    %[[A:.*]] = bufferization.to_buffer %a
// CHECK:         %[[R:.*]] = bufferization.to_tensor %[[A]] : memref<?xf32> to tensor<?xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @view(%a: memref<?xf32>, %x: f32) {
  %v = memref.subview %a[1] [2] [1] : memref<?xf32> to memref<2xf32, strided<[1], offset: 1>>
  linalg.fill ins(%x : f32) outs(%v : memref<2xf32, strided<[1], offset: 1>>)
  return
}

// Functions on tensors are left alone.
// CHECK-LABEL: func.func @no_buffers(%a: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    func.return %a
func.func @no_buffers(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a: tensor<4xf32>
}
