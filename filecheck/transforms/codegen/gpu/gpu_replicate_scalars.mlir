// RUN: irees opt %s -p irees-gpu-replicate-scalars | filecheck %s

// The initial value is forwarded, and every thread combines the partial sums.
// CHECK-LABEL: func.func @sum
// CHECK:         %[[S:.*]] = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
// CHECK:         scf.forall (%{{.*}}) in (128) {
// CHECK:           memref.store %{{.*}}, %[[S]]
// CHECK:         gpu.barrier
// CHECK:         scf.forall (%{{.*}}) in (128) {
// CHECK:           %[[P:.*]] = memref.load %{{.*}} : memref<1x2xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:       memref.load %[[S]]
// CHECK:           %[[V:.*]] = arith.addf %{{.*}}, %[[P]]
// CHECK:           memref.store %[[V]], %[[S]]
// CHECK:         scf.forall (%{{.*}}) in (1024) {
// CHECK:           memref.load %[[S]]
func.func @sum(%y: memref<1024xf32>) {
  scf.forall (%b) in (1) {
    %s = memref.alloca() : memref<1xf32>
    %p = memref.alloc() : memref<1x2xf32, #gpu.address_space<workgroup>>
    %0 = arith.constant 0 : index
    scf.forall (%t) in (1) {
      %c = arith.constant 0.0 : f32
      memref.store %c, %s[%0] : memref<1xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (1) {
      %v = memref.load %p[%t, %0] : memref<1x2xf32, #gpu.address_space<workgroup>>
      %c = memref.load %s[%0] : memref<1xf32>
      %w = arith.addf %c, %v : f32
      memref.store %w, %s[%0] : memref<1xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (1024) {
      %v = memref.load %s[%0] : memref<1xf32>
      memref.store %v, %y[%t] : memref<1024xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A buffer that a loop reads and writes would be changed once per thread of the interpreter.
// CHECK-LABEL: func.func @counted
// CHECK:         memref.alloca() : memref<1xf32>
// CHECK:         scf.forall (%{{.*}}) in (1) {
func.func @counted(%x: memref<1xf32>, %y: memref<1024xf32>) {
  scf.forall (%b) in (1) {
    %s = memref.alloca() : memref<1xf32>
    %0 = arith.constant 0 : index
    scf.forall (%t) in (1) {
      %v = memref.load %x[%0] : memref<1xf32>
      %c = memref.load %s[%0] : memref<1xf32>
      %w = arith.addf %c, %v : f32
      memref.store %w, %s[%0] : memref<1xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (1024) {
      %v = memref.load %s[%0] : memref<1xf32>
      memref.store %v, %y[%t] : memref<1024xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Nor is a loop repeated that also stores to memory that all threads share.
// CHECK-LABEL: func.func @both
// CHECK:         memref.alloca() : memref<1xf32>
// CHECK:         scf.forall (%{{.*}}) in (1) {
func.func @both(%x: memref<1xf32>, %y: memref<1024xf32>) {
  scf.forall (%b) in (1) {
    %s = memref.alloca() : memref<1xf32>
    %0 = arith.constant 0 : index
    scf.forall (%t) in (1) {
      %v = memref.load %x[%0] : memref<1xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %s[%0] : memref<1xf32>
      memref.store %w, %x[%0] : memref<1xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (1024) {
      %v = memref.load %s[%0] : memref<1xf32>
      memref.store %v, %y[%t] : memref<1024xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A store by one of several threads is not the value of all.
// CHECK-LABEL: func.func @lane
// CHECK:         memref.alloca() : memref<1xf32>
func.func @lane(%x: memref<128xf32>, %y: memref<1024xf32>) {
  scf.forall (%b) in (1) {
    %s = memref.alloca() : memref<1xf32>
    %0 = arith.constant 0 : index
    scf.forall (%t) in (128) {
      %v = memref.load %x[%t] : memref<128xf32>
      %first = arith.cmpi eq, %t, %0 : index
      scf.if %first {
        memref.store %v, %s[%0] : memref<1xf32>
      }
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (1024) {
      %v = memref.load %s[%0] : memref<1xf32>
      memref.store %v, %y[%t] : memref<1024xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A store inside of a loop changes what the loads of later iterations find.
// CHECK-LABEL: func.func @in_turns
// CHECK:         %[[S:.*]] = memref.alloca() : memref<1xf32>
// CHECK:         scf.for
// CHECK:           memref.load %[[S]]
// CHECK:           memref.store %{{.*}}, %[[S]]
func.func @in_turns(%x: memref<8xf32>, %y: memref<1024xf32>) {
  scf.forall (%b) in (1) {
    %s = memref.alloca() : memref<1xf32>
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %8 = arith.constant 8 : index
    scf.forall (%t) in (1) {
      %c = arith.constant 0.0 : f32
      memref.store %c, %s[%0] : memref<1xf32>
      scf.for %i = %0 to %8 step %1 {
        %c1 = memref.load %s[%0] : memref<1xf32>
        %v = memref.load %x[%i] : memref<8xf32>
        %w = arith.addf %c1, %v : f32
        memref.store %w, %s[%0] : memref<1xf32>
      }
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (1024) {
      %v = memref.load %s[%0] : memref<1xf32>
      memref.store %v, %y[%t] : memref<1024xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// So does a store of another thread.
// CHECK-LABEL: func.func @by_others
// CHECK:         %[[S:.*]] = memref.alloca() : memref<1xf32>
// CHECK:         scf.forall (%{{.*}}) in (2) {
// CHECK:         memref.load %[[S]]
func.func @by_others(%x: memref<2xf32>) {
  scf.forall (%b) in (1) {
    %s = memref.alloca() : memref<1xf32>
    %0 = arith.constant 0 : index
    scf.forall (%t) in (1) {
      %c = arith.constant 0.0 : f32
      memref.store %c, %s[%0] : memref<1xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (2) {
      %c = arith.constant 1.0 : f32
      memref.store %c, %s[%0] : memref<1xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
    gpu.barrier
    scf.forall (%t) in (1) {
      %v = memref.load %s[%0] : memref<1xf32>
      memref.store %v, %x[%t] : memref<2xf32>
    } {mapping = [#gpu.thread<linear_dim_0>]}
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
