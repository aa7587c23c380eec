// RUN: irees opt %s -p irees-gpu-lower-contractions | filecheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Both operands go through shared memory, rows of which are 16 bytes longer than a tile; the next part
// is on its way while one is multiplied. The sums start at the fill, and nothing is masked where a
// block divides the output.
// CHECK-LABEL: func.func @whole
// CHECK:         %[[A:.*]] = memref.alloc() : memref<1x16x68xf32, #gpu.address_space<workgroup>>
// CHECK-NEXT:    %[[B:.*]] = memref.alloc() : memref<1x16x68xf32, #gpu.address_space<workgroup>>
// CHECK-NOT:     linalg.generic
// CHECK:         scf.forall (%{{.*}}) in (256) {
// CHECK:           vector.load %a[{{.*}}] : memref<64x512xf32>, vector<4xf32>
// CHECK:           vector.load %b[{{.*}}] : memref<512x64xf32>, vector<4xf32>
// CHECK:           scf.for {{.*}} -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>) {
// CHECK-COUNT-4:     memref.store %{{.*}}, %[[A]]
// CHECK:             vector.store %{{.*}}, %[[B]]
// CHECK:             gpu.barrier
// CHECK:             vector.load %a
// CHECK:             scf.for
// CHECK-COUNT-4:       arith.mulf {{.*}} : vector<4xf32>
// CHECK:             gpu.barrier
// CHECK-NOT:       scf.if
// CHECK-COUNT-4:   vector.store %{{.*}}, %c
// CHECK:         } {mapping = [#gpu.thread<linear_dim_0>]}
// CHECK-NEXT:    gpu.barrier
// CHECK:       threads = 256
func.func @whole(%a: memref<64x512xf32>, %b: memref<512x64xf32>, %c: memref<64x64xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
        outs(%c : memref<64x64xf32>) {
    ^bb0(%o: f32):
      %z = arith.constant 0.0 : f32
      linalg.yield %z : f32
    }
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<64x512xf32>, memref<512x64xf32>) outs(%c : memref<64x64xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Dynamic sizes: what is past the end is fetched as the last row or column, and not stored.
// CHECK-LABEL: func.func @dynamic
// CHECK:         scf.forall
// CHECK:           arith.minsi
// CHECK:           scf.if
func.func @dynamic(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [8, 64, 1, 4, 32]}>}
        ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Half floats stay half floats in shared memory, in the order in which they lie; four warps make
// 32 x 32 each, by eight products for 16 of the reduction. Of B, whose rows are steps of the reduction,
// the fragments are turned when they are loaded. What is past the end is 0.
// CHECK-LABEL: func.func @matrix
// CHECK:         %[[A:.*]] = memref.alloc() : memref<1x64x40xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT:    %[[B:.*]] = memref.alloc() : memref<1x32x72xf16, #gpu.address_space<workgroup>>
// CHECK:         scf.forall (%{{.*}}) in (128) {
// CHECK:           vector.load %a[{{.*}}] : memref<64x520xf16>, vector<8xf16>
// CHECK:           vector.load %b[{{.*}}] : memref<520x64xf16>, vector<8xf16>
// CHECK:           arith.select {{.*}} : vector<8xf16>
// CHECK:             vector.store %{{.*}}, %[[A]]
// CHECK:             vector.store %{{.*}}, %[[B]]
// CHECK:             gpu.barrier
// CHECK:             scf.for
// CHECK-COUNT-2:       nvgpu.ldmatrix %[[B]]{{.*}}transpose = true
// CHECK:               nvgpu.ldmatrix %[[A]]{{.*}}transpose = false
// CHECK-COUNT-4:       irees.mma_sync
// CHECK:               nvgpu.ldmatrix %[[A]]
// CHECK-COUNT-4:       irees.mma_sync
// CHECK-NOT:           irees.mma_sync
// CHECK:         gpu.barrier
// CHECK:       threads = 128
func.func @matrix(%a: memref<64x520xf16>, %b: memref<520x64xf16>, %c: memref<64x64xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [64, 64, 32, 32, 32, 1]}>}
        ins(%a, %b : memref<64x520xf16>, memref<520x64xf16>) outs(%c : memref<64x64xf32>) {
    ^bb0(%x: f16, %y: f16, %o: f32):
      %v = arith.extf %x : f16 to f32
      %w0 = arith.extf %y : f16 to f32
      %p = arith.mulf %v, %w0 : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Three parts of both operands: two are on their way when the loop begins, and one barrier for each part
// is enough.
// CHECK-LABEL: func.func @stages
// CHECK:         %[[A:.*]] = memref.alloc() : memref<3x64x40xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT:    %[[B:.*]] = memref.alloc() : memref<3x64x40xf16, #gpu.address_space<workgroup>>
// CHECK-COUNT-2:   nvgpu.device_async_create_group
// CHECK:           scf.for
// CHECK-NEXT:        arith.constant
// CHECK:             nvgpu.device_async_wait {{.*}} {numGroups = 1 : i32}
// CHECK-NEXT:        gpu.barrier
// CHECK:             nvgpu.device_async_copy %a{{.*}}, %[[A]]{{.*}}, 8, %{{.*}} : memref<64x512xf16>
// CHECK:             nvgpu.device_async_copy %b{{.*}}, %[[B]]{{.*}}, 8, %{{.*}} : memref<64x512xf16>
// CHECK:             nvgpu.device_async_create_group
// CHECK:             nvgpu.ldmatrix
// CHECK-NOT:         gpu.barrier
// CHECK:           nvgpu.device_async_wait {{.*}} {numGroups = 0 : i32}
func.func @stages(%a: memref<64x512xf16>, %b: memref<64x512xf16>, %c: memref<64x64xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, affine_map<(m, n, k) -> (n, k)>, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [64, 64, 32, 32, 32, 3]}>}
        ins(%a, %b : memref<64x512xf16>, memref<64x512xf16>) outs(%c : memref<64x64xf32>) {
    ^bb0(%x: f16, %y: f16, %o: f32):
      %v = arith.extf %x : f16 to f32
      %w0 = arith.extf %y : f16 to f32
      %p = arith.mulf %v, %w0 : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Rows of 100 halves cannot be copied 16 bytes at a time, but 8.
// CHECK-LABEL: func.func @narrow_copies
// CHECK:           nvgpu.device_async_copy %a{{.*}}, 4, %{{.*}} : memref<64x100xf16>
// CHECK:           nvgpu.device_async_copy %b{{.*}}, 8, %{{.*}} : memref<100x64xf16>
func.func @narrow_copies(%a: memref<64x100xf16>, %b: memref<100x64xf16>, %c: memref<64x64xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [64, 64, 32, 32, 32, 3]}>}
        ins(%a, %b : memref<64x100xf16>, memref<100x64xf16>) outs(%c : memref<64x64xf32>) {
    ^bb0(%x: f16, %y: f16, %o: f32):
      %v = arith.extf %x : f16 to f32
      %w0 = arith.extf %y : f16 to f32
      %p = arith.mulf %v, %w0 : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// What is rounded at once is never in memory as f32. A lane has two neighbours to store.
// CHECK-LABEL: func.func @narrowed
// CHECK-NOT:     memref<64x64xf32
// CHECK:         irees.mma_sync
// CHECK-COUNT-2: arith.truncf
// CHECK:         vector.store %{{.*}}, %o[{{.*}}] : memref<64x64xf16>, vector<2xf16>
// CHECK-NOT:     memref.store
// CHECK-NOT:     linalg.generic
func.func @narrowed(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %o: memref<64x64xf16>) {
  %z = arith.constant 0.0 : f32
  scf.forall (%w) in (1) {
    %c = memref.alloca() : memref<64x64xf32>
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%c : memref<64x64xf32>) {
    ^bb0(%x: f32):
      linalg.yield %z : f32
    }
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [64, 64, 32, 32, 32, 1]}>}
        ins(%a, %b : memref<64x64xf16>, memref<64x64xf16>) outs(%c : memref<64x64xf32>) {
    ^bb0(%x: f16, %y: f16, %o0: f32):
      %v = arith.extf %x : f16 to f32
      %w0 = arith.extf %y : f16 to f32
      %p = arith.mulf %v, %w0 : f32
      %s = arith.addf %o0, %p : f32
      linalg.yield %s : f32
    }
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%c : memref<64x64xf32>) outs(%o : memref<64x64xf16>) {
    ^bb0(%x: f32, %y: f16):
      %h = arith.truncf %x : f32 to f16
      linalg.yield %h : f16
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A product with a vector reads its matrix once: shared memory would not help.
// CHECK-LABEL: func.func @no_vector
// CHECK:         linalg.generic
func.func @no_vector(%a: memref<64x512xf32>, %b: memref<512xf32>, %c: memref<64xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
        ins(%a, %b : memref<64x512xf32>, memref<512xf32>) outs(%c : memref<64xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Sums of half floats, each rounded, have no vectors.
// CHECK-LABEL: func.func @no_half
// CHECK:         linalg.generic
func.func @no_half(%a: memref<64x512xf16>, %b: memref<512x64xf16>, %c: memref<64x64xf16>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : memref<64x512xf16>, memref<512x64xf16>) outs(%c : memref<64x64xf16>) {
    ^bb0(%x: f16, %y: f16, %o: f16):
      %p = arith.mulf %x, %y : f16
      %s = arith.addf %o, %p : f16
      linalg.yield %s : f16
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// The same for f32 in four stages: what lies along the reduction is turned as it is copied.
// CHECK-LABEL: func.func @copied
// CHECK:         %[[A:.*]] = memref.alloc() : memref<4x8x132xf32, #gpu.address_space<workgroup>>
// CHECK-NEXT:    %[[B:.*]] = memref.alloc() : memref<4x8x132xf32, #gpu.address_space<workgroup>>
// CHECK:         nvgpu.device_async_copy %a{{.*}}, %[[A]]{{.*}}, 1,
// CHECK:         nvgpu.device_async_copy %b{{.*}}, %[[B]]{{.*}}, 4,
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_wait %{{.*}} {numGroups = 2 : i32}
// CHECK-NEXT:      gpu.barrier
func.func @copied(%a: memref<128x512xf32>, %b: memref<512x128xf32>, %c: memref<128x128xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [128, 128, 8, 8, 8], stages = 4}>}
        ins(%a, %b : memref<128x512xf32>, memref<512x128xf32>) outs(%c : memref<128x128xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
