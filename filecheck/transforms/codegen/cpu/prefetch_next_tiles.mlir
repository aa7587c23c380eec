// RUN: xdsl-opt %s -p 'irees-assign-target{facts="l2_bytes=4096 l1_bytes=512"},irees-prefetch-next-tiles' | filecheck %s

// Rows 2 i and 2 i + 1 are read by two loops; the second asks for those of i + 1.
// CHECK-LABEL: func.func @twice
// CHECK:         scf.for %[[a:.*]] =
// CHECK-NEXT:      vector.load %{{.*}}[%[[a]], %{{.*}}]
// CHECK-NOT:     memref.prefetch
// CHECK:         scf.for %[[b:.*]] =
// CHECK-NEXT:      vector.load %[[tile:[a-z0-9]+]][%[[b]], %[[c:[a-z0-9]+]]]
// CHECK-NEXT:      %[[two:.*]] = arith.constant 2
// CHECK-NEXT:      %[[next:.*]] = arith.addi %[[b]], %[[two]]
// CHECK-NEXT:      memref.prefetch %[[tile]][%[[next]], %[[c]]], read, locality<3>, data : memref<2x16xf32
func.func @twice(%x: memref<64x16xf32>, %y: memref<64x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.forall (%w) in (32) {
    %first = arith.muli %w, %c2 : index
    %s = memref.subview %x[%first, 0] [2, 16] [1, 1] : memref<64x16xf32> to memref<2x16xf32, strided<[16, 1], offset: ?>>
    %t = memref.subview %x[%first, 0] [2, 16] [1, 1] : memref<64x16xf32> to memref<2x16xf32, strided<[16, 1], offset: ?>>
    %o = memref.subview %y[%first, 0] [2, 16] [1, 1] : memref<64x16xf32> to memref<2x16xf32, strided<[16, 1], offset: ?>>
    scf.for %i = %c0 to %c2 step %c1 {
      %v = vector.load %s[%i, %c0] : memref<2x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      vector.store %v, %o[%i, %c0] : memref<2x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
    }
    scf.for %i = %c0 to %c2 step %c1 {
      %v = vector.load %t[%i, %c0] : memref<2x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      vector.store %v, %o[%i, %c0] : memref<2x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
    }
  }
  return
}

// One loop reads a tile as it comes, and the other tile is not the same.
// CHECK-LABEL: func.func @no_second_loop
// CHECK-NOT:     memref.prefetch
// CHECK:         func.return
func.func @no_second_loop(%x: memref<64x16xf32>, %y: memref<64x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%w) in (64) {
    %s = memref.subview %x[%w, 0] [1, 16] [1, 1] : memref<64x16xf32> to memref<1x16xf32, strided<[16, 1], offset: ?>>
    %o = memref.subview %y[%w, 0] [1, 16] [1, 1] : memref<64x16xf32> to memref<1x16xf32, strided<[16, 1], offset: ?>>
    scf.for %i = %c0 to %c1 step %c1 {
      %v = vector.load %s[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      vector.store %v, %o[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
    }
    scf.for %i = %c0 to %c1 step %c1 {
      %v = vector.load %o[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      vector.store %v, %o[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
    }
  }
  return
}

// An input of 4032 bytes stays in the cache; a tile of 1024 would drive out itself; the tile of the
// third does not move with the workgroup.
// CHECK-LABEL: func.func @no_size_nor_step
// CHECK-NOT:     memref.prefetch
// CHECK:         func.return
func.func @no_size_nor_step(%x: memref<63x16xf32>, %y: memref<64x256xf32>, %z: memref<64x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%w) in (63) {
    %s = memref.subview %x[%w, 0] [1, 16] [1, 1] : memref<63x16xf32> to memref<1x16xf32, strided<[16, 1], offset: ?>>
    %t = memref.subview %y[%w, 0] [1, 256] [1, 1] : memref<64x256xf32> to memref<1x256xf32, strided<[256, 1], offset: ?>>
    %u = memref.subview %z[0, 0] [1, 16] [1, 1] : memref<64x16xf32> to memref<1x16xf32, strided<[16, 1]>>
    scf.for %i = %c0 to %c1 step %c1 {
      %v0 = vector.load %s[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      %v1 = vector.load %t[%i, %c0] : memref<1x256xf32, strided<[256, 1], offset: ?>>, vector<16xf32>
      %v2 = vector.load %u[%i, %c0] : memref<1x16xf32, strided<[16, 1]>>, vector<16xf32>
    }
    scf.for %i = %c0 to %c1 step %c1 {
      %v0 = vector.load %s[%i, %c0] : memref<1x16xf32, strided<[16, 1], offset: ?>>, vector<16xf32>
      %v1 = vector.load %t[%i, %c0] : memref<1x256xf32, strided<[256, 1], offset: ?>>, vector<16xf32>
      %v2 = vector.load %u[%i, %c0] : memref<1x16xf32, strided<[16, 1]>>, vector<16xf32>
    }
  }
  return
}

// Two vectors of 32 bytes are one line, which is asked for once; the third begins the next.
// CHECK-LABEL: func.func @half_lines
// CHECK:         scf.for %[[a:.*]] =
// CHECK:         scf.for %[[b:.*]] =
// CHECK-NEXT:      vector.load %[[tile:[a-z0-9]+]][%{{.*}}, %[[b]]]
// CHECK:           memref.prefetch %[[tile]][%{{.*}}, %[[b]]], read
// CHECK-NOT:       memref.prefetch
// CHECK:           %[[third:.*]] = arith.addi %[[b]], %c16
// CHECK:           memref.prefetch %[[tile]][%{{.*}}, %[[third]]], read
// CHECK-NOT:       memref.prefetch
// CHECK:         func.return
func.func @half_lines(%x: memref<64x48xf32>, %y: memref<64x48xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %c48 = arith.constant 48 : index
  scf.forall (%w) in (64) {
    %s = memref.subview %x[%w, 0] [1, 48] [1, 1] : memref<64x48xf32> to memref<1x48xf32, strided<[48, 1], offset: ?>>
    %o = memref.subview %y[%w, 0] [1, 48] [1, 1] : memref<64x48xf32> to memref<1x48xf32, strided<[48, 1], offset: ?>>
    scf.for %i = %c0 to %c48 step %c8 {
      %v = vector.load %s[%c0, %i] : memref<1x48xf32, strided<[48, 1], offset: ?>>, vector<8xf32>
      vector.store %v, %o[%c0, %i] : memref<1x48xf32, strided<[48, 1], offset: ?>>, vector<8xf32>
    }
    scf.for %i = %c0 to %c48 step %c24 {
      %v = vector.load %s[%c0, %i] : memref<1x48xf32, strided<[48, 1], offset: ?>>, vector<8xf32>
      %i1 = arith.addi %i, %c8 : index
      %v1 = vector.load %s[%c0, %i1] : memref<1x48xf32, strided<[48, 1], offset: ?>>, vector<8xf32>
      %i2 = arith.addi %i, %c16 : index
      %v2 = vector.load %s[%c0, %i2] : memref<1x48xf32, strided<[48, 1], offset: ?>>, vector<8xf32>
      %sum = arith.addf %v, %v1 : vector<8xf32>
      %all = arith.addf %sum, %v2 : vector<8xf32>
      vector.store %all, %o[%c0, %i] : memref<1x48xf32, strided<[48, 1], offset: ?>>, vector<8xf32>
    }
  }
  return
}
