// RUN: irees opt %s -p irees-gpu-lower-contractions | filecheck %s

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
