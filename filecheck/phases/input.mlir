// RUN: xdsl-opt %s -p 'irees-pipeline{to=input target="cpu:generic"}' | filecheck %s

// Dialects of other frontends are gone; what is linalg stays as it is, named ops too.
// CHECK:       util.global private mutable @seed
// CHECK-LABEL: func.func @main
// CHECK:        util.global.load @seed
// CHECK:        iree_linalg_ext.scan dimension(0) inclusive(true)
// CHECK:        linalg.matmul
// CHECK:        arith.muli
ml_program.global private mutable @seed(dense<0> : tensor<i64>) : tensor<i64>
func.func @main(%a: tensor<2x2xf32>, %x: tensor<6xi64>, %acc: tensor<i64>, %i: index) -> (tensor<2x2xf32>, tensor<6xi64>, tensor<i64>, index) {
  %seed = ml_program.global_load @seed : tensor<i64>
  %0:2 = tm_tensor.scan dimension(0) inclusive(true) ins(%x : tensor<6xi64>) outs(%x, %acc : tensor<6xi64>, tensor<i64>) {
  ^bb0(%p: i64, %q: i64):
    %sum = arith.addi %p, %q : i64
    tm_tensor.yield %sum : i64
  } -> tensor<6xi64>, tensor<i64>
  %m = linalg.matmul ins(%a, %a : tensor<2x2xf32>, tensor<2x2xf32>) outs(%a : tensor<2x2xf32>) -> tensor<2x2xf32>
  %j = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
  return %m, %0#0, %seed, %j : tensor<2x2xf32>, tensor<6xi64>, tensor<i64>, index
}

// Affine ops become arith and scf, and what nothing reads stays: the cast may be of another length.
// CHECK-LABEL: func.func @dead
// CHECK-NOT:     affine.
// CHECK:         tensor.cast %x : tensor<?xf32> to tensor<4xf32>
// CHECK:         %{{.*}} = arith.constant 3 : index
// CHECK-NEXT:    %[[M:.*]] = arith.muli %n, %{{.*}} : index
// CHECK-NEXT:    func.return %[[M]] : index
func.func @dead(%x: tensor<?xf32>, %n: index) -> index {
  %four = tensor.cast %x : tensor<?xf32> to tensor<4xf32>
  %m = affine.apply affine_map<(d0) -> (d0 * 3)> (%n)
  return %m : index
}
