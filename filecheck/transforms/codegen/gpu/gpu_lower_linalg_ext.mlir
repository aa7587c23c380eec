// RUN: irees opt %s -p irees-gpu-lower-linalg-ext | filecheck %s

// A network of ten stages over 1000 keys, 512 exchanges at a time; what else is sorted follows by the
// origins of the keys.
// CHECK-LABEL: func.func @sort
// CHECK:         %[[KEYS:.*]] = memref.alloc() : memref<1000xf32>
// CHECK-NEXT:    %[[FROM:.*]] = memref.alloc() : memref<1000xi32>
// CHECK-NEXT:    %[[COPY:.*]] = memref.alloc() : memref<1000xi64>
// CHECK:         scf.forall (%{{.*}}) in (1000) {
// CHECK:         gpu.barrier
// CHECK:         scf.for %[[S:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:           scf.forall (%{{.*}}) in (512) {
// CHECK:             arith.cmpf ole
// CHECK:           gpu.barrier
// CHECK:           scf.for %{{.*}} = %{{.*}} to %[[S]] step
// CHECK:             scf.forall (%{{.*}}) in (512) {
// CHECK:         scf.forall (%{{.*}}) in (1000) {
// CHECK:           memref.load %[[COPY]]
// CHECK:       threads = 256
func.func @sort(%x: memref<1000xf32>, %n: memref<1000xi64>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.sort dimension(0) outs(%x, %n : memref<1000xf32>, memref<1000xi64>) {
    ^bb0(%a: f32, %c: f32, %d: i64, %e: i64):
      %p = arith.cmpf ole, %a, %c : f32
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Of a row of unknown length the number of stages is computed.
// CHECK-LABEL: func.func @dynamic
// CHECK:         math.ctlz
// CHECK:         scf.for
// CHECK:           gpu.barrier
func.func @dynamic(%x: memref<?xi32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.sort dimension(0) outs(%x : memref<?xi32>) {
    ^bb0(%a: i32, %c: i32):
      %p = arith.cmpi sge, %a, %c : i32
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A running sum for each of the rows.
// CHECK-LABEL: func.func @scan
// CHECK:         scf.forall (%{{.*}}) in (64) {
// CHECK:           scf.for
// CHECK:         } {mapping = [#gpu.thread<linear_dim_0>]}
func.func @scan(%x: memref<64x100xf32>, %y: memref<64x100xf32>, %s: memref<64xf32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.scan dimension(1) inclusive(true)
        ins(%x : memref<64x100xf32>) outs(%y, %s : memref<64x100xf32>, memref<64xf32>) {
    ^bb0(%a: f32, %c: f32):
      %p = arith.addf %a, %c : f32
      iree_linalg_ext.yield %p : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Updates may meet, columns of them do not.
// CHECK-LABEL: func.func @columns
// CHECK:         scf.forall (%{{.*}}) in (32) {
// CHECK-NEXT:      arith.constant
// CHECK:           scf.for
// CHECK:         } {mapping = [#gpu.thread<linear_dim_0>]}
func.func @columns(%t: memref<64x32xf32>, %u: memref<?x32xf32>, %i: memref<?x1xi32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.scatter dimension_map = [0] unique_indices(false)
        ins(%u, %i : memref<?x32xf32>, memref<?x1xi32>) outs(%t : memref<64x32xf32>) {
    ^bb0(%a: f32, %c: f32):
      %p = arith.addf %a, %c : f32
      iree_linalg_ext.yield %p : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Nobody knows that this is an order.
// CHECK-LABEL: func.func @no_order
// CHECK:         iree_linalg_ext.sort
func.func @no_order(%x: memref<1000xi32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.sort dimension(0) outs(%x : memref<1000xi32>) {
    ^bb0(%a: i32, %c: i32):
      %q = arith.addi %a, %c : i32
      %p = arith.cmpi sge, %q, %c : i32
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Single elements may meet.
// CHECK-LABEL: func.func @no_scatter
// CHECK:         iree_linalg_ext.scatter
func.func @no_scatter(%t: memref<64xf32>, %u: memref<?xf32>, %i: memref<?x1xi32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.scatter dimension_map = [0] unique_indices(false)
        ins(%u, %i : memref<?xf32>, memref<?x1xi32>) outs(%t : memref<64xf32>) {
    ^bb0(%a: f32, %c: f32):
      %p = arith.addf %a, %c : f32
      iree_linalg_ext.yield %p : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// The first 8 of 1000: runs of 8 are sorted, three stages; then seven rounds keep the better half of two.
// CHECK-LABEL: func.func @first
// CHECK:         scf.forall (%{{.*}}) in (1000) {
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:           scf.forall (%{{.*}}) in (512) {
// CHECK:         %[[ROUNDS:.*]] = arith.constant 7 : index
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[ROUNDS]] step
// CHECK:           scf.forall (%{{.*}}) in (%{{.*}}) {
// CHECK:           scf.for
// CHECK:         scf.forall (%{{.*}}) in (8) {
func.func @first(%x: memref<1000xf32>, %v: memref<8xf32>, %i: memref<8xi32>) {
  scf.forall (%w) in (1) {
    iree_linalg_ext.topk_v2 dimension(0) is_sorted ins(%x : memref<1000xf32>) outs(%v, %i : memref<8xf32>, memref<8xi32>) {
    ^bb0(%a: f32, %b: f32):
      %p = arith.cmpf oge, %a, %b : f32
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
