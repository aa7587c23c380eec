// RUN: xdsl-opt %s -p irees-rematerialize-parallel-ops | filecheck %s

// The exponentials are computed for the sum and again for the quotient; nothing of the row's size is kept.
// CHECK-LABEL: func.func @softmax
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<4x8xf32>, tensor<4xf32>)
// CHECK:           math.exp
// CHECK-NEXT:      arith.addf
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%x, %m, %[[S]] : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK:           math.exp
// CHECK-NEXT:      arith.divf
func.func @softmax(%x: tensor<4x8xf32>, %m: tensor<4xf32>, %z: tensor<4xf32>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<4x8xf32>, tensor<4xf32>) outs(%o : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %p = math.exp %d : f32
    linalg.yield %p : f32
  } -> tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%e : tensor<4x8xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %d = arith.addf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%e, %s : tensor<4x8xf32>, tensor<4xf32>) outs(%o : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// One point is computed once.
// CHECK-LABEL: func.func @no_point
// CHECK-COUNT-2: linalg.generic
func.func @no_point(%x: tensor<1xf32>, %o: tensor<1xf32>) -> tensor<1xf32> {
  %e = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<1xf32>) outs(%o : tensor<1xf32>) {
  ^bb0(%a: f32, %c: f32):
    %p = math.exp %a : f32
    linalg.yield %p : f32
  } -> tensor<1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%e : tensor<1xf32>) outs(%o : tensor<1xf32>) {
  ^bb0(%a: f32, %c: f32):
    %p = arith.negf %a : f32
    linalg.yield %p : f32
  } -> tensor<1xf32>
  return %r : tensor<1xf32>
}

// A gather is not repeated.
// CHECK-LABEL: func.func @no_gather
// CHECK-COUNT-2: linalg.generic
func.func @no_gather(%i: tensor<8xi64>, %t: tensor<9xf32>, %o: tensor<8xf32>) -> tensor<8xf32> {
  %e = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%i : tensor<8xi64>) outs(%o : tensor<8xf32>) {
  ^bb0(%a: i64, %c: f32):
    %k = arith.index_cast %a : i64 to index
    %p = tensor.extract %t[%k] : tensor<9xf32>
    linalg.yield %p : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%e : tensor<8xf32>) outs(%o : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %p = arith.negf %a : f32
    linalg.yield %p : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// What is returned is there anyway.
// CHECK-LABEL: func.func @no_other_reader
// CHECK:         %[[E:.*]] = linalg.generic
// CHECK:         linalg.generic {{.*}} ins(%[[E]]
func.func @no_other_reader(%x: tensor<8xf32>, %o: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%o : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %p = math.exp %a : f32
    linalg.yield %p : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%e : tensor<8xf32>) outs(%o : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %p = arith.negf %a : f32
    linalg.yield %p : f32
  } -> tensor<8xf32>
  return %e, %r : tensor<8xf32>, tensor<8xf32>
}
