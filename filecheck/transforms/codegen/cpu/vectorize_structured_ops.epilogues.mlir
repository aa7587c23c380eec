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

// A row that is shorter than a vector takes two vectors of 8 lanes, or of 4, the second of which
// ends at its last element.
// CHECK-LABEL: func.func @short
// CHECK:         scf.if
// CHECK:           vector.store %{{.*}}, %o{{.*}} vector<16xf32>
// CHECK:         } else {
// CHECK:           scf.if
// CHECK:             vector.store %{{.*}}, %o{{.*}} vector<8xf32>
// CHECK:             %[[START:.*]] = arith.subi %{{.*}}, %{{.*}} : index
// CHECK:             vector.store %{{.*}}, %o[%[[START]]] : memref<?xf32>, vector<8xf32>
// CHECK:           } else {
// CHECK:             vector.store %{{.*}}, %o{{.*}} vector<4xf32>
// CHECK:             vector.store %{{.*}}, %o{{.*}} vector<4xf32>
// CHECK:           } else {
// CHECK:             memref.store %{{.*}}, %o
func.func @short(%x: memref<?xf32>, %o: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%o : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  }
  return
}

// A sum that starts from zeros may be computed again; the last vector ends at the last column.
// CHECK-LABEL: func.func @filled
// CHECK:         scf.if
// CHECK:           %[[LAST:.*]] = arith.subi %{{.*}}, %{{.*}} : index
// CHECK:           vector.store %{{.*}}, %o[%{{.*}}, %[[LAST]]] : memref<4x?xf32>, vector<16xf32>
// CHECK:         } else {
// CHECK:           vector.store %{{.*}}, %o{{.*}} vector<8xf32>
func.func @filled(%x: memref<4x3x?xf32>, %o: memref<4x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%o : memref<4x?xf32>) {
  ^bb0(%b: f32):
    %zero = arith.constant 0.0 : f32
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : memref<4x3x?xf32>) outs(%o : memref<4x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }
  return
}

// What is added to is written: no column may be computed again.
// CHECK-LABEL: func.func @no_filled
// CHECK-NOT:     arith.subi
// CHECK:         func.return
func.func @no_filled(%x: memref<4x3x?xf32>, %y: memref<4x?xf32>, %o: memref<4x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%o : memref<4x?xf32>) {
  ^bb0(%b: f32):
    %zero = arith.constant 0.0 : f32
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : memref<4x3x?xf32>) outs(%o : memref<4x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%o : memref<4x?xf32>) outs(%y : memref<4x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }
  return
}
