// RUN: xdsl-opt %s -p irees-merge-variance-passes | filecheck %s

#x = affine_map<(g, c, p) -> (g, c, p)>
#g = affine_map<(g, c, p) -> (g)>

// What is summed up lies around the first point of each group; the mean is not asked for.
// CHECK-LABEL: func.func @norm
// CHECK:         linalg.generic
// CHECK:         %[[D:.*]], %[[P:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, 0, 0)>, affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x, %x : tensor<?x4x8xf32>, tensor<?x4x8xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[K:.*]]: f32, %[[ACC:.*]]: f64, %[[SQUARES:.*]]: f64):
// CHECK-NEXT:      %[[AW:.*]] = arith.extf %[[A]] : f32 to f64
// CHECK-NEXT:      %[[KW:.*]] = arith.extf %[[K]] : f32 to f64
// CHECK-NEXT:      %[[OFF:.*]] = arith.subf %[[AW]], %[[KW]] : f64
// CHECK-NEXT:      %[[OFF2:.*]] = arith.mulf %[[OFF]], %[[OFF]] : f64
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[OFF]], %[[ACC]] : f64
// CHECK-NEXT:      %[[S2:.*]] = arith.addf %[[OFF2]], %[[SQUARES]] : f64
// CHECK-NEXT:      linalg.yield %[[S]], %[[S2]]
// CHECK:         ins(%[[D]], %[[P]] : tensor<?xf64>, tensor<?xf64>)
// CHECK-NEXT:    ^bb0(%[[DS:.*]]: f64, %[[PS:.*]]: f64, %{{.*}}: f64):
// CHECK-NEXT:      %[[D2:.*]] = arith.mulf %[[DS]], %[[DS]] : f64
// CHECK-NEXT:      %[[N:.*]] = arith.constant 3.200000e+01 : f64
// CHECK-NEXT:      %[[L:.*]] = arith.divf %[[D2]], %[[N]] : f64
// CHECK-NEXT:      arith.subf %[[PS]], %[[L]] : f64
func.func @norm(%x: tensor<?x4x8xf32>, %e: tensor<?xf64>) -> (tensor<?xf64>, tensor<?xf64>) {
  %n = arith.constant 32.0 : f64
  %zero = arith.constant 0.0 : f64
  %f = linalg.generic {indexing_maps = [affine_map<(g) -> (g)>], iterator_types = ["parallel"]} outs(%e : tensor<?xf64>) {
  ^bb0(%o: f64):
    linalg.yield %zero : f64
  } -> tensor<?xf64>
  %s = linalg.generic {indexing_maps = [#x, #g], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x : tensor<?x4x8xf32>) outs(%f : tensor<?xf64>) {
  ^bb0(%a: f32, %acc: f64):
    %w = arith.extf %a : f32 to f64
    %t = arith.addf %w, %acc : f64
    linalg.yield %t : f64
  } -> tensor<?xf64>
  %q = linalg.generic {indexing_maps = [#x, #g, #g], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x, %s : tensor<?x4x8xf32>, tensor<?xf64>) outs(%f : tensor<?xf64>) {
  ^bb0(%a: f32, %m: f64, %acc: f64):
    %mean = arith.divf %m, %n : f64
    %w = arith.extf %a : f32 to f64
    %d = arith.subf %w, %mean : f64
    %d2 = arith.mulf %d, %d : f64
    %t = arith.addf %acc, %d2 : f64
    linalg.yield %t : f64
  } -> tensor<?xf64>
  return %s, %q : tensor<?xf64>, tensor<?xf64>
}


#x2 = affine_map<(g, p) -> (g, p)>
#g2 = affine_map<(g, p) -> (g)>

// Not the number of points; then sums in the type of the data, which has no digits to lose.
// CHECK-LABEL: func.func @other_number
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT:     linalg.generic
func.func @other_number(%x: tensor<3x8xf32>, %e: tensor<3xf64>) -> tensor<3xf64> {
  %n = arith.constant 7.0 : f64
  %zero = arith.constant 0.0 : f64
  %f = linalg.generic {indexing_maps = [affine_map<(g) -> (g)>], iterator_types = ["parallel"]} outs(%e : tensor<3xf64>) {
  ^bb0(%o: f64):
    linalg.yield %zero : f64
  } -> tensor<3xf64>
  %s = linalg.generic {indexing_maps = [#x2, #g2], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x8xf32>) outs(%f : tensor<3xf64>) {
  ^bb0(%a: f32, %acc: f64):
    %w = arith.extf %a : f32 to f64
    %t = arith.addf %w, %acc : f64
    linalg.yield %t : f64
  } -> tensor<3xf64>
  %q = linalg.generic {indexing_maps = [#x2, #g2, #g2], iterator_types = ["parallel", "reduction"]} ins(%x, %s : tensor<3x8xf32>, tensor<3xf64>) outs(%f : tensor<3xf64>) {
  ^bb0(%a: f32, %m: f64, %acc: f64):
    %mean = arith.divf %m, %n : f64
    %w = arith.extf %a : f32 to f64
    %d = arith.subf %w, %mean : f64
    %d2 = arith.mulf %d, %d : f64
    %t = arith.addf %d2, %acc : f64
    linalg.yield %t : f64
  } -> tensor<3xf64>
  return %q : tensor<3xf64>
}

// CHECK-LABEL: func.func @narrow_sums
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT:     linalg.generic
func.func @narrow_sums(%x: tensor<3x8xf32>, %e: tensor<3xf32>) -> tensor<3xf32> {
  %n = arith.constant 8.0 : f32
  %zero = arith.constant 0.0 : f32
  %f = linalg.generic {indexing_maps = [affine_map<(g) -> (g)>], iterator_types = ["parallel"]} outs(%e : tensor<3xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<3xf32>
  %s = linalg.generic {indexing_maps = [#x2, #g2], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x8xf32>) outs(%f : tensor<3xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %a, %acc : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %q = linalg.generic {indexing_maps = [#x2, #g2, #g2], iterator_types = ["parallel", "reduction"]} ins(%x, %s : tensor<3x8xf32>, tensor<3xf32>) outs(%f : tensor<3xf32>) {
  ^bb0(%a: f32, %m: f32, %acc: f32):
    %mean = arith.divf %m, %n : f32
    %d = arith.subf %a, %mean : f32
    %d2 = arith.mulf %d, %d : f32
    %t = arith.addf %d2, %acc : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  return %q : tensor<3xf32>
}
