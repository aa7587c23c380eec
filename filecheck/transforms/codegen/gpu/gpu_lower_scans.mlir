// RUN: irees opt %s -p 'irees-assign-target{facts="gpu.multiprocessors=100"},irees-gpu-lower-scans' | filecheck %s

// A row of 1000 is two tiles of 512: each thread loads four elements at once, lanes of a warp exchange what
// they combined, and warps meet in shared memory. What is past the end is neutral.
// CHECK-LABEL: func.func @row
// CHECK:         %[[SUMS:.*]] = memref.alloc() : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.forall (%{{.*}}) in (128) {
// CHECK:           arith.constant -0.000000e+00 : f32
// CHECK:           %{{.*}} = scf.for %{{.*}} iter_args(%[[CARRY:.*]] = %{{.*}}) -> (f32) {
// CHECK:             vector.load %x[{{.*}}] : memref<1x1000xf32>, vector<4xf32>
// CHECK-COUNT-4:     arith.select
// CHECK-COUNT-5:     gpu.shuffle xor
// CHECK:             memref.store %{{.*}}, %[[SUMS]]
// CHECK:             gpu.barrier
// CHECK-COUNT-4:     memref.load %[[SUMS]]
// CHECK:             gpu.barrier
// CHECK:             scf.if
// CHECK:               vector.store %{{.*}}, %y[{{.*}}] : memref<1x1000xf32>, vector<4xf32>
// CHECK:               scf.if
// CHECK:                 memref.store %{{.*}}, %s
// CHECK:         } {mapping = [#gpu.thread<linear_dim_0>]}
// CHECK-NEXT:    gpu.barrier
func.func @row(%x: memref<1x1000xf32>, %y: memref<1x1000xf32>, %s: memref<1xf32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.scan dimension(1) inclusive(true)
        ins(%x : memref<1x1000xf32>) outs(%y, %s : memref<1x1000xf32>, memref<1xf32>) {
    ^bb0(%a: f32, %c: f32):
      %p = arith.addf %a, %c : f32
      iree_linalg_ext.yield %p : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A long row has 128 parts of a tile of 1024, one per workgroup, in two kernels: the first combines each part
// and stores what the row starts with, the second starts where the parts before have ended.
// CHECK-LABEL: func.func @parts
// CHECK:         %[[TOTALS:.*]] = memref.alloc() : memref<201xi32>
// CHECK:         scf.forall (%{{.*}}) in (128) {
// CHECK:           scf.forall (%{{.*}}) in (256) {
// CHECK-COUNT-5:     gpu.shuffle xor
// CHECK:             memref.store %{{.*}}, %[[TOTALS]]
// CHECK:             memref.load %s
// CHECK:             memref.store %{{.*}}, %[[TOTALS]]
// CHECK:         } {{.*}}mapping = [#gpu.block<linear_dim_0>]{{.*}}
// CHECK:         scf.forall (%{{.*}}) in (128) {
// CHECK:           scf.forall (%{{.*}}) in (256) {
// CHECK:             memref.load %[[TOTALS]]
// CHECK-COUNT-10:    gpu.shuffle xor
// CHECK-NOT:         memref.load %s
// CHECK:             vector.store %{{.*}}, %y
// CHECK:         } {{.*}}mapping = [#gpu.block<linear_dim_0>]{{.*}}
// CHECK-NOT:     scf.forall
// CHECK:         return
func.func @parts(%x: memref<1x131072xi32>, %y: memref<1x131072xi32>, %s: memref<1xi32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.scan dimension(1) inclusive(false)
        ins(%x : memref<1x131072xi32>) outs(%y, %s : memref<1x131072xi32>, memref<1xi32>) {
    ^bb0(%a: i32, %c: i32):
      %p = arith.addi %a, %c : i32
      iree_linalg_ext.yield %p : i32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Nobody knows how long the rows are, nor how many there are: a workgroup scans each in tiles.
// CHECK-LABEL: func.func @dynamic
// CHECK:         scf.forall (%{{.*}}) in (%n) {
// CHECK:           scf.forall (%{{.*}}) in (128) {
// CHECK:             memref.load %{{.*}} : memref<1xf32, strided
// CHECK:             scf.for
// CHECK-COUNT-4:       memref.load %{{.*}} : memref<1x?xf32, strided<[?, 1], offset: ?>>
// CHECK-COUNT-5:       gpu.shuffle xor
func.func @dynamic(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %s: memref<?xf32>, %n: index, %m: index) {
  scf.forall (%b) in (%n) {
    %u = memref.subview %x[%b, 0] [1, %m] [1, 1] : memref<?x?xf32> to memref<1x?xf32, strided<[?, 1], offset: ?>>
    %v = memref.subview %y[%b, 0] [1, %m] [1, 1] : memref<?x?xf32> to memref<1x?xf32, strided<[?, 1], offset: ?>>
    %t = memref.subview %s[%b] [1] [1] : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
    iree_linalg_ext.scan dimension(1) inclusive(false)
        ins(%u : memref<1x?xf32, strided<[?, 1], offset: ?>>)
        outs(%v, %t : memref<1x?xf32, strided<[?, 1], offset: ?>>, memref<1xf32, strided<[1], offset: ?>>) {
    ^bb0(%a: f32, %c: f32):
      %p = arith.addf %a, %c : f32
      iree_linalg_ext.yield %p : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Subtraction is not associative: one thread scans the row in order.
// CHECK-LABEL: func.func @no_order
// CHECK:         scf.forall (%{{.*}}) in (1) {
// CHECK:           scf.forall (%{{.*}}) in (1) {
// CHECK:             scf.for
// CHECK-NOT:         gpu.shuffle
// CHECK:               arith.subi
// CHECK:           } {mapping = [#gpu.thread<linear_dim_0>]}
// CHECK-NEXT:      gpu.barrier
func.func @no_order(%x: memref<1x1000xi32>, %y: memref<1x1000xi32>, %s: memref<1xi32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.scan dimension(1) inclusive(true)
        ins(%x : memref<1x1000xi32>) outs(%y, %s : memref<1x1000xi32>, memref<1xi32>) {
    ^bb0(%a: i32, %c: i32):
      %p = arith.subi %a, %c : i32
      iree_linalg_ext.yield %p : i32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Adjacent threads read adjacent columns, so each thread scans one.
// CHECK-LABEL: func.func @no_columns
// CHECK:         scf.forall (%{{.*}}) in (64) {
// CHECK:           scf.for
// CHECK-NOT:         gpu.shuffle
// CHECK:           } {mapping = [#gpu.thread<linear_dim_0>]}
func.func @no_columns(%x: memref<1000x64xi32>, %y: memref<1000x64xi32>, %s: memref<64xi32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.scan dimension(0) inclusive(true)
        ins(%x : memref<1000x64xi32>) outs(%y, %s : memref<1000x64xi32>, memref<64xi32>) {
    ^bb0(%a: i32, %c: i32):
      %p = arith.addi %a, %c : i32
      iree_linalg_ext.yield %p : i32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
