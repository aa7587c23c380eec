// RUN: xdsl-opt %s -p 'irees-pipeline{to=codegen target="cpu:generic"}' | filecheck %s

// The kernel is a parallel loop over rows; inside there are vectors, and no op is structured.
// CHECK:       flow.executable @main_dispatch_0
// CHECK:        scf.forall
// CHECK-NOT:     linalg.generic
// CHECK:        vector.broadcast %{{.*}} : f32 to vector<4xf32>
// CHECK:        arith.mulf %{{.*}} : vector<4xf32>
// CHECK:        arith.maximumf %{{.*}} : vector<4xf32>
// CHECK:       func.func @main(%x: memref<?x32xf32>
// CHECK:        stream.cmd.dispatch @main_dispatch_0
func.func @main(%x: tensor<?x32xf32>, %w: tensor<32x48xf32>, %b: tensor<48xf32>) -> tensor<?x48xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x48xf32>) -> tensor<?x48xf32>
  %m = linalg.matmul ins(%x, %w : tensor<?x32xf32>, tensor<32x48xf32>) outs(%f : tensor<?x48xf32>) -> tensor<?x48xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m, %b : tensor<?x48xf32>, tensor<48xf32>) outs(%e : tensor<?x48xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %1 = arith.addf %p, %q : f32
    linalg.yield %1 : f32
  } -> tensor<?x48xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<?x48xf32>) outs(%e : tensor<?x48xf32>) {
  ^bb0(%p: f32, %o: f32):
    %1 = arith.maximumf %p, %zero : f32
    linalg.yield %1 : f32
  } -> tensor<?x48xf32>
  return %r : tensor<?x48xf32>
}
