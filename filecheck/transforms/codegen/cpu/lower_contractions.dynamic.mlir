// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=32 vector_registers=16"},irees-lower-contractions' | filecheck %s

// A dynamic number of rows ends in blocks of 3 rows and of single ones; a dynamic number of columns
// in panels of one vector, the last of which has some valid columns.
// CHECK-LABEL: func.func @rests
// CHECK:         %[[M:.*]] = memref.dim %a
// CHECK:         %[[N:.*]] = memref.dim %b
// CHECK:         scf.for
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[WHOLE:.*]] step
// CHECK-NEXT:      panel.pack_columns {{.*}} {vectors = 2 : i64
// CHECK:           scf.for %{{.*}} = %{{.*}} to %[[SIXES:.*]] step
// CHECK:           %[[REST:.*]] = arith.subi %[[M]], %[[SIXES]] : index
// CHECK-NEXT:      %[[THREE:.*]] = arith.constant 3 : index
// CHECK-NEXT:      %[[COUNT:.*]] = arith.divui %[[REST]], %[[THREE]] : index
// CHECK-NEXT:      %[[LENGTH:.*]] = arith.muli %[[COUNT]], %[[THREE]] : index
// CHECK-NEXT:      %[[THREES:.*]] = arith.addi %[[SIXES]], %[[LENGTH]] : index
// CHECK-NEXT:      scf.for %{{.*}} = %[[SIXES]] to %[[THREES]] step %[[THREE]]
// CHECK:             panel.micro_kernel %{{.*}}[%{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}]
// CHECK:           scf.for %{{.*}} = %[[THREES]] to %[[M]] step
// CHECK:             panel.micro_kernel %{{.*}}[%{{[0-9]+}}] by
// CHECK:         %[[NARROW:.*]] = arith.addi %[[WHOLE]], %{{.*}} : index
// CHECK-NEXT:    scf.for %{{.*}} = %[[WHOLE]] to %[[NARROW]] step
// CHECK-NEXT:      panel.pack_columns {{.*}} {vectors = 1 : i64
// CHECK:         %[[VALID:.*]] = arith.subi %[[N]], %[[NARROW]] : index
// CHECK:         scf.if
// CHECK-NEXT:      panel.pack_columns {{.*}} valid %[[VALID]] {{.*}}{vectors = 1 : i64
func.func @rests(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}

// Known numbers of rows and columns have one block for what remains.
// CHECK-LABEL: func.func @no_rests
// CHECK-NOT:     {vectors = 1 : i64
// CHECK:         panel.micro_kernel %{{.*}}[%{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}]
// CHECK:         panel.micro_kernel %{{.*}}[%{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}]
// CHECK-NOT:     panel.micro_kernel
// CHECK:         func.return
func.func @no_rests(%a: memref<17x?xf32>, %b: memref<?x16xf32>, %c: memref<17x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<17x?xf32>, memref<?x16xf32>) outs(%c : memref<17x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }
  return
}
