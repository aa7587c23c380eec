// RUN: xdsl-opt %s -p 'irees-assign-target{facts="l2_bytes=4096 l1_bytes=512"},irees-prefetch-outputs' | filecheck %s

// What the second loop writes is asked for in the first, beside the load of the same place; the
// view moves in front of it.
// CHECK-LABEL: func.func @quotients
// CHECK:         %[[tile:.*]] = memref.subview %x
// CHECK:         %[[out:.*]] = memref.subview %y
// CHECK:         scf.for %[[i:.*]] =
// CHECK-NEXT:      vector.load %[[tile]][%[[i]], %[[c:[a-z0-9]+]]]
// CHECK-NEXT:      memref.prefetch %[[out]][%[[i]], %[[c]]], write, locality<3>, data : memref<2x16xf32
// CHECK:         scf.for
// CHECK-NOT:     memref.prefetch
// CHECK:         func.return
func.func @quotients(%x: memref<64x16xf32>, %y: memref<64x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.forall (%w) in (32) {
    %first = arith.muli %w, %c2 : index
    %t = memref.subview %x[%first, 0] [2, 16] [1, 1] : memref<64x16xf32> to memref<2x16xf32, strided<[16, 1], offset: ?>>
    %p = memref.alloca() : memref<2x16xf32>
    scf.for %i = %c0 to %c2 step %c1 {
      %v = vector.load %t[%i, %c0] : memref<2x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      vector.store %v, %p[%i, %c0] : memref<2x16xf32>, vector<16xf32>
    }
    %o = memref.subview %y[%first, 0] [2, 16] [1, 1] : memref<64x16xf32> to memref<2x16xf32, strided<[16, 1], offset: ?>>
    scf.for %i = %c0 to %c2 step %c1 {
      %v = vector.load %p[%i, %c0] : memref<2x16xf32>, vector<16xf32>
      vector.store %v, %o[%i, %c0] : memref<2x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
    }
  }
  return
}

// One loop writes what it reads: there is none before it. Stores past the caches read no line. What
// the kernel reads from the output is in a cache, or on its way.
// CHECK-LABEL: func.func @no_loop_before
// CHECK-NOT:     memref.prefetch
// CHECK:         func.return
func.func @no_loop_before(%x: memref<64x16xf32>, %y: memref<64x16xf32>, %z: memref<64x16xf32>, %u: memref<64x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%w) in (64) {
    %t = memref.subview %x[%w, 0] [1, 16] [1, 1] : memref<64x16xf32> to memref<1x16xf32, strided<[16, 1], offset: ?>>
    %o = memref.subview %y[%w, 0] [1, 16] [1, 1] : memref<64x16xf32> to memref<1x16xf32, strided<[16, 1], offset: ?>>
    %q = memref.subview %z[%w, 0] [1, 16] [1, 1] : memref<64x16xf32> to memref<1x16xf32, strided<[16, 1], offset: ?>>
    %r = memref.subview %u[%w, 0] [1, 16] [1, 1] : memref<64x16xf32> to memref<1x16xf32, strided<[16, 1], offset: ?>>
    scf.for %i = %c0 to %c1 step %c1 {
      %v = vector.load %t[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      vector.store %v, %o[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
    }
    scf.for %i = %c0 to %c1 step %c1 {
      %v = vector.load %t[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      %b = vector.load %r[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      vector.store %b, %q[%i, %c0] {nontemporal = true} : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      vector.store %v, %r[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
    }
  }
  return
}

// An output of 4032 bytes stays in the cache; a tile of 1024 would drive out itself; nothing of the
// shape of the third is read.
// CHECK-LABEL: func.func @no_size_nor_shape
// CHECK-NOT:     memref.prefetch
// CHECK:         func.return
func.func @no_size_nor_shape(%x: memref<63x16xf32>, %y: memref<64x256xf32>, %z: memref<64x32xf32>, %a: memref<63x16xf32>, %b: memref<64x256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%w) in (63) {
    %s = memref.subview %a[%w, 0] [1, 16] [1, 1] : memref<63x16xf32> to memref<1x16xf32, strided<[16, 1], offset: ?>>
    %t = memref.subview %b[%w, 0] [1, 256] [1, 1] : memref<64x256xf32> to memref<1x256xf32, strided<[256, 1], offset: ?>>
    %so = memref.subview %x[%w, 0] [1, 16] [1, 1] : memref<63x16xf32> to memref<1x16xf32, strided<[16, 1], offset: ?>>
    %to = memref.subview %y[%w, 0] [1, 256] [1, 1] : memref<64x256xf32> to memref<1x256xf32, strided<[256, 1], offset: ?>>
    %uo = memref.subview %z[%w, 0] [1, 32] [1, 1] : memref<64x32xf32> to memref<1x32xf32, strided<[32, 1], offset: ?>>
    scf.for %i = %c0 to %c1 step %c1 {
      %v0 = vector.load %s[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      %v1 = vector.load %t[%i, %c0] : memref<1x256xf32, strided<[256, 1], offset: ?>>, vector<16xf32>
    }
    scf.for %i = %c0 to %c1 step %c1 {
      %v0 = vector.load %s[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      %v1 = vector.load %t[%i, %c0] : memref<1x256xf32, strided<[256, 1], offset: ?>>, vector<16xf32>
      vector.store %v0, %so[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      vector.store %v1, %to[%i, %c0] : memref<1x256xf32, strided<[256, 1], offset: ?>>, vector<16xf32>
      vector.store %v0, %uo[%i, %c0] : memref<1x32xf32, strided<[32, 1], offset: ?>>, vector<16xf32>
    }
  }
  return
}
