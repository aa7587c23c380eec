// RUN: xdsl-opt %s -p "irees-prefetch-next-tiles{limit=4096 tile_bytes=512}" | filecheck %s

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
