// RUN: xdsl-opt %s -p irees-merge-variance-passes | filecheck %s

#x = affine_map<(g, c, p) -> (g, c, p)>
#g = affine_map<(g, c, p) -> (g)>

// What is squared lies around the first point of each group; the mean is not asked for.
// CHECK-LABEL: func.func @norm
// CHECK:         linalg.generic
// CHECK:         %[[S:.*]] = linalg.generic
// CHECK:         %[[P:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, 0, 0)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x, %x : tensor<?x4x8xf32>, tensor<?x4x8xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[K:.*]]: f32, %[[SQUARES:.*]]: f64):
// CHECK-NEXT:      %[[AW:.*]] = arith.extf %[[A]] : f32 to f64
// CHECK-NEXT:      %[[KW:.*]] = arith.extf %[[K]] : f32 to f64
// CHECK-NEXT:      %[[OFF:.*]] = arith.subf %[[AW]], %[[KW]] : f64
// CHECK-NEXT:      %[[OFF2:.*]] = arith.mulf %[[OFF]], %[[OFF]] : f64
// CHECK-NEXT:      %[[S2:.*]] = arith.addf %[[OFF2]], %[[SQUARES]] : f64
// CHECK-NEXT:      linalg.yield %[[S2]]
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0, 0, 0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%[[P]], %[[S]], %x : tensor<?xf64>, tensor<?xf64>, tensor<?x4x8xf32>)
// CHECK-NEXT:    ^bb0(%[[PS:.*]]: f64, %[[SS:.*]]: f64, %[[K1:.*]]: f32, %{{.*}}: f64):
// CHECK-NEXT:      %[[N:.*]] = arith.constant 3.200000e+01 : f64
// CHECK-NEXT:      %[[KW1:.*]] = arith.extf %[[K1]] : f32 to f64
// CHECK-NEXT:      %[[NK:.*]] = arith.mulf %[[KW1]], %[[N]] : f64
// CHECK-NEXT:      %[[D:.*]] = arith.subf %[[SS]], %[[NK]] : f64
// CHECK-NEXT:      %[[D2:.*]] = arith.mulf %[[D]], %[[D]] : f64
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

// The sum of the same points in f32, for the mean, is the one in f64, rounded. Another one is not.
// CHECK-LABEL: func.func @sums_beside
// CHECK:         %[[S:.*]] = linalg.generic {{.*}}"reduction"]} ins(%x : tensor<3x8xf32>)
// CHECK:         linalg.generic {{.*}}"reduction"]} ins(%x, %x : tensor<3x8xf32>, tensor<3x8xf32>)
// CHECK:         %[[R:.*]] = linalg.generic {{.*}}"parallel"]} ins(%[[S]] : tensor<3xf64>)
// CHECK-NEXT:    ^bb0(%[[W:.*]]: f64, %{{.*}}: f32):
// CHECK-NEXT:      arith.truncf %[[W]] : f64 to f32
// CHECK:         %[[O:.*]] = linalg.generic {{.*}}"reduction"]} ins(%y : tensor<3x8xf32>)
// CHECK:         return %{{.*}}, %[[R]], %[[O]]
func.func @sums_beside(%x: tensor<3x8xf32>, %y: tensor<3x8xf32>, %e: tensor<3xf64>, %e32: tensor<3xf32>) -> (tensor<3xf64>, tensor<3xf32>, tensor<3xf32>) {
  %n = arith.constant 8.0 : f64
  %zero = arith.constant 0.0 : f64
  %zero32 = arith.constant 0.0 : f32
  %f = linalg.generic {indexing_maps = [affine_map<(g) -> (g)>], iterator_types = ["parallel"]} outs(%e : tensor<3xf64>) {
  ^bb0(%o: f64):
    linalg.yield %zero : f64
  } -> tensor<3xf64>
  %f32 = linalg.generic {indexing_maps = [affine_map<(g) -> (g)>], iterator_types = ["parallel"]} outs(%e32 : tensor<3xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero32 : f32
  } -> tensor<3xf32>
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
  %r = linalg.generic {indexing_maps = [#x2, #g2], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x8xf32>) outs(%f32 : tensor<3xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %a, %acc : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %other = linalg.generic {indexing_maps = [#x2, #g2], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<3x8xf32>) outs(%f32 : tensor<3xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %a, %acc : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  return %q, %r, %other : tensor<3xf64>, tensor<3xf32>, tensor<3xf32>
}

// A sum of f64 whose size is not known is cast to the size of the one in f32.
// CHECK-LABEL: func.func @dynamic_sum
// CHECK:         tensor.cast %{{.*}} : tensor<?xf32> to tensor<3xf32>
func.func @dynamic_sum(%x: tensor<3x8xf32>, %e: tensor<?xf64>, %e32: tensor<3xf32>) -> (tensor<?xf64>, tensor<3xf32>) {
  %n = arith.constant 8.0 : f64
  %zero = arith.constant 0.0 : f64
  %zero32 = arith.constant 0.0 : f32
  %f = linalg.generic {indexing_maps = [affine_map<(g) -> (g)>], iterator_types = ["parallel"]} outs(%e : tensor<?xf64>) {
  ^bb0(%o: f64):
    linalg.yield %zero : f64
  } -> tensor<?xf64>
  %f32 = linalg.generic {indexing_maps = [affine_map<(g) -> (g)>], iterator_types = ["parallel"]} outs(%e32 : tensor<3xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero32 : f32
  } -> tensor<3xf32>
  %s = linalg.generic {indexing_maps = [#x2, #g2], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x8xf32>) outs(%f : tensor<?xf64>) {
  ^bb0(%a: f32, %acc: f64):
    %w = arith.extf %a : f32 to f64
    %t = arith.addf %w, %acc : f64
    linalg.yield %t : f64
  } -> tensor<?xf64>
  %q = linalg.generic {indexing_maps = [#x2, #g2, #g2], iterator_types = ["parallel", "reduction"]} ins(%x, %s : tensor<3x8xf32>, tensor<?xf64>) outs(%f : tensor<?xf64>) {
  ^bb0(%a: f32, %m: f64, %acc: f64):
    %mean = arith.divf %m, %n : f64
    %w = arith.extf %a : f32 to f64
    %d = arith.subf %w, %mean : f64
    %d2 = arith.mulf %d, %d : f64
    %t = arith.addf %d2, %acc : f64
    linalg.yield %t : f64
  } -> tensor<?xf64>
  %r = linalg.generic {indexing_maps = [#x2, #g2], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x8xf32>) outs(%f32 : tensor<3xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %a, %acc : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  return %q, %r : tensor<?xf64>, tensor<3xf32>
}

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
