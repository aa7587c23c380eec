// RUN: irees opt %s -p "irees-gpu-split-last-wave{workgroups=4}" | filecheck %s

#id = affine_map<(m, n) -> (m, n)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Five tiles for four multiprocessors: four stay whole, the last one is done in four slices of K.
// What follows is done where the sum is, and what only the group knows is its own in each part.
// CHECK-LABEL: func.func @five
// CHECK:         %[[WHOLE:.*]] = memref.alloc() : memref<32x64xf32>
// CHECK:         linalg.generic {{.*}} outs(%[[WHOLE]] : {{.*}}group = 0
// CHECK:         %[[A0:.*]] = memref.subview %a[0, 0] [32, 4096] [1, 1]
// CHECK:         linalg.generic {{.*}} ins(%[[A0]], %b {{.*}} outs(%[[WHOLE]] {{.*}}group = 0 {{.*}}block = [8
// CHECK:         %[[Y0:.*]] = memref.subview %y[0, 0] [32, 64] [1, 1]
// CHECK:         linalg.generic {{.*}} ins(%[[WHOLE]] {{.*}} outs(%[[Y0]]
// CHECK:         %[[A:.*]] = memref.reinterpret_cast %a to offset: [0], sizes: [40, 4, 1024], strides: [4096, 1024, 1]
// CHECK-NEXT:    %[[A1:.*]] = memref.subview %[[A]][32, 0, 0] [8, 4, 1024] [1, 1, 1]
// CHECK-NEXT:    %[[B1:.*]] = memref.reinterpret_cast %b to offset: [0], sizes: [4, 1024, 64]
// CHECK-NEXT:    %[[PARTIAL:.*]] = memref.alloc() : memref<4x8x64xf32>
// CHECK-NEXT:    linalg.generic {{.*}} outs(%[[PARTIAL]] {{.*}}group = 1 : i64, workgroup = [1 : i64, 8 : i64, 0 : i64]
// CHECK:           arith.constant -0.000000e+00
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%[[A1]], %[[B1]] {{.*}} outs(%[[PARTIAL]] {{.*}}group = 1 : i64, workgroup = [1 : i64, 8 : i64, 0 : i64, 0 : i64], block = [8
// CHECK:         %[[LAST:.*]] = memref.alloc() : memref<8x64xf32>
// CHECK:         linalg.generic {{.*}} outs(%[[LAST]] {{.*}}group = 2
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[PARTIAL]] {{.*}} outs(%[[LAST]] {{.*}}group = 2
// CHECK:         %[[Y1:.*]] = memref.subview %y[32, 0] [8, 64] [1, 1]
// CHECK:         linalg.generic {{.*}} ins(%[[LAST]] {{.*}} outs(%[[Y1]] {{.*}}group = 2
flow.executable @five_tiles {
  builtin.module {
    func.func @five(%a: memref<40x4096xf32>, %b: memref<4096x64xf32>, %y: memref<40x64xf16>) {
      %t = memref.alloc() : memref<40x64xf32>
      linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%t : memref<40x64xf32>)
          attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0 : i64, workgroup = [8 : i64, 0 : i64]}>} {
      ^bb0(%o: f32):
        %z = arith.constant 0.0 : f32
        linalg.yield %z : f32
      }
      linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<40x4096xf32>, memref<4096x64xf32>) outs(%t : memref<40x64xf32>)
          attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0 : i64, workgroup = [8 : i64, 0 : i64, 0 : i64], block = [8 : i64, 64 : i64, 1 : i64, 4 : i64, 32 : i64]}>} {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %s = arith.addf %o, %m : f32
        linalg.yield %s : f32
      }
      linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : memref<40x64xf32>) outs(%y : memref<40x64xf16>)
          attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0 : i64, workgroup = [8 : i64, 0 : i64]}>} {
      ^bb0(%x: f32, %o: f16):
        %h = arith.truncf %x : f32 to f16
        linalg.yield %h : f16
      }
      return
    }
  }
}

// Two tiles leave half of the GPU idle: all of both is done in slices, added to what was there.
// CHECK-LABEL: func.func @two
// CHECK-NOT:     memref.subview
// CHECK:         %[[PARTIAL:.*]] = memref.alloc() : memref<2x16x64xf32>
// CHECK:         linalg.generic {{.*}} ins(%[[PARTIAL]] {{.*}} outs(%c : memref<16x64xf32>)
flow.executable @two_tiles {
  builtin.module {
    func.func @two(%a: memref<16x4096xf32>, %b: memref<4096x64xf32>, %c: memref<16x64xf32>) {
      linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<16x4096xf32>, memref<4096x64xf32>) outs(%c : memref<16x64xf32>)
          attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0 : i64, workgroup = [8 : i64, 0 : i64, 0 : i64], block = [8 : i64, 64 : i64, 1 : i64, 4 : i64, 32 : i64]}>} {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %s = arith.addf %o, %m : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// Whole waves, a product too short for another launch, and one of unknown size stay as they are.
// CHECK-LABEL: func.func @no_waves
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT:     linalg.generic
flow.executable @whole {
  builtin.module {
    func.func @no_waves(%a: memref<32x4096xf32>, %b: memref<4096x64xf32>, %c: memref<32x64xf32>, %d: memref<40x256xf32>, %e: memref<256x64xf32>, %f: memref<40x64xf32>, %g: memref<?x4096xf32>, %h: memref<?x64xf32>) {
      linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<32x4096xf32>, memref<4096x64xf32>) outs(%c : memref<32x64xf32>)
          attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0 : i64, workgroup = [8 : i64, 0 : i64, 0 : i64], block = [8 : i64, 64 : i64, 1 : i64, 4 : i64, 32 : i64]}>} {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %s = arith.addf %o, %m : f32
        linalg.yield %s : f32
      }
      linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%d, %e : memref<40x256xf32>, memref<256x64xf32>) outs(%f : memref<40x64xf32>)
          attrs = {lowering_config = #iree_codegen.lowering_config<{group = 1 : i64, workgroup = [8 : i64, 0 : i64, 0 : i64], block = [8 : i64, 64 : i64, 1 : i64, 4 : i64, 32 : i64]}>} {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %s = arith.addf %o, %m : f32
        linalg.yield %s : f32
      }
      linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%g, %b : memref<?x4096xf32>, memref<4096x64xf32>) outs(%h : memref<?x64xf32>)
          attrs = {lowering_config = #iree_codegen.lowering_config<{group = 2 : i64, workgroup = [8 : i64, 0 : i64, 0 : i64], block = [8 : i64, 64 : i64, 1 : i64, 4 : i64, 32 : i64]}>} {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %s = arith.addf %o, %m : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}
