// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=64 vector_registers=32"},irees-vectorize-structured-ops' | filecheck %s

// Two features of seven rows are a block: nine rows of the image, in order, serve three taps of each.
// CHECK-LABEL: func.func @features
// CHECK:         scf.for
// CHECK:           scf.for {{.*}} iter_args(
// CHECK-COUNT-42:    arith.addf {{.*}} : vector<16xf32>
// CHECK-NOT:         arith.addf {{.*}} : vector<16xf32>
// CHECK:             scf.yield
// CHECK-COUNT-14: vector.store %{{.*}}, %o{{.*}} vector<16xf32>
// CHECK:         func.return
func.func @features(%x: memref<9x18xf32>, %f: memref<8x3x3xf32>, %o: memref<8x7x16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(f, h, w) -> (f, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%o : memref<8x7x16xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [affine_map<(f, h, w, y, x) -> (h + y, w + x)>, affine_map<(f, h, w, y, x) -> (f, y, x)>, affine_map<(f, h, w, y, x) -> (f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %f : memref<9x18xf32>, memref<8x3x3xf32>) outs(%o : memref<8x7x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  func.return
}

// Without a window along the rows, four rows of four features share loads.
// CHECK-LABEL: func.func @no_taps
// CHECK:         scf.for {{.*}} iter_args(
// CHECK-COUNT-16:  arith.addf {{.*}} : vector<16xf32>
// CHECK-NOT:       arith.addf {{.*}} : vector<16xf32>
// CHECK:           scf.yield
func.func @no_taps(%x: memref<8x18xf32>, %f: memref<8x3xf32>, %o: memref<8x8x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(f, h, w, x) -> (h, w + x)>, affine_map<(f, h, w, x) -> (f, x)>, affine_map<(f, h, w, x) -> (f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %f : memref<8x18xf32>, memref<8x3xf32>) outs(%o : memref<8x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  func.return
}

// A row of 28 that starts from a constant is two vectors that overlap, one of 7 two of four lanes.
// CHECK-LABEL: func.func @overlap
// CHECK:         vector.store %{{.*}}, %o[%{{.*}}] : memref<28xf32>, vector<16xf32>
// CHECK-NOT:     vector<8xf32>
// CHECK:         vector.store %{{.*}}, %o[%{{.*}}] : memref<28xf32>, vector<16xf32>
// CHECK-NOT:     vector<8xf32>
// CHECK-LABEL: func.func @short
// CHECK:         vector.store %{{.*}}, %o[%{{.*}}] : memref<7xf32>, vector<4xf32>
// CHECK-NOT:     memref.store
// CHECK:         vector.store %{{.*}}, %o[%{{.*}}] : memref<7xf32>, vector<4xf32>
// CHECK-NOT:     memref.store
// CHECK:         func.return
func.func @overlap(%x: memref<9x28xf32>, %o: memref<28xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(w) -> (w)>], iterator_types = ["parallel"]} outs(%o : memref<28xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [affine_map<(w, k) -> (k, w)>, affine_map<(w, k) -> (w)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<9x28xf32>) outs(%o : memref<28xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %c, %a : f32
    linalg.yield %s : f32
  }
  func.return
}
func.func @short(%x: memref<9x7xf32>, %o: memref<7xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(w) -> (w)>], iterator_types = ["parallel"]} outs(%o : memref<7xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [affine_map<(w, k) -> (k, w)>, affine_map<(w, k) -> (w)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<9x7xf32>) outs(%o : memref<7xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %c, %a : f32
    linalg.yield %s : f32
  }
  func.return
}

// What is added to a row in memory is not added again: its end is shorter vectors.
// CHECK-LABEL: func.func @no_overlap
// CHECK:         vector.store %{{.*}}, %o[%{{.*}}] : memref<28xf32>, vector<16xf32>
// CHECK:         vector.store %{{.*}}, %o[%{{.*}}] : memref<28xf32>, vector<8xf32>
// CHECK:         vector.store %{{.*}}, %o[%{{.*}}] : memref<28xf32>, vector<4xf32>
func.func @no_overlap(%x: memref<3x28xf32>, %o: memref<28xf32>) {
  linalg.generic {indexing_maps = [affine_map<(w, k) -> (k, w)>, affine_map<(w, k) -> (w)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<3x28xf32>) outs(%o : memref<28xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %c, %a : f32
    linalg.yield %s : f32
  }
  func.return
}
