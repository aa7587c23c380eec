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

// A mask is a comparison or a constant; a transfer with a mask is one lane after the other.
// CHECK-LABEL: func.func @masks
// CHECK:      %[[STEP:.+]] = vector.step : vector<2xindex>
// CHECK-NEXT: %[[LEFT:.+]] = vector.broadcast %{{.+}} : index to vector<2xindex>
// CHECK-NEXT: %[[MASK:.+]] = arith.cmpi slt, %[[STEP]], %[[LEFT]] : vector<2xindex>
// CHECK:      %[[FIRST:.+]] = arith.constant dense<[true, false]> : vector<2xi1>
// CHECK:      %[[INSIDE:.+]] = arith.cmpi slt
// CHECK-NEXT: %[[ON:.+]] = vector.extract %[[MASK]][0] : i1 from vector<2xi1>
// CHECK-NEXT: %[[BOTH:.+]] = arith.andi %[[INSIDE]], %[[ON]] : i1
// CHECK-NEXT: scf.if %[[BOTH]]
// CHECK-NEXT:   memref.load
// CHECK:      vector.maskedstore %{{.+}}[%{{.+}}], %[[FIRST]]
func.func @masks(%a: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %f = vector.constant_mask [1] : vector<2xi1>
  %m = vector.create_mask %n : vector<2xi1>
  %v = vector.transfer_read %a[%c0], %z, %m : memref<?xf32>, vector<2xf32>
  vector.maskedstore %a[%c0], %f, %v : memref<?xf32>, vector<2xi1>, vector<2xf32>
  return
}

// A part of a vector is a shuffle.
// CHECK-LABEL: func.func @parts
// CHECK: vector.shuffle %[[V:.+]], %[[V]] [1, 2] : vector<4xf32>, vector<4xf32>
// CHECK: vector.shuffle %{{.+}}, %[[V]] [2, 3, 0, 1] : vector<2xf32>, vector<4xf32>
func.func @parts(%a: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %v = vector.load %a[%c0] : memref<4xf32>, vector<4xf32>
  %p = vector.extract_strided_slice %v {offsets = [1], sizes = [2], strides = [1]}
      : vector<4xf32> to vector<2xf32>
  %w = vector.insert_strided_slice %p, %v {offsets = [2], strides = [1]}
      : vector<2xf32> into vector<4xf32>
  vector.store %w, %a[%c0] : memref<4xf32>, vector<4xf32>
  return
}
