// RUN: irees opt %s -p 'irees-assign-target{facts="gpu.shared_opt_in_bytes=232448"},irees-gpu-lower-contractions' | filecheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// Of six tiles of 16 steps four are shared by three workgroups, two are one's each. Who has the first
// steps of a tile brings there what the sums are added to; who comes last adds up what all have left, in the
// order of the steps, and stores it. It sets the counter back.
// CHECK-LABEL: func.func @shared
// CHECK-NEXT:    %[[COUNTERS:.*]] = irees.counters : memref<4xi32>
// CHECK-NEXT:    %[[LEFT:.*]] = memref.alloc() : memref<6x8x128x4xf32>
// CHECK-NEXT:    scf.forall (%[[W:.*]]) in (5) {
// CHECK:           %[[FLAG:.*]] = memref.alloc() : memref<1xi32, #gpu.address_space<workgroup>>
// CHECK:           scf.for %[[TILE:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:             %[[FIRST:.*]] = arith.maxsi
// CHECK:             %[[LAST:.*]] = arith.minsi
// CHECK:             %j = arith.remui %[[TILE]]
// CHECK:             %i = arith.divui %[[TILE]]
// CHECK:             %[[BEGINS:.*]] = arith.cmpi eq, %[[FIRST]]
// CHECK-NEXT:        scf.if %[[BEGINS]] {
// CHECK-NEXT:          linalg.generic {{.*}} ins(%r
// CHECK:             %[[TO:.*]] = arith.muli %[[LAST]]
// CHECK:             %[[FROM:.*]] = arith.muli %[[FIRST]]
// CHECK:             scf.forall (%[[T:.*]]) in (128) {
// CHECK:               arith.constant -0.000000e+00 : f32
// CHECK:               scf.for %{{.*}} = %[[FROM]] to %[[TO]]
// CHECK:               %[[SOME:.*]] = arith.cmpi ne
// CHECK:               scf.if %[[SOME]] {
// CHECK-COUNT-8:         vector.store %{{.*}}, %[[LEFT]][%{{.*}}, %{{.*}}, %[[T]], %{{.*}}]
// CHECK-NEXT:            nvvm.memory.barrier <gpu>
// CHECK-NEXT:            gpu.barrier
// CHECK-NEXT:            scf.if
// CHECK:                   %[[BEFORE:.*]] = memref.atomic_rmw addi %{{.*}}, %[[COUNTERS]][%[[TILE]]]
// CHECK:                   %[[ALL:.*]] = arith.cmpi eq, %[[BEFORE]]
// CHECK-NEXT:              scf.if %[[ALL]] {
// CHECK:                     memref.atomic_rmw assign %{{.*}}, %[[COUNTERS]][%[[TILE]]]
// CHECK:                   nvvm.memory.barrier <gpu>
// CHECK:                   memref.store %{{.*}}, %[[FLAG]]
// CHECK:               gpu.barrier
// CHECK:               memref.load %[[FLAG]]
// CHECK:               scf.if
// CHECK:                 memref.load %o
// CHECK:                 scf.if %[[SOME]]
// CHECK:                   scf.for
// CHECK-COUNT-8:             vector.load %[[LEFT]][%{{.*}}, %{{.*}}, %[[T]], %{{.*}}]
// CHECK:                 } else {
// CHECK-COUNT-8:           arith.addf
// CHECK:                 vector.store {{.*}}, %t[
// CHECK:             gpu.barrier
// CHECK-NEXT:      }
func.func @shared(%a: memref<192x512xf16>, %b: memref<512x128xf16>, %c: memref<192x128xf32>, %y: memref<192x128xf32>) {
  scf.forall (%i, %j) in (3, 2) {
    %c64 = arith.constant 64 : index
    %m = arith.muli %i, %c64 : index
    %n = arith.muli %j, %c64 : index
    %t = memref.alloc() : memref<64x64xf32>
    %p = memref.subview %a[%m, 0] [64, 512] [1, 1] : memref<192x512xf16> to memref<64x512xf16, strided<[512, 1], offset: ?>>
    %q = memref.subview %b[0, %n] [512, 64] [1, 1] : memref<512x128xf16> to memref<512x64xf16, strided<[128, 1], offset: ?>>
    %r = memref.subview %c[%m, %n] [64, 64] [1, 1] : memref<192x128xf32> to memref<64x64xf32, strided<[128, 1], offset: ?>>
    %o = memref.subview %y[%m, %n] [64, 64] [1, 1] : memref<192x128xf32> to memref<64x64xf32, strided<[128, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%r : memref<64x64xf32, strided<[128, 1], offset: ?>>) outs(%o : memref<64x64xf32, strided<[128, 1], offset: ?>>) {
    ^bb0(%x: f32, %z: f32):
      linalg.yield %x : f32
    }
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [64, 64, 32, 32, 32, 4], stream_k = [4, 3]}>}
        ins(%p, %q : memref<64x512xf16, strided<[512, 1], offset: ?>>, memref<512x64xf16, strided<[128, 1], offset: ?>>)
        outs(%o : memref<64x64xf32, strided<[128, 1], offset: ?>>) {
    ^bb0(%x: f16, %v: f16, %z: f32):
      %wx = arith.extf %x : f16 to f32
      %wv = arith.extf %v : f16 to f32
      %s = arith.mulf %wx, %wv : f32
      %u = arith.addf %z, %s : f32
      linalg.yield %u : f32
    }
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%o : memref<64x64xf32, strided<[128, 1], offset: ?>>) outs(%t : memref<64x64xf32>) {
    ^bb0(%x: f32, %z: f32):
      %u = arith.addf %z, %x : f32
      linalg.yield %u : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>, #gpu.block<linear_dim_1>]}
  return
}

// All tiles are shared, and what is not done in registers is for the last one too.
// CHECK-LABEL: func.func @followed
// CHECK:         irees.counters : memref<3xi32>
// CHECK:         scf.forall (%{{.*}}) in (2) {
// CHECK:           %[[FLAG:.*]] = memref.alloc() : memref<1xi32, #gpu.address_space<workgroup>>
// CHECK:             scf.forall
// CHECK:             } {mapping = [#gpu.thread<linear_dim_0>]}
// CHECK-NEXT:        gpu.barrier
// CHECK-NEXT:        arith.constant
// CHECK-NEXT:        %[[ALONE:.*]] = memref.load %[[FLAG]]
// CHECK:             %[[MINE:.*]] = arith.cmpi ne, %[[ALONE]]
// CHECK-NEXT:        scf.if %[[MINE]] {
// CHECK-NEXT:          linalg.generic {{.*}}"reduction"]} ins(%r
func.func @followed(%a: memref<24x512xf32>, %b: memref<512x64xf32>, %c: memref<24x64xf32>, %y: memref<24xf32>) {
  scf.forall (%i) in (3) {
    %c8 = arith.constant 8 : index
    %m = arith.muli %i, %c8 : index
    %p = memref.subview %a[%m, 0] [8, 512] [1, 1] : memref<24x512xf32> to memref<8x512xf32, strided<[512, 1], offset: ?>>
    %r = memref.subview %c[%m, 0] [8, 64] [1, 1] : memref<24x64xf32> to memref<8x64xf32, strided<[64, 1], offset: ?>>
    %s = memref.subview %y[%m] [8] [1] : memref<24xf32> to memref<8xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [8, 64, 1, 4, 32], stream_k = [3, 2]}>}
        ins(%p, %b : memref<8x512xf32, strided<[512, 1], offset: ?>>, memref<512x64xf32>)
        outs(%r : memref<8x64xf32, strided<[64, 1], offset: ?>>) {
    ^bb0(%x: f32, %v: f32, %z: f32):
      %q = arith.mulf %x, %v : f32
      %u = arith.addf %z, %q : f32
      linalg.yield %u : f32
    }
    linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]}
        ins(%r : memref<8x64xf32, strided<[64, 1], offset: ?>>) outs(%s : memref<8xf32, strided<[1], offset: ?>>) {
    ^bb0(%x: f32, %z: f32):
      %u = arith.addf %z, %x : f32
      linalg.yield %u : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
