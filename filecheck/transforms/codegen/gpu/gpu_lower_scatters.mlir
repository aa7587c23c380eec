// RUN: irees opt %s -p 'irees-assign-target{facts="gpu.multiprocessors=4"},irees-gpu-lower-scatters' | filecheck %s

// Each update has a place of its own: a thread for each point of each of them.
// CHECK-LABEL: func.func @unique
// CHECK:         scf.forall (%{{.*}}) in (128) {
// CHECK:           scf.forall
// CHECK-NOT:         scf.for
// CHECK:             memref.load %i
// CHECK:             memref.store %{{.*}}, %t
// CHECK:         } {threads = 256 : i64
func.func @unique(%t: memref<4096x32xf32>, %u: memref<1024x32xf32>, %i: memref<1024x1xi32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.scatter dimension_map = [0] unique_indices(true)
        ins(%u, %i : memref<1024x32xf32>, memref<1024x1xi32>) outs(%t : memref<4096x32xf32>) {
    ^bb0(%a: f32, %c: f32):
      %p = arith.addf %a, %c : f32
      iree_linalg_ext.yield %p : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Updates may meet, points of a slice do not: few updates, in their order.
// CHECK-LABEL: func.func @columns
// CHECK:         scf.forall (%{{.*}}) in (512) {
// CHECK:           scf.forall
// CHECK:             scf.for
// CHECK:               memref.load %i
// CHECK:         } {threads = 32 : i64
func.func @columns(%t: memref<64x?xf32>, %u: memref<8x16384xf32>, %i: memref<8x1xi32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.scatter dimension_map = [0] unique_indices(false)
        ins(%u, %i : memref<8x16384xf32>, memref<8x1xi32>) outs(%t : memref<64x?xf32>) {
    ^bb0(%a: f32, %c: f32):
      %p = arith.addf %a, %c : f32
      iree_linalg_ext.yield %p : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Many may meet: by all workgroups sorted by the one digit of their places, then a thread for each
// place does what is for it, in its order.
// CHECK-LABEL: func.func @elements
// CHECK:         %[[KEYS:.*]] = memref.alloc({{.*}}) : memref<?xi8>
// CHECK:         scf.forall
// CHECK:           memref.load %i
// CHECK:           arith.cmpi ult
// CHECK:           arith.select
// CHECK:           memref.store %{{.*}}, %[[KEYS]]
// CHECK:         scf.forall (%{{.*}}) in (1) {
// CHECK:           iree_linalg_ext.sort {irees.bits = 7 : i64} dimension(0) positions([1]) ins(%[[KEYS]] : memref<?xi8>) outs(%[[SORTED:.*]], %{{.*}} : memref<?xi8>, memref<?xi64>)
// CHECK:             arith.cmpi ule
// CHECK:         scf.forall
// CHECK:           arith.cmpi ne
// CHECK:           scf.if
// CHECK:             memref.load %t
// CHECK:             scf.while
// CHECK:               memref.load %[[SORTED]]
// CHECK:               arith.addf
// CHECK:             memref.store %{{.*}}, %t
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

// Places of which there may be few, which is known late, are sorted by fewer digits then; of updates
// that replace what was there only the last is read.
// CHECK-LABEL: func.func @places
// CHECK:         scf.forall
// CHECK:         scf.if
// CHECK:           iree_linalg_ext.sort {irees.bits = 24 : i64}
// CHECK:         } else {
// CHECK:           iree_linalg_ext.sort {irees.bits = 64 : i64}
// CHECK:         scf.forall
// CHECK-NOT:       scf.while
// CHECK:           arith.cmpi ne
// CHECK:           scf.if
// CHECK:             arith.divui
// CHECK:             memref.store %{{.*}}, %t
func.func @places(%t: memref<?x?xf32>, %u: memref<?xf32>, %i: memref<?x2xi32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.scatter dimension_map = [0, 1] unique_indices(false)
        ins(%u, %i : memref<?xf32>, memref<?x2xi32>) outs(%t : memref<?x?xf32>) {
    ^bb0(%a: f32, %c: f32):
      iree_linalg_ext.yield %a : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A workgroup that does something else too keeps its scatter.
// CHECK-LABEL: func.func @no_kernels
// CHECK:         scf.forall (%{{.*}}) in (1) {
// CHECK:           memref.store %v, %t
// CHECK:           nvvm.match.sync any
// CHECK:           scf.while
func.func @no_kernels(%t: memref<64xf32>, %u: memref<?xf32>, %i: memref<?x1xi32>, %v: f32) {
  scf.forall (%b) in (1) {
    memref.store %v, %t[%b] : memref<64xf32>
    iree_linalg_ext.scatter dimension_map = [0] unique_indices(false)
        ins(%u, %i : memref<?xf32>, memref<?x1xi32>) outs(%t : memref<64xf32>) {
    ^bb0(%a: f32, %c: f32):
      %p = arith.addf %a, %c : f32
      iree_linalg_ext.yield %p : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// So does one of slices, whose points are dealt out to its threads: updates that meet stay in order.
// CHECK-LABEL: func.func @points
// CHECK:         scf.forall (%{{.*}}) in (1) {
// CHECK:           memref.store %v, %t
// CHECK:           scf.forall
// CHECK:             scf.for
// CHECK:               memref.load %i
func.func @points(%t: memref<64x8xf32>, %u: memref<3x8xf32>, %i: memref<3x1xi32>, %v: f32) {
  scf.forall (%b) in (1) {
    memref.store %v, %t[%b, %b] : memref<64x8xf32>
    iree_linalg_ext.scatter dimension_map = [0] unique_indices(false)
        ins(%u, %i : memref<3x8xf32>, memref<3x1xi32>) outs(%t : memref<64x8xf32>) {
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
