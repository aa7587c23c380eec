// RUN: irees opt %s -p irees-gpu-lower-attention | filecheck %s

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
// CHECK:           math.exp
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
