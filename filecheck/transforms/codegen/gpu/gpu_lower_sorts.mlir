// RUN: irees opt %s -p 'irees-assign-target{target="cuda:sm_90"},irees-gpu-lower-sorts' | filecheck %s

// A row in the registers of 256 threads, four elements each. Those past the end have the last digit.
// CHECK-LABEL: func.func @row
// CHECK:         scf.forall (%{{.*}}) in (64) {
// CHECK:           %[[COUNTS:.*]] = memref.alloc() : memref<8x256xi32, #gpu.address_space<workgroup>>
// CHECK:           %[[WORDS:.*]] = memref.alloc() : memref<1024xi32, #gpu.address_space<workgroup>>
// CHECK-NEXT:      %[[FROM:.*]] = memref.alloc() : memref<1024xi32, #gpu.address_space<workgroup>>
// CHECK:           scf.forall (%{{.*}}) in (256) {
// CHECK:             %[[MINE:.*]] = memref.alloca() : memref<4xi32, #gpu.address_space<private>>
// CHECK:             scf.for
// CHECK:               memref.load
// CHECK:             } {irees.unroll}
// CHECK:             scf.for
// CHECK:               nvvm.match.sync any {{.*}} {irees.bits = 8 : i32}
// CHECK:               nvvm.bar.warp.sync
// CHECK:               memref.store %{{.*}}, %[[COUNTS]]
// CHECK:               gpu.barrier
// CHECK-COUNT-5:       gpu.shuffle xor
// CHECK:               gpu.barrier
// CHECK:               gpu.barrier
// CHECK:               scf.if
// CHECK:                 memref.store %{{.*}}, %[[WORDS]]
// CHECK:                 memref.store %{{.*}}, %[[FROM]]
// CHECK:                 gpu.barrier
// CHECK-NOT:         memref.load %{{.*}} : memref<{{.*}}xi64
// CHECK:             memref.store %{{.*}} : memref<1x1000xi64
// CHECK:         threads = 256
func.func @row(%x: memref<64x1000xf32>, %v: memref<64x1000xf32>, %n: memref<64x1000xi64>) {
  scf.forall (%b) in (64) {
    %s = memref.subview %x[%b, 0] [1, 1000] [1, 1] : memref<64x1000xf32> to memref<1x1000xf32, strided<[1000, 1], offset: ?>>
    %t = memref.subview %v[%b, 0] [1, 1000] [1, 1] : memref<64x1000xf32> to memref<1x1000xf32, strided<[1000, 1], offset: ?>>
    %u = memref.subview %n[%b, 0] [1, 1000] [1, 1] : memref<64x1000xi64> to memref<1x1000xi64, strided<[1000, 1], offset: ?>>
    iree_linalg_ext.sort dimension(1) positions([1]) ins(%s : memref<1x1000xf32, strided<[1000, 1], offset: ?>>)
        outs(%t, %u : memref<1x1000xf32, strided<[1000, 1], offset: ?>>, memref<1x1000xi64, strided<[1000, 1], offset: ?>>) {
    ^bb0(%a: f32, %c: f32, %d: i64, %e: i64):
      %p = arith.cmpf ole, %a, %c : f32
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A long row: each digit is counted in tiles, scanned and moved. The first and the last of the two
// digits are those of the operands. What follows the keys is copied, because the sort is in place.
// CHECK-LABEL: func.func @wide
// CHECK:         memref.alloc() : memref<20000xi16>
// CHECK-NEXT:    memref.alloc() : memref<20000xi32>
// CHECK:         %[[COPY:.*]] = memref.alloc() : memref<20000xi64>
// CHECK:         memref.store %{{.*}}, %[[COPY]]
// CHECK:         memref.atomic_rmw addi
// CHECK:         scf.forall (%{{.*}}) in (256) {
// CHECK:         nvvm.match.sync
// CHECK:         threads = 256 : i64, nvvm.minctasm = 3
// CHECK:         memref.atomic_rmw addi
// CHECK:         scf.forall (%{{.*}}) in (256) {
// CHECK:         nvvm.match.sync
// CHECK:         memref.load %[[COPY]]
// CHECK:         threads = 256 : i64, nvvm.minctasm = 3
// CHECK-NOT:     scf.forall
func.func @wide(%x: memref<20000xf16>, %n: memref<20000xi64>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.sort dimension(0) outs(%x, %n : memref<20000xf16>, memref<20000xi64>) {
    ^bb0(%a: f16, %c: f16, %d: i64, %e: i64):
      %p = arith.cmpf oge, %a, %c : f16
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Rows of unknown length, and any number of them: four digits, of which two are in a loop.
// CHECK-LABEL: func.func @dynamic
// CHECK:         memref.alloc(%{{.*}}) : memref<?xi64>
// CHECK:         memref.atomic_rmw addi
// CHECK:         scf.for
// CHECK:           memref.atomic_rmw addi
// CHECK:         memref.atomic_rmw addi
// CHECK-NOT:     memref.atomic_rmw
func.func @dynamic(%n: index, %x: memref<?x?xi32>, %y: memref<?x?xi32>) {
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c1 : memref<?x?xi32>
  scf.forall (%b) in (%n) {
    %s = memref.subview %x[%b, 0] [1, %m] [1, 1] : memref<?x?xi32> to memref<1x?xi32, strided<[?, 1], offset: ?>>
    %t = memref.subview %y[%b, 0] [1, %m] [1, 1] : memref<?x?xi32> to memref<1x?xi32, strided<[?, 1], offset: ?>>
    iree_linalg_ext.sort dimension(1) ins(%s : memref<1x?xi32, strided<[?, 1], offset: ?>>) outs(%t : memref<1x?xi32, strided<[?, 1], offset: ?>>) {
    ^bb0(%a: i32, %c: i32):
      %p = arith.cmpi sge, %a, %c : i32
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A comparator that is not one of numbers need not be an order.
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

// The blocks of a product fix the number of threads.
// CHECK-LABEL: func.func @no_threads
// CHECK:         iree_linalg_ext.sort
func.func @no_threads(%x: memref<1000xf32>, %a: memref<8x8xf32>, %c: memref<8x8xf32>) {
  scf.forall (%w) in (1) {
    iree_linalg_ext.sort dimension(0) outs(%x : memref<1000xf32>) {
    ^bb0(%p: f32, %q: f32):
      %r = arith.cmpf ole, %p, %q : f32
      iree_linalg_ext.yield %r : i1
    }
    linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %a : memref<8x8xf32>, memref<8x8xf32>) outs(%c : memref<8x8xf32>)
        attrs = {lowering_config = #iree_codegen.lowering_config<{block = [8, 64, 1, 4, 32]}>} {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
