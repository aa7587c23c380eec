// RUN: irees opt %s -p irees-gpu-lower-linalg-ext | filecheck %s

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
