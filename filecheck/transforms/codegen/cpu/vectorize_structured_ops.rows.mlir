// RUN: xdsl-opt %s -p irees-vectorize-structured-ops | filecheck %s

// Rows that share the places of their columns run in one loop; the place of each row is loaded ahead.
// CHECK-LABEL: func.func @resample
// CHECK:         scf.for %[[Y:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:           %[[R0:.*]] = memref.load %rows[%[[Y]]]
// CHECK:           %[[R1:.*]] = memref.load %rows[%{{.*}}]
// CHECK:           %[[R2:.*]] = memref.load %rows[%{{.*}}]
// CHECK:           %[[R3:.*]] = memref.load %rows[%{{.*}}]
// CHECK:           scf.for %[[X:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NOT:         memref.load %rows
// CHECK:             %[[C:.*]] = memref.load %columns[%[[X]]]
// CHECK:             %[[D:.*]] = arith.maxsi %{{.*}}, %{{.*}} : index
// CHECK:             memref.load %x[%[[R0]], %[[D]]]
// CHECK:             memref.load %x[%[[R1]], %[[D]]]
// CHECK:             memref.load %x[%[[R2]], %[[D]]]
// CHECK:             memref.load %x[%[[R3]], %[[D]]]
func.func @resample(%x: memref<8x8xf32>, %rows: memref<20xindex>, %columns: memref<15xindex>, %y: memref<20x15xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%rows, %columns : memref<20xindex>, memref<15xindex>) outs(%y : memref<20x15xf32>) {
  ^bb0(%i: index, %j: index, %o: f32):
    %most = arith.constant 7 : index
    %least = arith.constant 0 : index
    %k = arith.minsi %j, %most : index
    %l = arith.maxsi %k, %least : index
    %s = memref.load %x[%i, %l] : memref<8x8xf32>
    linalg.yield %s : f32
  }
  return
}

// Of two loops that share as much, the one with more rows is taken: here the second.
// CHECK-LABEL: func.func @channels
// CHECK:         scf.for %[[Z:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:           scf.for %[[Y:.*]] = %{{.*}} to %{{.*}} step %[[STEP:.*]] {
// CHECK-COUNT-4:     memref.load %rows
// CHECK:             scf.for
// CHECK-COUNT-4:       memref.load %x[%[[Z]],
func.func @channels(%x: memref<2x8x8xf32>, %rows: memref<20xindex>, %columns: memref<15xindex>, %y: memref<2x20x15xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%rows, %columns : memref<20xindex>, memref<15xindex>) outs(%y : memref<2x20x15xf32>) {
  ^bb0(%i: index, %j: index, %o: f32):
    %z = linalg.index 0 : index
    %most = arith.constant 7 : index
    %least = arith.constant 0 : index
    %k = arith.minsi %j, %most : index
    %l = arith.maxsi %k, %least : index
    %s = memref.load %x[%z, %i, %l] : memref<2x8x8xf32>
    linalg.yield %s : f32
  }
  return
}
