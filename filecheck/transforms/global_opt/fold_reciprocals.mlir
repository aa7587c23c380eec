// RUN: xdsl-opt %s -p irees-fold-reciprocals | filecheck %s

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// SiLU as frameworks write it: one division a point is left, and no product.
// CHECK-LABEL: func.func @silu
// CHECK:         ^bb0(%[[X:.*]]: f32, %{{.*}}: f32):
// CHECK:           %[[D:.*]] = arith.addf
// CHECK-NEXT:      %[[Y:.*]] = arith.divf %[[X]], %[[D]] : f32
// CHECK-NEXT:      linalg.yield %[[Y]]
func.func @silu(%x: tensor<?x8xf32>, %e: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %one = arith.constant 1.0 : f32
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    %p = math.exp %n : f32
    %d = arith.addf %p, %one : f32
    %r = arith.divf %one, %d : f32
    %t = arith.mulf %r, %a : f32
    linalg.yield %t : f32
  } -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// One reciprocal of a row's sum serves the whole row, and so does that of each column.
// CHECK-LABEL: func.func @no_shared
// CHECK-COUNT-2: arith.mulf
// CHECK:         return
func.func @no_shared(%x: tensor<4x8xf32>, %s: tensor<4xf32>, %c: tensor<8xf32>, %e: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %one = arith.constant 1.0 : f32
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %d: f32, %o: f32):
    %r = arith.divf %one, %d : f32
    %t = arith.mulf %a, %r : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %z = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %c : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %d: f32, %o: f32):
    %r = arith.divf %one, %d : f32
    %t = arith.mulf %a, %r : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}

// The reciprocal is a result itself; another numerator than 1 is no reciprocal.
// CHECK-LABEL: func.func @no_other_reader
// CHECK-COUNT-2: arith.mulf
// CHECK:         return
func.func @no_other_reader(%x: tensor<4x8xf32>, %e: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %y, %q = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e, %e : tensor<4x8xf32>, tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32, %o1: f32):
    %r = arith.divf %one, %a : f32
    %t = arith.mulf %a, %r : f32
    linalg.yield %t, %r : f32, f32
  } -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %z = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.divf %two, %a : f32
    %t = arith.mulf %a, %r : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  return %y, %q, %z : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
