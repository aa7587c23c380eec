// RUN: irees opt %s -p irees-gpu-lower-transposes | filecheck %s

#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>

// What lies crosswise goes to shared memory, with one element between rows.
// CHECK-LABEL: func.func @turned
// CHECK:         %[[T:.*]] = memref.alloc() : memref<32x33xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.forall (%{{.*}}) in (1024) {
// CHECK:           memref.store %{{.*}}, %[[T]]
// CHECK:         gpu.barrier
// CHECK:         %[[V:.*]] = memref.subview %[[T]][0, 0] [32, 32] [1, 1]
// CHECK:         linalg.generic {{.*}} ins(%[[V]], %z
func.func @turned(%x: memref<32x32xf32>, %z: memref<32x32xf32>, %y: memref<32x32xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#ji, #ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%x, %z : memref<32x32xf32>, memref<32x32xf32>) outs(%y : memref<32x32xf32>) {
    ^bb0(%a: f32, %c: f32, %o: f32):
      %n = arith.addf %a, %c : f32
      linalg.yield %n : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// The last tile of a dynamic dim is no larger than the others.
// CHECK-LABEL: func.func @dynamic
// CHECK:         memref.alloc() : memref<32x17xf32, #gpu.address_space<workgroup>>
func.func @dynamic(%x: memref<?x16xf32>, %y: memref<16x?xf32>, %n: index) {
  scf.forall (%b) in (1) {
    %c32 = arith.constant 32 : index
    %m = arith.minsi %n, %c32 : index
    %s = memref.subview %x[0, 0] [%m, 16] [1, 1] : memref<?x16xf32> to memref<?x16xf32, strided<[16, 1]>>
    %d = memref.subview %y[0, 0] [16, %m] [1, 1] : memref<16x?xf32> to memref<16x?xf32, strided<[?, 1]>>
    linalg.generic {indexing_maps = [#ji, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%s : memref<?x16xf32, strided<[16, 1]>>) outs(%d : memref<16x?xf32, strided<[?, 1]>>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Nothing lies crosswise.
// CHECK-LABEL: func.func @no_turn
// CHECK-NOT:     memref.alloc
func.func @no_turn(%x: memref<32x32xf32>, %y: memref<32x32xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<32x32xf32>) outs(%y : memref<32x32xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// The tile is too large to have several of them.
// CHECK-LABEL: func.func @no_large
// CHECK-NOT:     memref.alloc
func.func @no_large(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#ji, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<64x64xf32>) outs(%y : memref<64x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
