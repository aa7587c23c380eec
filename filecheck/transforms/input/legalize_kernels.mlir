// RUN: xdsl-opt %s -p irees-raise-buffers,irees-legalize-kernels | filecheck %s

// A transfer is a load where it is inside, else element by element. An update is a load and a store.
// CHECK-LABEL: func.func @accesses
// CHECK:      %[[N:.+]] = memref.dim %[[A:.+]], %{{.+}} : memref<?xf32>
// CHECK:      %[[FITS:.+]] = arith.cmpi sle, %{{.+}}, %[[N]] : index
// CHECK-NEXT: scf.if %[[FITS]] -> (vector<2xf32>) {
// CHECK-NEXT:   vector.load
// CHECK:      } else {
// CHECK:        vector.broadcast
// CHECK:        scf.if
// CHECK:          memref.load
// CHECK:          vector.insert
// CHECK:      vector.reduction
// CHECK:      %[[OLD:.+]] = memref.load
// CHECK-NEXT: %[[NEW:.+]] = arith.addf %[[OLD]], %{{.+}} : f32
// CHECK-NEXT: memref.store %[[NEW]]
func.func @accesses(%a: memref<?xf32>, %b: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %v = vector.transfer_read %a[%c0], %z : memref<?xf32>, vector<2xf32>
  %s = vector.reduction <add>, %v : vector<2xf32> into f32
  %o = memref.atomic_rmw addf %s, %b[%c0] : (f32, memref<1xf32>) -> f32
  return
}

// Ops outside of a kernel stay.
// CHECK-LABEL: func.func @no_kernel
// CHECK: vector.transfer_read
func.func @no_kernel(%a: tensor<8xf32>) -> vector<2xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %v = vector.transfer_read %a[%c0], %z : tensor<8xf32>, vector<2xf32>
  func.return %v : vector<2xf32>
}

// A reshape of a contiguous buffer is a view of it; arithmetic on halves is done in f32.
// CHECK-LABEL: func.func @reshape
// CHECK: memref.reinterpret_cast %{{.+}} to offset: [0], sizes: [16], strides: [1] : memref<4x4xf16> to memref<16xf16>
// CHECK: %[[X:.+]] = vector.load
// CHECK: arith.extf %[[X]] : vector<2xf16> to vector<2xf32>
// CHECK: %[[Y:.+]] = arith.mulf %{{.+}}, %{{.+}} : vector<2xf32>
// CHECK-NEXT: %[[Z:.+]] = arith.truncf %[[Y]] : vector<2xf32> to vector<2xf16>
// CHECK-NEXT: vector.store %[[Z]]
func.func @reshape(%a: memref<4x4xf16>) {
  %c0 = arith.constant 0 : index
  %v = memref.collapse_shape %a [[0, 1]] : memref<4x4xf16> into memref<16xf16>
  %x = vector.load %v[%c0] : memref<16xf16>, vector<2xf16>
  %y = arith.mulf %x, %x : vector<2xf16>
  vector.store %y, %v[%c0] : memref<16xf16>, vector<2xf16>
  func.return
}
