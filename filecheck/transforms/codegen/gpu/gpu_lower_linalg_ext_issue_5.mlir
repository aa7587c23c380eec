// RUN: irees opt %s -p "irees-gpu-lower-linalg-ext{workgroups=4}" | filecheck %s

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

// Single elements may meet: sorted by their places, those that do are for one thread, in their order.
// CHECK-LABEL: func.func @elements
// CHECK:         %[[KEYS:.*]] = memref.alloc({{.*}}) : memref<?xi8>
// CHECK:         scf.forall
// CHECK:           memref.load %i
// CHECK:           arith.cmpi ult
// CHECK:           arith.select
// CHECK:         nvvm.match.sync any
// CHECK:         scf.forall
// CHECK:           arith.cmpi ne
// CHECK:           scf.if
// CHECK:             scf.while
// CHECK:               memref.load %[[KEYS]]
// CHECK:             arith.addf
func.func @elements(%t: memref<64xf32>, %u: memref<?xf32>, %i: memref<?x1xi32>) {
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

// Four of them are done by one thread before they were sorted.
// CHECK-LABEL: func.func @no_scatter
// CHECK:         iree_linalg_ext.scatter
func.func @no_scatter(%t: memref<64xf32>, %u: memref<4xf32>, %i: memref<4x1xi32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.scatter dimension_map = [0] unique_indices(false)
        ins(%u, %i : memref<4xf32>, memref<4x1xi32>) outs(%t : memref<64xf32>) {
    ^bb0(%a: f32, %c: f32):
      %p = arith.addf %a, %c : f32
      iree_linalg_ext.yield %p : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// One row for eight workgroups: each counts the digits of its part, one adds them up, each moves.
// CHECK-LABEL: func.func @wide
// CHECK:         %[[KEYS:.*]] = memref.alloc() : memref<400000xi32>
// CHECK:         %[[COUNTS:.*]] = memref.alloc() : memref<8x256xi32>
// CHECK-NEXT:    %[[STARTS:.*]] = memref.alloc() : memref<256xi32>
// CHECK:         scf.forall (%{{.*}}) in (8) {
// CHECK:           memref.store %{{.*}}, %[[KEYS]]
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:           scf.forall (%{{.*}}) in (8) {
// CHECK:             nvvm.match.sync any
// CHECK:             memref.store %{{.*}}, %[[COUNTS]]
// CHECK:           nvvm.minctasm = 1 : i64
// CHECK:           scf.forall (%{{.*}}) in (1) {
// CHECK:             memref.store %{{.*}}, %[[STARTS]]
// CHECK:           scf.forall (%{{.*}}) in (8) {
// CHECK:             memref.store %{{.*}}, %[[KEYS]]
// CHECK:         scf.forall (%{{.*}}) in (8) {
// CHECK:           memref.store %{{.*}}, %x
func.func @wide(%x: memref<200000xf32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.sort dimension(0) outs(%x : memref<200000xf32>) {
    ^bb0(%a: f32, %c: f32):
      %p = arith.cmpf ole, %a, %c : f32
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Two rows are for a workgroup each, which other passes see to.
// CHECK-LABEL: func.func @no_wide
// CHECK:         scf.forall (%{{.*}}) in (1) {
// CHECK:           nvvm.match.sync any
func.func @no_wide(%x: memref<2x200000xf32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.sort dimension(1) outs(%x : memref<2x200000xf32>) {
    ^bb0(%a: f32, %c: f32):
      %p = arith.cmpf ole, %a, %c : f32
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
