// RUN: irees opt %s -p 'irees-assign-target{target="cuda:sm_80"},irees-split-reductions' | filecheck %s

#i = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>

// One sum of a million numbers becomes 64 and the sum of those; 108 would not divide it.
// CHECK-LABEL: func.func @sum
// CHECK:         %[[X:.*]] = tensor.expand_shape %x {{\[\[}}0, 1]] output_shape [64, 16384]
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[X]] : tensor<64x16384xf32>) outs(%{{.*}} : tensor<64xf32>)
// CHECK:         linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[P]] : tensor<64xf32>) outs(%o : tensor<f32>)
func.func @sum(%x: tensor<1048576xf32>, %o: tensor<f32>) -> tensor<f32> {
  %r = linalg.generic {indexing_maps = [#i, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<1048576xf32>) outs(%o : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// A product of slim matrices: both are cut along what is summed.
// CHECK-LABEL: func.func @product
// CHECK:         tensor.expand_shape %a {{\[\[}}0], [1, 2]] output_shape [8, 32, 2048]
// CHECK:         tensor.expand_shape %b {{\[\[}}0, 1], [2]] output_shape [32, 2048, 16]
// CHECK:         iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK:         iterator_types = ["parallel", "parallel", "reduction"]
func.func @product(%a: tensor<8x65536xf32>, %b: tensor<65536x16xf32>, %c: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<8x65536xf32>, tensor<65536x16xf32>) outs(%c : tensor<8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}

// Rows enough for every workgroup.
// CHECK-LABEL: func.func @no_many_rows
// CHECK-NOT:     tensor.expand_shape
func.func @no_many_rows(%x: tensor<512x8192xf32>, %o: tensor<512xf32>) -> tensor<512xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<512x8192xf32>) outs(%o : tensor<512xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<512xf32>
  return %r : tensor<512xf32>
}

// Nobody knows how many there are.
// CHECK-LABEL: func.func @no_dynamic
// CHECK-NOT:     tensor.expand_shape
func.func @no_dynamic(%x: tensor<?xf32>, %o: tensor<f32>) -> tensor<f32> {
  %r = linalg.generic {indexing_maps = [#i, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<?xf32>) outs(%o : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// The results of slices cannot be divided by each other.
// CHECK-LABEL: func.func @no_combiner
// CHECK-NOT:     tensor.expand_shape
func.func @no_combiner(%x: tensor<1048576xf32>, %o: tensor<f32>) -> tensor<f32> {
  %r = linalg.generic {indexing_maps = [#i, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<1048576xf32>) outs(%o : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.divf %b, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// A sum that goes along its output has no accumulator that slices could share.
// CHECK-LABEL: func.func @no_quarters
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         func.return
func.func @no_quarters(%x: tensor<32768xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i floordiv 8192)>], iterator_types = ["reduction"]} ins(%x : tensor<32768xf32>) outs(%o : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// An operand may be a scalar.
// CHECK-LABEL: func.func @scalar
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         func.return
func.func @scalar(%c: f32, %o: tensor<2xf32>) -> tensor<2xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["reduction"]} ins(%c : f32) outs(%o : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}
