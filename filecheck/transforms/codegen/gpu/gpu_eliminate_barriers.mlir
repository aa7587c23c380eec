// RUN: irees opt %s -p irees-gpu-eliminate-barriers | filecheck %s

// The first barrier orders the store to shared memory and its load. Nothing is stored that the loops
// around the second one share.
// CHECK-LABEL: func.func @shared
// CHECK:         memref.store %{{.*}}, %{{.*}} : memref<128xf32, #gpu.address_space<workgroup>>
// CHECK:         gpu.barrier
// CHECK-NOT:     gpu.barrier
// CHECK:         memref.store %{{.*}}, %y
func.func @shared(%x: memref<128xf32>, %y: memref<128xf32>) {
  scf.forall (%b) in (1) {
    %p = memref.alloc() : memref<128xf32, #gpu.address_space<workgroup>>
    %s = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
    %0 = arith.constant 0 : index
    scf.forall (%t) in (128) {
      %v = memref.load %x[%t] : memref<128xf32>
      memref.store %v, %p[%t] : memref<128xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (128) {
      %v = memref.load %p[%0] : memref<128xf32, #gpu.address_space<workgroup>>
      memref.store %v, %s[%0] : memref<1xf32, #gpu.address_space<private>>
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (128) {
      %v = memref.load %s[%0] : memref<1xf32, #gpu.address_space<private>>
      memref.store %v, %y[%t] : memref<128xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A load, and a store after it: threads that load later must not find what the others store. The
// barrier between them counts if another one before it is erased.
// CHECK-LABEL: func.func @later
// CHECK:         memref.load %{{.*}} : memref<128xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:     gpu.barrier
// CHECK:         memref.store %{{.*}}, %{{.*}} : memref<1xf32, #gpu.address_space<private>>
// CHECK:         gpu.barrier
// CHECK:         memref.store %{{.*}}, %{{.*}} : memref<128xf32, #gpu.address_space<workgroup>>
func.func @later(%x: memref<128xf32>) {
  scf.forall (%b) in (1) {
    %p = memref.alloc() : memref<128xf32, #gpu.address_space<workgroup>>
    %s = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
    %0 = arith.constant 0 : index
    scf.forall (%t) in (128) {
      %v = memref.load %p[%0] : memref<128xf32, #gpu.address_space<workgroup>>
      memref.store %v, %s[%0] : memref<1xf32, #gpu.address_space<private>>
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (128) {
      %v = memref.load %s[%0] : memref<1xf32, #gpu.address_space<private>>
      memref.store %v, %s[%0] : memref<1xf32, #gpu.address_space<private>>
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (128) {
      %v = memref.load %x[%t] : memref<128xf32>
      memref.store %v, %p[%t] : memref<128xf32, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Two arguments may be the same memory.
// CHECK-LABEL: func.func @arguments
// CHECK:         gpu.barrier
func.func @arguments(%x: memref<128xf32>, %y: memref<128xf32>) {
  scf.forall (%b) in (1) {
    %0 = arith.constant 0 : index
    %s = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
    scf.forall (%t) in (128) {
      %v = memref.load %x[%0] : memref<128xf32>
      memref.store %v, %s[%0] : memref<1xf32, #gpu.address_space<private>>
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (128) {
      %v = memref.load %s[%0] : memref<1xf32, #gpu.address_space<private>>
      memref.store %v, %y[%t] : memref<128xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// An op with unknown effects, here another barrier inside of a loop, keeps the barriers beside it.
// CHECK-LABEL: func.func @unknown
// CHECK-COUNT-2: gpu.barrier
func.func @unknown(%x: memref<128xf32>) {
  scf.forall (%b) in (1) {
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    scf.forall (%t) in (128) {
      scf.for %i = %0 to %1 step %1 {
        gpu.barrier
      }
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (128) {
      %v = memref.load %x[%t] : memref<128xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
