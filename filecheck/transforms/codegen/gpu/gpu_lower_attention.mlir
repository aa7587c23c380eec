// RUN: irees opt %s -p irees-gpu-lower-attention | filecheck %s
// RUN: irees opt %s -p 'irees-assign-target{facts="gpu.asynchronous_copies=true gpu.matrix_kinds=f16"},irees-gpu-lower-attention' | filecheck %s --check-prefix=REGISTERS
// RUN: irees opt %s -p 'irees-assign-target{target="cuda:sm_90"},irees-gpu-lower-attention' | filecheck %s --check-prefix=WARPGROUPS

#q = affine_map<(b, m, d, k, n) -> (b, m, d)>
#k = affine_map<(b, m, d, k, n) -> (b, k, d)>
#v = affine_map<(b, m, d, k, n) -> (b, k, n)>
#s = affine_map<(b, m, d, k, n) -> ()>
#o = affine_map<(b, m, d, k, n) -> (b, m, n)>

// Scores of 64 keys at a time; what is left of 100 of them is done after the loop.
// CHECK-LABEL: func.func @attention
// CHECK-DAG:     %[[R:.*]] = memref.alloc() : memref<1x64x16xf32>
// CHECK-DAG:     %{{.*}} = memref.alloc() : memref<1x64x64xf32>
// CHECK:         scf.for
// CHECK:           %[[K:.*]] = memref.subview %k[0, %{{.*}}, 0] [1, 64, 32]
// CHECK:           %[[V:.*]] = memref.subview %v[0, %{{.*}}, 0] [1, 64, 16]
// CHECK:           linalg.generic {{.*}} ins(%q, %[[K]]
// CHECK:           arith.maxnumf
// CHECK:           math.exp2 {{.*}} fastmath<afn>
// CHECK:           linalg.generic {{.*}} ins(%{{.*}}, %[[V]] {{.*}} outs(%[[R]]
// CHECK:         }
// CHECK:         memref.subview %k[0, 64, 0] [1, 36, 32]
// CHECK:         arith.divf
// CHECK:       shared_bytes = 49152
func.func @attention(%q: memref<1x64x32xf32>, %k: memref<1x100x32xf32>, %v: memref<1x100x16xf32>, %o: memref<1x64x16xf32>) {
  %scale = arith.constant 0.25 : f32
  scf.forall (%w) in (1) {
    iree_linalg_ext.attention {indexing_maps = [#q, #k, #v, #s, #o]}
        ins(%q, %k, %v, %scale : memref<1x64x32xf32>, memref<1x100x32xf32>, memref<1x100x16xf32>, f32)
        outs(%o : memref<1x64x16xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// The last rows of queries may be fewer than a tile holds: buffers have room for a whole one.
// CHECK-LABEL: func.func @rows
// CHECK:         %[[M:.*]] = memref.alloc() : memref<1x64xf32>
// CHECK:         memref.subview %[[M]][0, 0] [1, %{{.*}}] [1, 1]
func.func @rows(%q: memref<1x?x32xf32>, %k: memref<1x64x32xf32>, %v: memref<1x64x16xf32>, %o: memref<1x?x16xf32>) {
  %scale = arith.constant 0.25 : f32
  scf.forall (%w) in (1) {
    iree_linalg_ext.attention {indexing_maps = [#q, #k, #v, #s, #o]}
        ins(%q, %k, %v, %scale : memref<1x?x32xf32>, memref<1x64x32xf32>, memref<1x64x16xf32>, f32)
        outs(%o : memref<1x?x16xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// No workgroup, no threads to do it.
// CHECK-LABEL: func.func @no_workgroup
// CHECK:         iree_linalg_ext.attention
func.func @no_workgroup(%q: memref<1x64x32xf32>, %k: memref<1x64x32xf32>, %v: memref<1x64x16xf32>, %o: memref<1x64x16xf32>) {
  %scale = arith.constant 0.25 : f32
  iree_linalg_ext.attention {indexing_maps = [#q, #k, #v, #s, #o]}
      ins(%q, %k, %v, %scale : memref<1x64x32xf32>, memref<1x64x32xf32>, memref<1x64x16xf32>, f32)
      outs(%o : memref<1x64x16xf32>) {
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  }
  return
}

// Halves in registers: keys and values are copied while others are in use, and the sums of one product
// are what the other takes. Features that are no whole instructions go the way of the others.
// REGISTERS-LABEL: func.func @halves
// REGISTERS:         memref.alloc() : memref<2x64x40xf16, #gpu.address_space<workgroup>>
// REGISTERS-NEXT:    memref.alloc() : memref<2x64x24xf16, #gpu.address_space<workgroup>>
// REGISTERS-NOT:     memref.alloc
// REGISTERS:         scf.forall (%{{.*}}) in (128) {
// REGISTERS:           nvgpu.device_async_create_group
// REGISTERS:           scf.for
// REGISTERS:             nvgpu.device_async_wait
// REGISTERS-NEXT:        gpu.barrier
// REGISTERS:             nvgpu.device_async_create_group
// REGISTERS:             irees.mma_sync
// REGISTERS:             gpu.shuffle xor
// REGISTERS:             math.exp2 {{.*}} fastmath<afn> : vector<4xf32>
// REGISTERS:             arith.truncf
// REGISTERS:             irees.mma_sync
// REGISTERS-NOT:       linalg.generic
// REGISTERS-LABEL: func.func @no_halves
// REGISTERS-NOT:     irees.mma_sync
// REGISTERS:         linalg.generic
func.func @halves(%q: memref<1x64x32xf16>, %k: memref<1x128x32xf16>, %v: memref<1x128x16xf16>, %o: memref<1x64x16xf16>) {
  %scale = arith.constant 0.25 : f32
  scf.forall (%w) in (1) {
    iree_linalg_ext.attention {indexing_maps = [#q, #k, #v, #s, #o]}
        ins(%q, %k, %v, %scale : memref<1x64x32xf16>, memref<1x128x32xf16>, memref<1x128x16xf16>, f32)
        outs(%o : memref<1x64x16xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

func.func @no_halves(%q: memref<1x64x24xf16>, %k: memref<1x128x24xf16>, %v: memref<1x128x16xf16>, %o: memref<1x64x16xf16>) {
  %scale = arith.constant 0.25 : f32
  scf.forall (%w) in (1) {
    iree_linalg_ext.attention {indexing_maps = [#q, #k, #v, #s, #o]}
        ins(%q, %k, %v, %scale : memref<1x64x24xf16>, memref<1x128x24xf16>, memref<1x128x16xf16>, f32)
        outs(%o : memref<1x64x16xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Two warpgroups of 64 rows each, whose operands one thread copies: 64 features at a time, which a swizzle takes.
// The exponentials are words of the left operand of the second product.
// WARPGROUPS-LABEL: func.func @warpgroups
// WARPGROUPS:         %[[Q:.*]] = nvgpu.tma.create.descriptor %q box{{.*}} : memref<1x128x64xf16> -> !nvgpu.tensormap.descriptor<tensor = memref<1x64x64xf16
// WARPGROUPS:         %[[K:.*]] = nvgpu.tma.create.descriptor %k
// WARPGROUPS:         %[[V:.*]] = nvgpu.tma.create.descriptor %v box{{.*}} : memref<1x128x128xf16> -> !nvgpu.tensormap.descriptor<tensor = memref<1x64x64xf16
// WARPGROUPS:         memref.alloc() {alignment = 1024 : i64} : memref<1x1x128x64xf16, #gpu.address_space<workgroup>>
// WARPGROUPS-NEXT:    memref.alloc() {alignment = 1024 : i64} : memref<2x1x64x64xf16, #gpu.address_space<workgroup>>
// WARPGROUPS-NEXT:    memref.alloc() {alignment = 1024 : i64} : memref<2x2x64x64xf16, #gpu.address_space<workgroup>>
// WARPGROUPS:         %[[FULL:.*]] = nvgpu.mbarrier.create -> !nvgpu.mbarrier.group<{{.*}}, num_barriers = 3>
// WARPGROUPS:         scf.forall (%{{.*}}) in (256) {
// WARPGROUPS-COUNT-2:   nvgpu.tma.async.load %[[Q]]
// WARPGROUPS:           nvgpu.tma.async.load %[[K]]
// WARPGROUPS-COUNT-2:   nvgpu.tma.async.load %[[V]]
// WARPGROUPS:           nvgpu.mbarrier.try_wait.parity %[[FULL]]
// WARPGROUPS:           scf.for
// WARPGROUPS:             nvgpu.mbarrier.try_wait.parity %[[FULL]]
// WARPGROUPS-NEXT:        gpu.barrier
// WARPGROUPS:             %[[ZERO:.*]] = nvgpu.warpgroup.mma.init.accumulator
// WARPGROUPS:             %[[S:.*]] = nvgpu.warpgroup.mma %{{.*}}, %{{.*}}, %[[ZERO]] {waitGroup = 0 : i32}
// WARPGROUPS-NEXT:        irees.warpgroup_sums %[[S]]
// WARPGROUPS:             math.exp2 {{.*}} fastmath<afn> : vector<4xf32>
// WARPGROUPS:             %[[R:.*]] = irees.warpgroup_accumulator
// WARPGROUPS-NEXT:        %[[P:.*]] = irees.warpgroup_mma[%{{.*}}, %[[R]] {transposeB}
// WARPGROUPS-NEXT:        irees.warpgroup_sums %[[P]]
// WARPGROUPS-NOT:       nvgpu.device_async_copy
func.func @warpgroups(%q: memref<1x128x64xf16>, %k: memref<1x128x64xf16>, %v: memref<1x128x128xf16>, %o: memref<1x128x128xf16>) {
  %scale = arith.constant 0.125 : f32
  scf.forall (%w) in (1) {
    iree_linalg_ext.attention {indexing_maps = [#q, #k, #v, #s, #o],
                               lowering_config = #iree_codegen.lowering_config<{block = [128]}>}
        ins(%q, %k, %v, %scale : memref<1x128x64xf16>, memref<1x128x64xf16>, memref<1x128x128xf16>, f32)
        outs(%o : memref<1x128x128xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Two batches in one workgroup are no tile of a warpgroup. Rows of -infinity are divided by 1.
// WARPGROUPS-LABEL: func.func @no_warpgroups_for_two_batches
// WARPGROUPS-NOT:     nvgpu.tma
// WARPGROUPS-NOT:     nvgpu.warpgroup.mma
// WARPGROUPS:         arith.cmpf oeq
// WARPGROUPS:         arith.select
// WARPGROUPS:         arith.divf
func.func @no_warpgroups_for_two_batches(%q: memref<2x128x64xf16>, %k: memref<2x128x64xf16>, %v: memref<2x128x128xf16>, %o: memref<2x128x128xf16>) {
  %scale = arith.constant 0.125 : f32
  scf.forall (%w) in (1) {
    iree_linalg_ext.attention {indexing_maps = [#q, #k, #v, #s, #o], zero_masked_rows,
                               lowering_config = #iree_codegen.lowering_config<{block = [128]}>}
        ins(%q, %k, %v, %scale : memref<2x128x64xf16>, memref<2x128x64xf16>, memref<2x128x128xf16>, f32)
        outs(%o : memref<2x128x128xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
