// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=32"},irees-vectorize-structured-ops' | filecheck %s

// Four vectors of columns are summed side by side, as one; what is left over is a vector of its own.
// CHECK-LABEL: func.func @wide_columns
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:           scf.for
// CHECK:             vector.load %{{.*}} : memref<9x40xf32>, vector<32xf32>
// CHECK:             arith.addf %{{.*}} : vector<32xf32>
// CHECK:         scf.for
// CHECK:           vector.load %{{.*}} : memref<9x40xf32>, vector<8xf32>
func.func @wide_columns(%x: memref<9x40xf32>, %y: memref<40xf32>) {
  linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<9x40xf32>) outs(%y : memref<40xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  }
  return
}

// Comparisons of vectors that are wider than a register are taken apart: one vector at a time.
// CHECK-LABEL: func.func @no_wide_columns
// CHECK-NOT:     vector<32xf32>
// CHECK:         return
func.func @no_wide_columns(%x: memref<9x40xf32>, %y: memref<40xf32>) {
  linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<9x40xf32>) outs(%y : memref<40xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  }
  return
}

// A loop without vectors reads the table of an outer loop before it.
// CHECK-LABEL: func.func @row_table
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           %[[P:.*]] = memref.load %{{.*}}[%[[I]]] : memref<4xindex>
// CHECK:           scf.for
// CHECK:             memref.load %{{.*}}[%[[P]], %{{.*}}] : memref<3x3xf32>
func.func @row_table(%r: memref<4xindex>, %c: memref<5xindex>, %x: memref<3x3xf32>, %y: memref<4x5xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%r, %c : memref<4xindex>, memref<5xindex>) outs(%y : memref<4x5xf32>) {
  ^bb0(%p: index, %q: index, %o: f32):
    %v = memref.load %x[%p, %q] : memref<3x3xf32>
    linalg.yield %v : f32
  }
  return
}
