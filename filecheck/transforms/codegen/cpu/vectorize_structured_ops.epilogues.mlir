// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=64"},irees-vectorize-structured-ops' | filecheck %s

// A sum of columns of any number: vectors of 16, 8 and 4, and single ones.
// CHECK-LABEL: func.func @columns
// CHECK:         scf.for %{{.*}} step
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[M:.*]] step
// CHECK-NEXT:      vector.load %o{{.*}} vector<16xf32>
// CHECK:           vector.store %{{.*}}, %o{{.*}} vector<16xf32>
// CHECK:         scf.for %{{.*}} = %[[M]] to %[[N:.*]] step
// CHECK-NEXT:      vector.load %o{{.*}} vector<8xf32>
// CHECK:           vector.store %{{.*}}, %o{{.*}} vector<8xf32>
// CHECK:         scf.for %{{.*}} = %[[N]] to %[[K:.*]] step
// CHECK-NEXT:      vector.load %o{{.*}} vector<4xf32>
// CHECK:           vector.store %{{.*}}, %o{{.*}} vector<4xf32>
// CHECK:         scf.for %{{.*}} = %[[K]] to %{{.*}} step
// CHECK-NEXT:      memref.load %o
func.func @columns(%x: memref<?x?xf32>, %o: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<?x?xf32>) outs(%o : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }
  return
}

// An update of one element is short: it has no vectors of fewer lanes.
// CHECK-LABEL: func.func @update
// CHECK:           vector.store %{{.*}}, %o{{.*}} vector<16xf32>
// CHECK-NOT:       vector<8xf32>
// CHECK:           memref.store
func.func @update(%x: memref<?xf32>, %o: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%o : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }
  return
}
