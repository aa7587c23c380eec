// RUN: xdsl-opt %s -p irees-sink-reshapes | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#fine = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#groups = affine_map<(d0, d1, d2) -> (d0, d1)>

// Weights of int8 are scaled in groups of 64. The cast iterates over the groups, too, and so does the
// product with a vector, which reads each weight once.
// CHECK-LABEL: func.func @vector
// CHECK:         %[[W:.*]] = tensor.expand_shape %w {{\[\[0\], \[1, 2\]\]}} {{.*}} : tensor<32x512xi8> into tensor<32x8x64xi8>
// CHECK:         %[[C:.*]] = linalg.generic {{.*}} ins(%[[W]] : tensor<32x8x64xi8>)
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} ins(%[[C]], %s : tensor<32x8x64xf32>, tensor<32x8xf32>)
// CHECK:         %[[X:.*]] = tensor.expand_shape %x {{\[\[0, 1\]\]}} {{.*}} : tensor<512xf32> into tensor<8x64xf32>
// CHECK:         linalg.generic {{.*}}["parallel", "reduction", "reduction"]} ins(%[[X]], %[[S]] : tensor<8x64xf32>, tensor<32x8x64xf32>)
func.func @vector(%x: tensor<512xf32>, %w: tensor<32x512xi8>, %s: tensor<32x8xf32>, %o: tensor<32xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<32x512xf32>
  %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<32x512xi8>) outs(%e : tensor<32x512xf32>) {
  ^bb0(%a: i8, %b: f32):
    %f = arith.sitofp %a : i8 to f32
    linalg.yield %f : f32
  } -> tensor<32x512xf32>
  %g = tensor.expand_shape %c [[0], [1, 2]] output_shape [32, 8, 64] : tensor<32x512xf32> into tensor<32x8x64xf32>
  %h = tensor.empty() : tensor<32x8x64xf32>
  %m = linalg.generic {indexing_maps = [#fine, #groups, #fine], iterator_types = ["parallel", "parallel", "parallel"]} ins(%g, %s : tensor<32x8x64xf32>, tensor<32x8xf32>) outs(%h : tensor<32x8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<32x8x64xf32>
  %j = tensor.collapse_shape %m [[0], [1, 2]] : tensor<32x8x64xf32> into tensor<32x512xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, #id, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x, %j : tensor<512xf32>, tensor<32x512xf32>) outs(%o : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %d, %p : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  return %r : tensor<32xf32>
}

// A product with several rows reads the weights several times: their groups stay joined.
// CHECK-LABEL: func.func @rows
// CHECK:         %[[J:.*]] = tensor.collapse_shape
// CHECK:         linalg.generic {{.*}}["parallel", "parallel", "reduction"]} ins(%x, %[[J]] : tensor<4x512xf32>, tensor<32x512xf32>)
func.func @rows(%x: tensor<4x512xf32>, %w: tensor<32x8x64xf32>, %s: tensor<32x8xf32>, %o: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %h = tensor.empty() : tensor<32x8x64xf32>
  %m = linalg.generic {indexing_maps = [#fine, #groups, #fine], iterator_types = ["parallel", "parallel", "parallel"]} ins(%w, %s : tensor<32x8x64xf32>, tensor<32x8xf32>) outs(%h : tensor<32x8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<32x8x64xf32>
  %j = tensor.collapse_shape %m [[0], [1, 2]] : tensor<32x8x64xf32> into tensor<32x512xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %j : tensor<4x512xf32>, tensor<32x512xf32>) outs(%o : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %d: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %d, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x32xf32>
  return %r : tensor<4x32xf32>
}

// Loops as short as 3 iterations are taken where the reshape after the op restores them anyway; the
// reshapes are then gone.
// CHECK-LABEL: func.func @restored
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<4x3xf32>)
// CHECK:         math.absf
// CHECK:         tensor.collapse_shape
// CHECK:         return
// CHECK-LABEL: func.func @no_restored
// CHECK:         tensor.collapse_shape
// CHECK:         math.absf %{{.*}} : f32
// CHECK-NEXT:    linalg.yield
// CHECK-NEXT:    } -> tensor<12xf32>
func.func @restored(%x: tensor<4x3xf32>) -> tensor<1x4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %f = arith.negf %a : f32
    linalg.yield %f : f32
  } -> tensor<4x3xf32>
  %c = tensor.collapse_shape %n [[0, 1]] : tensor<4x3xf32> into tensor<12xf32>
  %h = tensor.empty() : tensor<12xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%c : tensor<12xf32>) outs(%h : tensor<12xf32>) {
  ^bb0(%a: f32, %b: f32):
    %f = math.absf %a : f32
    linalg.yield %f : f32
  } -> tensor<12xf32>
  %s = tensor.expand_shape %r [[0, 1, 2]] output_shape [1, 4, 3] : tensor<12xf32> into tensor<1x4x3xf32>
  return %s : tensor<1x4x3xf32>
}

func.func @no_restored(%x: tensor<4x3xf32>) -> (tensor<1x4x3xf32>, tensor<5xf32>) {
  %e = tensor.empty() : tensor<4x3xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %f = arith.negf %a : f32
    linalg.yield %f : f32
  } -> tensor<4x3xf32>
  %c = tensor.collapse_shape %n [[0, 1]] : tensor<4x3xf32> into tensor<12xf32>
  %h = tensor.empty() : tensor<12xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%c : tensor<12xf32>) outs(%h : tensor<12xf32>) {
  ^bb0(%a: f32, %b: f32):
    %f = math.absf %a : f32
    linalg.yield %f : f32
  } -> tensor<12xf32>
  %q = tensor.extract_slice %r[0] [5] [1] : tensor<12xf32> to tensor<5xf32>
  %s = tensor.expand_shape %r [[0, 1, 2]] output_shape [1, 4, 3] : tensor<12xf32> into tensor<1x4x3xf32>
  return %s, %q : tensor<1x4x3xf32>, tensor<5xf32>
}
