// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

memref.global "private" constant @c : memref<2xf32> = dense<[1.0, 2.0]> {alignment = 64 : i64}
memref.global "private" @u : memref<2xf32> = uninitialized
memref.global @e : memref<2xf32>
func.func @f(%n: index, %t: tensor<8x?xf32>, %s: tensor<1x4xf32>, %m: memref<4xf32>, %d: memref<?xf32>) -> tensor<8x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %0 = scf.forall (%i, %j) in (%n, 8) shared_outs(%o = %t) -> (tensor<8x?xf32>) {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i, %j] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x?xf32>
    }
  } {mapping = [#gpu.block<y>, #gpu.block<x>]}
  scf.forall (%i) = (0) to (%n) step (4) {
    %x = memref.load %d[%i] : memref<?xf32>
    memref.store %x, %d[%i] : memref<?xf32>
  }
  %r = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%z) -> f32 {
    scf.reduce(%z : f32) {
    ^bb0(%a: f32, %b: f32):
      %x = arith.addf %a, %b : f32
      scf.reduce.return %x : f32
    }
  }
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c1) {
    memref.store %z, %d[%i] : memref<?xf32>
    scf.reduce
  }
  memref.copy %m, %d : memref<4xf32> to memref<?xf32>
  %cast = memref.cast %m : memref<4xf32> to memref<?xf32>
  %rank = memref.rank %m : memref<4xf32>
  %ms = memref.alloc() : memref<4xf32, #gpu.address_space<workgroup>>
  %msc = memref.memory_space_cast %ms : memref<4xf32, #gpu.address_space<workgroup>> to memref<4xf32>
  return %0 : tensor<8x?xf32>
}

// CHECK:      builtin.module {
// CHECK-NEXT:   memref.global "private" constant @c : memref<2xf32> = dense<[1.000000e+00, 2.000000e+00]> alignment = 64
// CHECK-NEXT:   memref.global "private" @u : memref<2xf32> = uninitialized
// CHECK-NEXT:   memref.global @e : memref<2xf32>
// CHECK-NEXT:   func.func @f(%n: index, %t: tensor<8x?xf32>, %s: tensor<1x4xf32>, %m: memref<4xf32>, %d: memref<?xf32>) -> tensor<8x?xf32> {
// CHECK-NEXT:     %c0 = arith.constant 0 : index
// CHECK-NEXT:     %c1 = arith.constant 1 : index
// CHECK-NEXT:     %z = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %0 = scf.forall (%i, %j) in (%n, 8) shared_outs(%o = %t) -> (tensor<8x?xf32>) {
// CHECK-NEXT:       scf.forall.in_parallel {
// CHECK-NEXT:         tensor.parallel_insert_slice %s into %o[%i, %j] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x?xf32>
// CHECK-NEXT:       }
// CHECK-NEXT:     } {mapping = [#gpu.block<y>, #gpu.block<x>]}
// CHECK-NEXT:     scf.forall (%i_1) = (0) to (%n) step (4) {
// CHECK-NEXT:       %x = memref.load %d[%i_1] : memref<?xf32>
// CHECK-NEXT:       memref.store %x, %d[%i_1] : memref<?xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %r = scf.parallel (%i_2) = (%c0) to (%n) step (%c1) init (%z) -> f32 {
// CHECK-NEXT:       scf.reduce(%z : f32) {
// CHECK-NEXT:       ^bb0(%a: f32, %b: f32):
// CHECK-NEXT:         %x_1 = arith.addf %a, %b : f32
// CHECK-NEXT:         scf.reduce.return %x_1 : f32
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     scf.parallel (%i_3, %j_1) = (%c0, %c0) to (%n, %n) step (%c1, %c1) {
// CHECK-NEXT:       memref.store %z, %d[%i_3] : memref<?xf32>
// CHECK-NEXT:       scf.reduce
// CHECK-NEXT:     }
// CHECK-NEXT:     memref.copy %m, %d : memref<4xf32> to memref<?xf32>
// CHECK-NEXT:     %cast = memref.cast %m : memref<4xf32> to memref<?xf32>
// CHECK-NEXT:     %rank = memref.rank %m : memref<4xf32>
// CHECK-NEXT:     %ms = memref.alloc() : memref<4xf32, #gpu.address_space<workgroup>>
// CHECK-NEXT:     %msc = memref.memory_space_cast %ms : memref<4xf32, #gpu.address_space<workgroup>> to memref<4xf32>
// CHECK-NEXT:     func.return %0 : tensor<8x?xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
