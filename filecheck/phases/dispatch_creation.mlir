// RUN: xdsl-opt %s -p 'irees-pipeline{to=dispatch-creation target="cpu:generic"}' | filecheck %s

// One kernel holds the fill, the contraction and its epilogue; the host calls it.
// CHECK:       flow.executable @main_dispatch_0
// CHECK:        func.func @main_dispatch_0
// CHECK:        tensor.empty
// CHECK:        linalg.generic
// CHECK:        linalg.generic
// CHECK:        linalg.generic
// CHECK:        iree_tensor_ext.dispatch.tensor.store
// CHECK-NOT:    flow.executable
// CHECK:       func.func @main(%x: tensor<?x32xf32>
// CHECK:        %[[R:.*]] = flow.dispatch @main_dispatch_0::@main_dispatch_0(%x, %w, %b, {{.*}}) -> tensor<?x48xf32>
// CHECK-NEXT:      func.return %[[R]]
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
