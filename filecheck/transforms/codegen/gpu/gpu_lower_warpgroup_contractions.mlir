// RUN: irees opt %s -p 'irees-assign-target{facts="gpu.shared_opt_in_bytes=232448"},irees-gpu-lower-warpgroup-contractions' | filecheck %s
// RUN: irees opt %s -p 'irees-assign-target{facts="gpu.shared_opt_in_bytes=232448"},irees-gpu-lower-warpgroup-contractions,irees-gpu-lower-contractions' | filecheck %s --check-prefix BOTH

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Two times four warps have 64 rows each. A lies along the reduction, in rows of 64 steps; B does not, so it
// is in two blocks of 64 columns, whose rows are steps. Of a row the pieces of 16 bytes are where the number
// of the row says. Of three parts one is multiplied, one is about to be, and one is on its way.
// CHECK-LABEL: func.func @warpgroups
// CHECK:         %[[A:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<3x128x64xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT:    %[[B:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<3x2x64x64xf16, #gpu.address_space<workgroup>>
// CHECK:         scf.forall (%{{.*}}) in (256) {
// CHECK:           %[[PLACE:.*]] = arith.xori
// CHECK-NEXT:      arith.constant
// CHECK-NEXT:      nvgpu.device_async_copy %a[{{.*}}], %[[A]][{{.*}}, %[[PLACE]]], 8
// CHECK:           nvgpu.device_async_create_group
// CHECK:           %[[ZERO:.*]] = nvgpu.warpgroup.mma.init.accumulator
// CHECK:           %[[DONE:.*]] = scf.for {{.*}} iter_args(%[[SUMS:.*]] = %[[ZERO]])
// CHECK:             nvgpu.device_async_wait {{.*}} {numGroups = 0 : i32}
// CHECK-NEXT:        nvvm.fence.proxy
// CHECK-NEXT:        gpu.barrier
// CHECK:             nvgpu.device_async_copy
// CHECK:             nvgpu.device_async_create_group
// CHECK-NEXT:        %[[PART:.*]] = memref.subview %[[A]][%{{.*}}, %{{.*}}, 0] [1, 64, 64]
// CHECK-NEXT:        %[[LEFT:.*]] = nvgpu.warpgroup.generate.descriptor %[[PART]]
// CHECK-NEXT:        %[[PART2:.*]] = memref.subview %[[B]][%{{.*}}, 0, 0, 0] [1, 2, 64, 64]
// CHECK-NEXT:        %[[RIGHT:.*]] = nvgpu.warpgroup.generate.descriptor %[[PART2]]
// CHECK-NEXT:        %[[NEXT:.*]] = nvgpu.warpgroup.mma %[[LEFT]], %[[RIGHT]], %[[SUMS]] {waitGroup = 1 : i32, transposeB}
// CHECK-NEXT:        scf.yield %[[NEXT]]
// CHECK:           nvvm.wgmma.wait.group.sync.aligned 0
// CHECK:           gpu.barrier
// CHECK-NEXT:      irees.warpgroup_sums %[[DONE]]
// CHECK-NOT:       gpu.barrier
// CHECK:         } {mapping = [#gpu.thread<linear_dim_0>]}
func.func @warpgroups(%a: memref<128x512xf16>, %b: memref<512x128xf16>, %c: memref<128x128xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [128, 128, 64, 3]}>}
        ins(%a, %b : memref<128x512xf16>, memref<512x128xf16>) outs(%c : memref<128x128xf32>) {
    ^bb0(%x: f16, %y: f16, %o: f32):
      %v = arith.extf %x : f16 to f32
      %u = arith.extf %y : f16 to f32
      %p = arith.mulf %v, %u : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// The same product, whose parts one thread copies: a box of 128 x 64 of A, and of B one for each 64 columns.
// Nobody else computes an address. Two barriers for each of three slots count what arrives, and the eight warps
// whose products are done. In the loop nothing waits for all threads.
// CHECK-LABEL: func.func @boxes
// CHECK:         %[[MAP_A:.*]] = nvgpu.tma.create.descriptor %a box[%{{.*}}, %{{.*}}] : memref<128x512xf16> -> !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
// CHECK:         %[[MAP_B:.*]] = nvgpu.tma.create.descriptor %b box[%{{.*}}, %{{.*}}] : memref<512x128xf16> -> !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, {{.*}}
// CHECK-NEXT:    scf.forall
// CHECK:           %[[A:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<3x128x64xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT:      %[[B:.*]] = memref.alloc() {alignment = 1024 : i64} : memref<3x2x64x64xf16, #gpu.address_space<workgroup>>
// CHECK:           %[[BARS:.*]] = nvgpu.mbarrier.create -> !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 3>
// CHECK-NEXT:      %[[FREE:.*]] = nvgpu.mbarrier.create -> !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 3>
// CHECK:           scf.forall (%{{.*}}) in (1) {
// CHECK-COUNT-2:     nvgpu.mbarrier.init %[[FREE]]
// CHECK:             nvgpu.mbarrier.init %[[BARS]]
// CHECK:             %[[WARPS:.*]] = arith.constant 8 : index
// CHECK:             nvgpu.mbarrier.init %[[FREE]][%{{.*}}], %[[WARPS]]
// CHECK-NEXT:        nvvm.fence.mbarrier.init
// CHECK-NEXT:      } {mapping = [#gpu.thread<linear_dim_0>]}
// CHECK-NEXT:      gpu.barrier
// CHECK:           scf.forall (%[[T:.*]]) in (256) {
// CHECK:             %[[FIRST:.*]] = arith.cmpi eq, %[[T]]
// CHECK:             %[[DONE:.*]] = scf.for {{.*}} iter_args(%[[SUMS:.*]] = %{{.*}})
// CHECK:               nvgpu.mbarrier.try_wait.parity %[[BARS]]
// CHECK-NOT:           gpu.barrier
// CHECK:               nvgpu.warpgroup.mma %{{.*}}, %{{.*}}, %[[SUMS]] {waitGroup = 1 : i32, transposeB}
// CHECK:               scf.if
// CHECK:                 nvgpu.mbarrier.arrive %[[FREE]]
// CHECK:               %[[BEGIN:.*]] = arith.andi %[[FIRST]], %{{.*}} : i1
// CHECK:               scf.if %[[BEGIN]] {
// CHECK:                 nvgpu.mbarrier.try_wait.parity %[[FREE]]
// CHECK:                 %[[BYTES:.*]] = arith.constant 32768 : index
// CHECK-NEXT:            nvgpu.mbarrier.arrive.expect_tx %[[BARS]][%{{.*}}], %[[BYTES]]
// CHECK:                 %[[TO:.*]] = memref.subview %[[A]][%{{.*}}, 0, 0] [1, 128, 64]
// CHECK:                 nvgpu.tma.async.load %[[MAP_A]][%{{.*}}, %{{.*}}], %[[BARS]][%{{.*}}] to %[[TO]]
// CHECK-COUNT-2:         nvgpu.tma.async.load %[[MAP_B]]
// CHECK-NOT:             nvgpu.tma.async.load
// CHECK-NOT:       nvvm.fence.proxy
// CHECK:           } {mapping = [#gpu.thread<linear_dim_0>]}
func.func @boxes(%a: memref<128x512xf16>, %b: memref<512x128xf16>, %c: memref<128x128xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [128, 128, 64, 3], bulk_copies = 1}>}
        ins(%a, %b : memref<128x512xf16>, memref<512x128xf16>) outs(%c : memref<128x128xf32>) {
    ^bb0(%x: f16, %y: f16, %o: f32):
      %v = arith.extf %x : f16 to f32
      %u = arith.extf %y : f16 to f32
      %p = arith.mulf %v, %u : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Threads cannot copy 511 steps by 4 bytes: `irees-gpu-lower-contractions` lowers the block to `mma.sync`.
// CHECK-LABEL: func.func @no_copies
// CHECK:         linalg.generic
// BOTH-LABEL:  func.func @no_copies
// BOTH:          scf.forall (%{{.*}}) in (256) {
// BOTH:            irees.mma_sync
func.func @no_copies(%a: memref<128x511xf16>, %b: memref<511x128xf16>, %c: memref<128x128xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [128, 128, 64, 3]}>}
        ins(%a, %b : memref<128x511xf16>, memref<511x128xf16>) outs(%c : memref<128x128xf32>) {
    ^bb0(%x: f16, %y: f16, %o: f32):
      %v = arith.extf %x : f16 to f32
      %u = arith.extf %y : f16 to f32
      %p = arith.mulf %v, %u : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// The number of slices in shared memory would not be known.
// CHECK-LABEL: func.func @no_dynamic
// CHECK:         linalg.generic
func.func @no_dynamic(%a: memref<128x?xf16>, %b: memref<?x128xf16>, %c: memref<128x128xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [128, 128, 64, 3]}>}
        ins(%a, %b : memref<128x?xf16>, memref<?x128xf16>) outs(%c : memref<128x128xf32>) {
    ^bb0(%x: f16, %y: f16, %o: f32):
      %v = arith.extf %x : f16 to f32
      %u = arith.extf %y : f16 to f32
      %p = arith.mulf %v, %u : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Warpgroups give the workgroup 256 threads, so a block of 128 threads stays.
// BOTH-LABEL:  func.func @two_products
// BOTH:          nvgpu.warpgroup.mma
// BOTH:          linalg.generic
// BOTH:        threads = 256
func.func @two_products(%a: memref<128x512xf16>, %b: memref<512x128xf16>, %c: memref<128x128xf32>, %d: memref<128x128xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [128, 128, 64, 3]}>}
        ins(%a, %b : memref<128x512xf16>, memref<512x128xf16>) outs(%c : memref<128x128xf32>) {
    ^bb0(%x: f16, %y: f16, %o: f32):
      %v = arith.extf %x : f16 to f32
      %u = arith.extf %y : f16 to f32
      %p = arith.mulf %v, %u : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [64, 64, 32, 32, 32, 4]}>}
        ins(%a, %b : memref<128x512xf16>, memref<512x128xf16>) outs(%d : memref<128x128xf32>) {
    ^bb0(%x: f16, %y: f16, %o: f32):
      %v = arith.extf %x : f16 to f32
      %u = arith.extf %y : f16 to f32
      %p = arith.mulf %v, %u : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
