// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=32"},irees-vectorize-shuffled-ops' | filecheck %s

// A transpose is done in tiles of 8 x 8: all loads, three rounds of shuffles, all stores. What is
// left of either loop is done point by point.
// CHECK-LABEL: func.func @transpose
// CHECK-COUNT-8: vector.load %x[%{{.*}}] : memref<20x40xf32>, vector<8xf32>
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [0, 8, 2, 10, 4, 12, 6, 14] : vector<8xf32>, vector<8xf32>
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [1, 9, 3, 11, 5, 13, 7, 15]
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [0, 1, 8, 9, 4, 5, 12, 13]
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 8, 9, 10, 11]
// CHECK:         %[[V:.*]] = vector.shuffle %{{.*}}, %{{.*}} [4, 5, 6, 7, 12, 13, 14, 15]
// CHECK:         arith.negf %{{.*}} : vector<8xf32>
// CHECK-NEXT:    vector.store %{{.*}}, %y[%{{.*}}] : memref<40x20xf32>, vector<8xf32>
// CHECK:         memref.load %x
func.func @transpose(%x: memref<20x40xf32>, %y: memref<40x20xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<20x40xf32>) outs(%y : memref<40x20xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  }
  return
}

// A last loop of two iterations: both become vectors of its neighbour, which are interleaved. Of 13
// iterations 8 and 4 are vectors.
// CHECK-LABEL: func.func @pairs
// CHECK:         %[[F:.*]] = memref.collapse_shape %o {{.*}} : memref<4x13x2xf32> into memref<4x26xf32>
// CHECK:         scf.for
// CHECK:           %[[A:.*]] = vector.load %x[%{{.*}}, %{{.*}}] : memref<4x13xf32>, vector<8xf32>
// CHECK:           %[[B:.*]] = vector.load %x[%{{.*}}, %{{.*}}] : memref<4x13xf32>, vector<8xf32>
// CHECK:           %[[L:.*]] = vector.shuffle %[[A]], %[[B]] [0, 8, 1, 9, 2, 10, 3, 11]
// CHECK-NEXT:      %[[H:.*]] = vector.shuffle %[[A]], %[[B]] [4, 12, 5, 13, 6, 14, 7, 15]
// CHECK:           vector.store %[[L]], %[[F]]
// CHECK:           vector.store %[[H]], %[[F]]
// CHECK:           vector.load {{.*}}, vector<4xf32>
// CHECK:           memref.load
func.func @pairs(%x: memref<4x13xf32>, %o: memref<4x13x2xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<4x13xf32>) outs(%o : memref<4x13x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}

// Three vectors: each result is put together from all of them.
// CHECK-LABEL: func.func @colors
// CHECK:           vector.shuffle {{.*}} [0, 8, 0, 1, 9, 0, 2, 10]
// CHECK-NEXT:      vector.shuffle {{.*}} [0, 1, 8, 3, 4, 9, 6, 7]
// CHECK-NOT:       memref.load
// CHECK:         func.return
func.func @colors(%x: memref<16xf32>, %o: memref<16x3xf32>) {
  linalg.generic {indexing_maps = [affine_map<(j, k) -> (j)>, affine_map<(j, k) -> (j, k)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<16xf32>) outs(%o : memref<16x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}

// Gaps between the pairs, or more iterations than registers, stay as they are.
// CHECK-LABEL: func.func @no_gaps
// CHECK-NOT:     vector.shuffle
// CHECK:         func.return
func.func @no_gaps(%x: memref<16xf32>, %o: memref<16x2xf32, strided<[4, 1]>>, %p: memref<16x5xf32>) {
  linalg.generic {indexing_maps = [affine_map<(j, k) -> (j)>, affine_map<(j, k) -> (j, k)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<16xf32>) outs(%o : memref<16x2xf32, strided<[4, 1]>>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [affine_map<(j, k) -> (j)>, affine_map<(j, k) -> (j, k)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<16xf32>) outs(%p : memref<16x5xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  func.return
}
