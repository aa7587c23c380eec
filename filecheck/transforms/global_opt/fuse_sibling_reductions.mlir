// RUN: xdsl-opt %s -p irees-fuse-sibling-reductions | filecheck %s

#x = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#ii = affine_map<(i) -> (i)>

// Inputs that are the same are one; what reads the first result before comes after both.
// CHECK-LABEL: func.func @two
// CHECK:         %[[S:.*]], %[[M:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x, %y : tensor<4x?xf32>, tensor<4xf32>) outs(%e, %e : tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[P:.*]]: f32, %[[Q:.*]]: f32):
// CHECK-NEXT:      %[[T:.*]] = arith.addf %[[A]], %[[P]] : f32
// CHECK-NEXT:      %[[C:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT:      %[[U:.*]] = arith.maxnumf %[[C]], %[[Q]] : f32
// CHECK-NEXT:      linalg.yield %[[T]], %[[U]]
// CHECK:         %[[N:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<4xf32>)
// CHECK:         func.return %[[N]], %[[M]]
func.func @two(%x: tensor<4x?xf32>, %y: tensor<4xf32>, %e: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = linalg.generic {indexing_maps = [#x, #i], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x?xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %a, %acc : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %n = linalg.generic {indexing_maps = [#ii, #ii], iterator_types = ["parallel"]} ins(%s : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.negf %a : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#x, #i, #i], iterator_types = ["parallel", "reduction"]} ins(%x, %y : tensor<4x?xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.maxnumf %p, %acc : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %n, %m : tensor<4xf32>, tensor<4xf32>
}


// The second reads what the first one makes, by way of another op.
// CHECK-LABEL: func.func @one_after_the_other
// CHECK-COUNT-3: = linalg.generic
// CHECK-NOT:     linalg.generic
func.func @one_after_the_other(%x: tensor<4x8xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %s = linalg.generic {indexing_maps = [#x, #i], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %a, %acc : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %n = linalg.generic {indexing_maps = [#ii, #ii], iterator_types = ["parallel"]} ins(%s : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.negf %a : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#x, #i], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%n : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %a, %acc : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %m : tensor<4xf32>
}


#t = affine_map<(i, j) -> (j, i)>

// Rows of one are columns of the other.
// CHECK-LABEL: func.func @crosswise
// CHECK-COUNT-2: = linalg.generic
// CHECK-NOT:     linalg.generic
func.func @crosswise(%x: tensor<4x4xf32>, %e: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = linalg.generic {indexing_maps = [#x, #i], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %a, %acc : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#t, #i], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %a, %acc : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %s, %m : tensor<4xf32>, tensor<4xf32>
}
