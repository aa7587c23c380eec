// RUN: xdsl-opt %s -p 'irees-pipeline{to=global-opt target="cpu:generic"}' | filecheck %s

// The matmul is a generic, bias and relu are one op, and every size is a dim of an argument.
// CHECK-LABEL: func.func @main
// CHECK:        %[[N:.*]] = tensor.dim %x
// CHECK:        %[[E:.*]] = tensor.empty(%[[N]]) : tensor<?x48xf32>
// CHECK:        %[[F:.*]] = linalg.generic {{.*}} outs(%[[E]] : tensor<?x48xf32>)
// CHECK:        %[[M:.*]] = linalg.generic {{.*}} ins(%x, %w : tensor<?x32xf32>, tensor<32x48xf32>) outs(%[[F]] : tensor<?x48xf32>)
// CHECK:        %[[R:.*]] = linalg.generic {{.*}} ins(%[[M]], %b : tensor<?x48xf32>, tensor<48xf32>)
// CHECK:        %[[SUM:.*]] = arith.addf
// CHECK-NEXT:        arith.maximumf %[[SUM]]
// CHECK:        func.return %[[R]]
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
