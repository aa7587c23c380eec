// RUN: xdsl-opt %s -p 'irees-assign-target{facts="l3_bytes=8192"},irees-use-nontemporal-stores' | filecheck %s

// An output of 4096 bytes, written through a view and never read.
// CHECK-LABEL: func.func @large
// CHECK:         vector.store %{{.*}} {nontemporal = true} : memref<64xf32
func.func @large(%x: memref<1024xf32>, %y: memref<1024xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%i] : memref<1024xf32>, vector<16xf32>
  %s = memref.subview %y[64] [64] [1] : memref<1024xf32> to memref<64xf32, strided<[1], offset: 64>>
  vector.store %v, %s[%c0] : memref<64xf32, strided<[1], offset: 64>>, vector<16xf32>
  return
}

// One element less fits.
// CHECK-LABEL: func.func @no_small
// CHECK-NOT:     nontemporal = true
// CHECK:         func.return
func.func @no_small(%y: memref<1023xf32>, %v: vector<16xf32>, %i: index) {
  vector.store %v, %y[%i] : memref<1023xf32>, vector<16xf32>
  return
}

// What is read again should be in the cache.
// CHECK-LABEL: func.func @no_read
// CHECK-NOT:     nontemporal = true
// CHECK:         func.return
func.func @no_read(%y: memref<1024xf32>, %i: index, %j: index) {
  %v = vector.load %y[%i] : memref<1024xf32>, vector<16xf32>
  vector.store %v, %y[%j] : memref<1024xf32>, vector<16xf32>
  return
}

// Nothing is known of the size, and a buffer of the kernel's own is there to be read.
// CHECK-LABEL: func.func @no_size
// CHECK-NOT:     nontemporal = true
// CHECK:         func.return
func.func @no_size(%y: memref<?xf32>, %v: vector<16xf32>, %i: index) {
  vector.store %v, %y[%i] : memref<?xf32>, vector<16xf32>
  %b = memref.alloc() : memref<1024xf32>
  vector.store %v, %b[%i] : memref<1024xf32>, vector<16xf32>
  return
}

// Seventeen products for a store of a whole line.
// CHECK-LABEL: func.func @work
// CHECK:         vector.store %{{.*}} {nontemporal = true}
func.func @work(%y: memref<1024xf32>, %v: vector<16xf32>, %i: index) {
  %p0 = arith.mulf %v, %v : vector<16xf32>
  %p1 = arith.mulf %p0, %v : vector<16xf32>
  %p2 = arith.mulf %p1, %v : vector<16xf32>
  %p3 = arith.mulf %p2, %v : vector<16xf32>
  %p4 = arith.mulf %p3, %v : vector<16xf32>
  %p5 = arith.mulf %p4, %v : vector<16xf32>
  %p6 = arith.mulf %p5, %v : vector<16xf32>
  %p7 = arith.mulf %p6, %v : vector<16xf32>
  %p8 = arith.mulf %p7, %v : vector<16xf32>
  %p9 = arith.mulf %p8, %v : vector<16xf32>
  %p10 = arith.mulf %p9, %v : vector<16xf32>
  %p11 = arith.mulf %p10, %v : vector<16xf32>
  %p12 = arith.mulf %p11, %v : vector<16xf32>
  %p13 = arith.mulf %p12, %v : vector<16xf32>
  %p14 = arith.mulf %p13, %v : vector<16xf32>
  %p15 = arith.mulf %p14, %v : vector<16xf32>
  %p16 = arith.mulf %p15, %v : vector<16xf32>
  vector.store %p16, %y[%i] : memref<1024xf32>, vector<16xf32>
  return
}

// The same for half a line, whose other half would be waited for.
// CHECK-LABEL: func.func @no_work
// CHECK-NOT:     nontemporal = true
// CHECK:         func.return
func.func @no_work(%y: memref<1024xf32>, %v: vector<8xf32>, %i: index) {
  %p0 = arith.mulf %v, %v : vector<8xf32>
  %p1 = arith.mulf %p0, %v : vector<8xf32>
  %p2 = arith.mulf %p1, %v : vector<8xf32>
  %p3 = arith.mulf %p2, %v : vector<8xf32>
  %p4 = arith.mulf %p3, %v : vector<8xf32>
  %p5 = arith.mulf %p4, %v : vector<8xf32>
  %p6 = arith.mulf %p5, %v : vector<8xf32>
  %p7 = arith.mulf %p6, %v : vector<8xf32>
  %p8 = arith.mulf %p7, %v : vector<8xf32>
  %p9 = arith.mulf %p8, %v : vector<8xf32>
  %p10 = arith.mulf %p9, %v : vector<8xf32>
  %p11 = arith.mulf %p10, %v : vector<8xf32>
  %p12 = arith.mulf %p11, %v : vector<8xf32>
  %p13 = arith.mulf %p12, %v : vector<8xf32>
  %p14 = arith.mulf %p13, %v : vector<8xf32>
  %p15 = arith.mulf %p14, %v : vector<8xf32>
  %p16 = arith.mulf %p15, %v : vector<8xf32>
  vector.store %p16, %y[%i] : memref<1024xf32>, vector<8xf32>
  return
}
