// RUN: irees opt %s -p irees-gpu-lower-linalg-ext | filecheck %s

// Short enough for the registers of a workgroup: `irees-gpu-lower-sorts` sorts it by digits.
// CHECK-LABEL: func.func @sort
// CHECK:         iree_linalg_ext.sort
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

// Too long for that, and the workgroup does something else. By digits, four of them: each warp counts
// them in its part, then all move. What is sorted follows by the origins of the keys, the numbers
// themselves too.
// CHECK-LABEL: func.func @long
// CHECK:         %[[KEYS:.*]] = memref.alloc() : memref<40000xi32>
// CHECK-NEXT:    %[[FROM:.*]] = memref.alloc() : memref<40000xi16>
// CHECK-NEXT:    %[[COPY:.*]] = memref.alloc() : memref<20000xf32>
// CHECK-NEXT:    memref.alloc() : memref<20000xi64>
// CHECK:         scf.forall (%{{.*}}) in (20000) {
// CHECK:         gpu.barrier
// CHECK:         %[[PASSES:.*]] = arith.constant 4 : index
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[PASSES]] step %{{.*}} iter_args(%[[START:.*]] = %{{.*}}) -> (index) {
// CHECK:           scf.forall (%{{.*}}) in (256) {
// CHECK:             nvvm.match.sync any
// CHECK:             scf.if
// CHECK:               math.ctpop
// CHECK:             nvvm.bar.warp.sync
// CHECK:           scf.forall (%{{.*}}) in (256) {
// CHECK-COUNT-5:     gpu.shuffle xor
// CHECK:             gpu.barrier
// CHECK:           scf.if
// CHECK:             scf.forall (%{{.*}}) in (256) {
// CHECK:               memref.store %{{.*}}, %[[KEYS]]
// CHECK:               memref.store %{{.*}}, %[[FROM]]
// CHECK:         scf.forall (%{{.*}}) in (20000) {
// CHECK:           memref.load %[[COPY]]
// CHECK:       threads = 256
func.func @long(%x: memref<20000xf32>, %n: memref<20000xi64>, %y: memref<1xf32>) {
  scf.forall (%b) in (1) {
    %z = arith.constant 0.0 : f32
    memref.store %z, %y[%b] : memref<1xf32>
    iree_linalg_ext.sort dimension(0) outs(%x, %n : memref<20000xf32>, memref<20000xi64>) {
    ^bb0(%a: f32, %c: f32, %d: i64, %e: i64):
      %p = arith.cmpf ole, %a, %c : f32
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A network of six stages over 50 keys, 32 exchanges at a time: fewer turns than four digits.
// CHECK-LABEL: func.func @short
// CHECK:         %[[KEYS:.*]] = memref.alloc() : memref<50xf64>
// CHECK-NEXT:    %[[FROM:.*]] = memref.alloc() : memref<50xi32>
// CHECK-NEXT:    %[[COPY:.*]] = memref.alloc() : memref<50xi64>
// CHECK:         scf.forall (%{{.*}}) in (50) {
// CHECK:         gpu.barrier
// CHECK:         scf.for %[[S:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:           scf.forall (%{{.*}}) in (32) {
// CHECK:             arith.cmpf ole
// CHECK:           gpu.barrier
// CHECK:           scf.for %{{.*}} = %{{.*}} to %[[S]] step
// CHECK:             scf.forall (%{{.*}}) in (32) {
// CHECK:         scf.forall (%{{.*}}) in (50) {
// CHECK:           memref.load %[[COPY]]
func.func @short(%x: memref<50xf64>, %n: memref<50xi64>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.sort dimension(0) outs(%x, %n : memref<50xf64>, memref<50xi64>) {
    ^bb0(%a: f64, %c: f64, %d: i64, %e: i64):
      %p = arith.cmpf ole, %a, %c : f64
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Of a row of unknown length, which may be a long one, counts have 64 bits, and what is moved is
// not in shared memory. The workgroup does something else, too.
// CHECK-LABEL: func.func @dynamic
// CHECK:         memref.alloc() : memref<8x256xi64, #gpu.address_space<workgroup>>
// CHECK:         memref.alloc(%{{.*}}) : memref<?xi32>
// CHECK-NEXT:    memref.alloc(%{{.*}}) : memref<?xi64>
// CHECK:         nvvm.match.sync any
func.func @dynamic(%x: memref<?xi32>, %y: memref<1xf32>) {
  scf.forall (%b) in (1) {
    %z = arith.constant 0.0 : f32
    memref.store %z, %y[%b] : memref<1xf32>
    iree_linalg_ext.sort dimension(0) outs(%x : memref<?xi32>) {
    ^bb0(%a: i32, %c: i32):
      %p = arith.cmpi sge, %a, %c : i32
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Four bits are no digit: a network, of which the number of stages is computed.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT:     nvvm.match.sync
// CHECK:         math.ctlz
// CHECK:         scf.for
// CHECK:           gpu.barrier
func.func @narrow(%x: memref<?xi4>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.sort dimension(0) outs(%x : memref<?xi4>) {
    ^bb0(%a: i4, %c: i4):
      %p = arith.cmpi sge, %a, %c : i4
      iree_linalg_ext.yield %p : i1
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

// The first 100 of 4000, which are read where they are: each digit says where the last of those is.
// Then those that are smaller, and of the equal ones the first, are taken and sorted.
// CHECK-LABEL: func.func @select
// CHECK:         %[[COUNTS:.*]] = memref.alloc() : memref<8x256xi32, #gpu.address_space<workgroup>>
// CHECK-NOT:     memref<4000xi32
// CHECK:         memref.alloc() : memref<{{.*}}xi32, #gpu.address_space<workgroup>>
// CHECK:         scf.for %{{.*}} iter_args(%[[KNOWN:.*]] = %{{.*}}, %[[BITS:.*]] = %{{.*}}, %[[LEFT:.*]] = %{{.*}}) -> (i32, i32, i32) {
// CHECK:             memref.load %x
// CHECK:             arith.andi %{{.*}}, %[[BITS]] : i32
// CHECK-NEXT:        arith.cmpi eq, %{{.*}}, %[[KNOWN]] : i32
// CHECK:             nvvm.match.sync any
// CHECK:             arith.cmpi slt, %{{.*}}, %[[LEFT]] : i32
// CHECK-NEXT:        arith.cmpi sle, %[[LEFT]], %{{.*}} : i32
// CHECK:         arith.cmpi ule
// CHECK:         scf.forall (%{{.*}}) in (2) {
// CHECK:         arith.cmpi ule
// CHECK:         scf.forall (%[[I:.*]]) in (100) {
// CHECK:           memref.load %x
func.func @select(%x: memref<4000xf32>, %v: memref<100xf32>, %i: memref<100xi32>) {
  scf.forall (%w) in (1) {
    iree_linalg_ext.topk_v2 dimension(0) is_sorted ins(%x : memref<4000xf32>) outs(%v, %i : memref<100xf32>, memref<100xi32>) {
    ^bb0(%a: f32, %b: f32):
      %p = arith.cmpf oge, %a, %b : f32
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// The blocks of a product say how many threads there are: a network takes any number.
// CHECK-LABEL: func.func @no_digits
// CHECK:         scf.forall (%{{.*}}) in (1000) {
// CHECK-NOT:     nvvm.match.sync
// CHECK:         linalg.generic
// CHECK-NOT:   threads =
func.func @no_digits(%x: memref<1000xf32>, %a: memref<8x8xf32>, %c: memref<8x8xf32>) {
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

// Two long rows of a workgroup: it sorts one after the other.
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
