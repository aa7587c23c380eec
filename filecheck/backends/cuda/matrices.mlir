// RUN: irees opt %s -p 'irees-assign-target{facts="gpu.shared_opt_in_bytes=232448"},irees-gpu-lower-contractions' | filecheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// f32 by matrix instructions, which round it to tf32: a part is 16 steps, an instruction takes eight.
// What lies along the reduction is loaded by matrices. Of what does not, each word is loaded alone,
// from rows that are 32 bytes longer.
// CHECK-LABEL: func.func @tf32
// CHECK:         %[[A:.*]] = memref.alloc() : memref<4x32x20xf32, #gpu.address_space<workgroup>>
// CHECK-NEXT:    %[[B:.*]] = memref.alloc() : memref<4x16x40xf32, #gpu.address_space<workgroup>>
// CHECK:           nvgpu.device_async_copy %a{{.*}}, %[[A]]{{.*}}, 4
// CHECK:           nvgpu.device_async_copy %b{{.*}}, %[[B]]{{.*}}, 4
// CHECK-COUNT-4:       vector.load %[[B]]{{.*}} : memref<4x16x40xf32, #gpu.address_space<workgroup>>, vector<1xf32>
// CHECK:               nvgpu.ldmatrix %[[A]]{{.*}} {transpose = false, numTiles = 4 : i32} : {{.*}} -> vector<4x1xf32>
// CHECK-COUNT-2:       irees.mma_sync {{.*}} : vector<1xf32> -> vector<4xf32>
// CHECK-NOT:           irees.mma_sync
func.func @tf32(%a: memref<32x64xf32>, %b: memref<64x32xf32>, %c: memref<32x32xf32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [32, 32, 16, 16, 16, 4]}>}
        ins(%a, %b : memref<32x64xf32>, memref<64x32xf32>) outs(%c : memref<32x32xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Bytes that do not lie along the reduction are copied 16 at a time, too, to rows of a tile that are steps in
// the order of two matrices of pairs. A lane's words are the even bytes of both, and the odd ones; its four
// sums of a row are then adjacent.
// CHECK-LABEL: func.func @bytes
// CHECK:         %[[A:.*]] = memref.alloc() : memref<4x32x80xi8, #gpu.address_space<workgroup>>
// CHECK-NEXT:    %[[B:.*]] = memref.alloc() : memref<4x64x48xi8, #gpu.address_space<workgroup>>
// CHECK:           nvgpu.device_async_copy %a{{.*}}, %[[A]]{{.*}}, 16
// CHECK:           nvgpu.device_async_copy %b{{.*}}, %[[B]]{{.*}}, 16
// CHECK:               %[[WORDS:.*]] = nvgpu.ldmatrix %[[B]]{{.*}} {transpose = true, numTiles = 4 : i32} : {{.*}} -> vector<4x4xi8>
// CHECK-NEXT:          %[[W0:.*]] = vector.extract %[[WORDS]][0] : vector<4xi8> from vector<4x4xi8>
// CHECK-NEXT:          %[[W1:.*]] = vector.extract %[[WORDS]][1] : vector<4xi8> from vector<4x4xi8>
// CHECK-NEXT:          %[[W2:.*]] = vector.extract %[[WORDS]][2] : vector<4xi8> from vector<4x4xi8>
// CHECK-NEXT:          %[[W3:.*]] = vector.extract %[[WORDS]][3] : vector<4xi8> from vector<4x4xi8>
// CHECK-NEXT:          vector.shuffle %[[W0]], %[[W1]] [0, 2, 4, 6] : vector<4xi8>, vector<4xi8>
// CHECK-NEXT:          vector.shuffle %[[W2]], %[[W3]] [0, 2, 4, 6] : vector<4xi8>, vector<4xi8>
// CHECK-NEXT:          vector.shuffle %[[W0]], %[[W1]] [1, 3, 5, 7] : vector<4xi8>, vector<4xi8>
// CHECK-NEXT:          vector.shuffle %[[W2]], %[[W3]] [1, 3, 5, 7] : vector<4xi8>, vector<4xi8>
// CHECK:               nvgpu.ldmatrix %[[A]]{{.*}} {transpose = false, numTiles = 4 : i32}
// CHECK-COUNT-2:       irees.mma_sync {{.*}} : vector<4xi8> -> vector<4xi32>
// CHECK-NOT:           irees.mma_sync
// CHECK-COUNT-2:   vector.store {{.*}}, %c{{.*}} : memref<32x32xi32>, vector<4xi32>
// CHECK-NOT:       vector.store
func.func @bytes(%a: memref<32x128xi8>, %b: memref<128x32xi8>, %c: memref<32x32xi32>) {
  scf.forall (%w) in (1) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [32, 32, 16, 16, 64, 4]}>}
        ins(%a, %b : memref<32x128xi8>, memref<128x32xi8>) outs(%c : memref<32x32xi32>) {
    ^bb0(%x: i8, %y: i8, %o: i32):
      %v = arith.extsi %x : i8 to i32
      %w2 = arith.extsi %y : i8 to i32
      %p = arith.muli %v, %w2 : i32
      %s = arith.addi %o, %p : i32
      linalg.yield %s : i32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// 511 steps are no copies of 4 bytes: the same block goes by single warps.
// CHECK-LABEL: func.func @no_warpgroups
// CHECK-NOT:     nvgpu.warpgroup
// CHECK:         scf.forall (%{{.*}}) in (256) {
// CHECK:           irees.mma_sync
func.func @no_warpgroups(%a: memref<128x511xf16>, %b: memref<511x128xf16>, %c: memref<128x128xf32>) {
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
