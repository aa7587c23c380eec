// RUN: xdsl-opt %s -p irees-raise-special-ops | filecheck %s

// The first 8 of a descending sort of values and positions are a top-k.
// CHECK-LABEL: func.func @topk
// CHECK-NOT:     iree_linalg_ext.sort
// CHECK:         %[[V:.*]] = tensor.empty() : tensor<64x8xf32>
// CHECK:         %[[I:.*]] = tensor.empty() : tensor<64x8xi64>
// CHECK:         %[[BEST:.*]], %[[AT:.*]] = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%x : tensor<64x1000xf32>) outs(%[[V]], %[[I]] : tensor<64x8xf32>, tensor<64x8xi64>) {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT:      arith.cmpf oge, %[[A]], %[[B]] : f32
// CHECK:         func.return %[[BEST]], %[[AT]]
func.func @topk(%x: tensor<64x1000xf32>) -> (tensor<64x8xf32>, tensor<64x8xi64>) {
  %e = tensor.empty() : tensor<64x1000xi64>
  %iota = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<64x1000xi64>) {
  ^bb0(%o: i64):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    linalg.yield %k : i64
  } -> tensor<64x1000xi64>
  %s:2 = iree_linalg_ext.sort dimension(1) outs(%x, %iota : tensor<64x1000xf32>, tensor<64x1000xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %more = arith.cmpf oge, %a, %b : f32
    iree_linalg_ext.yield %more : i1
  } -> tensor<64x1000xf32>, tensor<64x1000xi64>
  %v = tensor.extract_slice %s#0[0, 0] [64, 8] [1, 1] : tensor<64x1000xf32> to tensor<64x8xf32>
  %i = tensor.extract_slice %s#1[0, 0] [64, 8] [1, 1] : tensor<64x1000xi64> to tensor<64x8xi64>
  return %v, %i : tensor<64x8xf32>, tensor<64x8xi64>
}

// Values alone, along a dynamic row.
// CHECK-LABEL: func.func @dynamic
// CHECK:         iree_linalg_ext.topk_v2 dimension(0) is_sorted ins(%x : tensor<?xf32>) outs(%{{.*}} : tensor<3xf32>)
func.func @dynamic(%x: tensor<?xf32>) -> tensor<3xf32> {
  %s = iree_linalg_ext.sort dimension(0) outs(%x : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<?xf32>
  %v = tensor.extract_slice %s[0] [3] [1] : tensor<?xf32> to tensor<3xf32>
  return %v : tensor<3xf32>
}

// The whole sorted row is used too.
// CHECK-LABEL: func.func @no_other_use
// CHECK:         iree_linalg_ext.sort
func.func @no_other_use(%x: tensor<100xf32>) -> (tensor<100xf32>, tensor<3xf32>) {
  %s = iree_linalg_ext.sort dimension(0) outs(%x : tensor<100xf32>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<100xf32>
  %v = tensor.extract_slice %s[0] [3] [1] : tensor<100xf32> to tensor<3xf32>
  return %s, %v : tensor<100xf32>, tensor<3xf32>
}

// The slice does not start at the first element.
// CHECK-LABEL: func.func @no_offset
// CHECK:         iree_linalg_ext.sort
func.func @no_offset(%x: tensor<100xf32>) -> tensor<3xf32> {
  %s = iree_linalg_ext.sort dimension(0) outs(%x : tensor<100xf32>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<100xf32>
  %v = tensor.extract_slice %s[1] [3] [1] : tensor<100xf32> to tensor<3xf32>
  return %v : tensor<3xf32>
}

// Half of the row is not few.
// CHECK-LABEL: func.func @no_large_k
// CHECK:         iree_linalg_ext.sort
func.func @no_large_k(%x: tensor<100xf32>) -> tensor<50xf32> {
  %s = iree_linalg_ext.sort dimension(0) outs(%x : tensor<100xf32>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<100xf32>
  %v = tensor.extract_slice %s[0] [50] [1] : tensor<100xf32> to tensor<50xf32>
  return %v : tensor<50xf32>
}

// The second operand is data, not positions.
// CHECK-LABEL: func.func @no_payload
// CHECK:         iree_linalg_ext.sort
func.func @no_payload(%x: tensor<100xf32>, %p: tensor<100xi64>) -> (tensor<3xf32>, tensor<3xi64>) {
  %s:2 = iree_linalg_ext.sort dimension(0) outs(%x, %p : tensor<100xf32>, tensor<100xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<100xf32>, tensor<100xi64>
  %v = tensor.extract_slice %s#0[0] [3] [1] : tensor<100xf32> to tensor<3xf32>
  %i = tensor.extract_slice %s#1[0] [3] [1] : tensor<100xi64> to tensor<3xi64>
  return %v, %i : tensor<3xf32>, tensor<3xi64>
}

// The comparator is not one compare of the first operand.
// CHECK-LABEL: func.func @no_comparator
// CHECK:         iree_linalg_ext.sort
func.func @no_comparator(%x: tensor<100xf32>) -> tensor<3xf32> {
  %s = iree_linalg_ext.sort dimension(0) outs(%x : tensor<100xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.absf %a : f32
    %d = math.absf %b : f32
    %less = arith.cmpf olt, %c, %d : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<100xf32>
  %v = tensor.extract_slice %s[0] [3] [1] : tensor<100xf32> to tensor<3xf32>
  return %v : tensor<3xf32>
}

// The best element and where it was.
// CHECK-LABEL: func.func @argmin
// CHECK-NOT:     linalg.generic
// CHECK:         iree_linalg_ext.arg_compare dimension(0) ins(%x : tensor<?x4xi32>) outs(%v, %i : tensor<4xi32>, tensor<4xi64>) {
// CHECK:           arith.cmpi slt
func.func @argmin(%x: tensor<?x4xi32>, %v: tensor<4xi32>, %i: tensor<4xi64>) -> (tensor<4xi32>, tensor<4xi64>) {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<?x4xi32>) outs(%v, %i : tensor<4xi32>, tensor<4xi64>) {
  ^bb0(%a: i32, %best: i32, %at: i64):
    %j = linalg.index 0 : index
    %k = arith.index_cast %j : index to i64
    %less = arith.cmpi slt, %a, %best : i32
    %new = arith.minsi %a, %best : i32
    %pos = arith.select %less, %k, %at : i64
    linalg.yield %new, %pos : i32, i64
  } -> (tensor<4xi32>, tensor<4xi64>)
  return %r#0, %r#1 : tensor<4xi32>, tensor<4xi64>
}

// maximumf takes a NaN, ogt does not: no single comparator says both.
// CHECK-LABEL: func.func @no_argmax_of_nan
// CHECK:         linalg.generic
func.func @no_argmax_of_nan(%x: tensor<8x4xf32>, %v: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>) {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<8x4xf32>) outs(%v, %i : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%a: f32, %best: f32, %at: i64):
    %j = linalg.index 0 : index
    %k = arith.index_cast %j : index to i64
    %more = arith.cmpf ogt, %a, %best : f32
    %new = arith.maximumf %a, %best : f32
    %pos = arith.select %more, %k, %at : i64
    linalg.yield %new, %pos : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi64>
}

// Powers over their sum, as torch writes them, with dims of one element for what is reduced.
// CHECK-LABEL: func.func @softmax
// CHECK-NOT:     linalg.generic
// CHECK:         %[[S:.*]] = linalg.softmax dimension(1) ins(%x : tensor<?x8xf32>) outs(%o : tensor<?x8xf32>)
// CHECK:         func.return %[[S]]
func.func @softmax(%x: tensor<?x8xf32>, %m0: tensor<?xf32>, %s0: tensor<?x1xf32>, %o: tensor<?x8xf32>, %n: index) -> tensor<?x8xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %m1 = linalg.fill ins(%lowest : f32) outs(%m0 : tensor<?xf32>) -> tensor<?xf32>
  %m2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x8xf32>) outs(%m1 : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<?xf32>
  %m = tensor.expand_shape %m2 [[0, 1]] output_shape [%n, 1] : tensor<?xf32> into tensor<?x1xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<?x8xf32>, tensor<?x1xf32>) outs(%o : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %e = arith.subf %a, %b : f32
    linalg.yield %e : f32
  } -> tensor<?x8xf32>
  %e = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%d : tensor<?x8xf32>) outs(%o : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = math.exp %a : f32
    linalg.yield %c : f32
  } -> tensor<?x8xf32>
  %s1 = linalg.fill ins(%zero : f32) outs(%s0 : tensor<?x1xf32>) -> tensor<?x1xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>], iterator_types = ["parallel", "reduction"]} ins(%e : tensor<?x8xf32>) outs(%s1 : tensor<?x1xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<?x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%e, %s : tensor<?x8xf32>, tensor<?x1xf32>) outs(%o : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// Both named contractions; the keys stay transposed until `irees-fuse-elementwise-ops` reads their source.
// CHECK-LABEL: func.func @attention
// CHECK-NOT:     linalg.softmax
// CHECK:         %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK:         %[[R:.*]] = iree_linalg_ext.attention {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> ()>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>]} ins(%q, %kt, %v, %[[ONE]] : tensor<2x?x8xf32>, tensor<2x8x?xf32>, tensor<2x?x5xf32>, f32) outs(%{{.*}} : tensor<2x?x5xf32>)
// CHECK-NEXT:    ^bb{{.*}}(%[[X:.*]]: f32):
// CHECK-NEXT:      iree_linalg_ext.yield %[[X]]
// CHECK:         func.return %[[R]]
func.func @attention(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x5xf32>, %t: tensor<2x8x?xf32>, %s: tensor<2x?x?xf32>, %o: tensor<2x?x5xf32>) -> tensor<2x?x5xf32> {
  %zero = arith.constant 0.0 : f32
  %s0 = linalg.fill ins(%zero : f32) outs(%s : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%o : tensor<2x?x5xf32>) -> tensor<2x?x5xf32>
  %kt = linalg.transpose ins(%k : tensor<2x?x8xf32>) outs(%t : tensor<2x8x?xf32>) permutation = [0, 2, 1]
  %x = linalg.batch_matmul ins(%q, %kt : tensor<2x?x8xf32>, tensor<2x8x?xf32>) outs(%s0 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %p = linalg.softmax dimension(2) ins(%x : tensor<2x?x?xf32>) outs(%s : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %r = linalg.batch_matmul ins(%p, %v : tensor<2x?x?xf32>, tensor<2x?x5xf32>) outs(%o0 : tensor<2x?x5xf32>) -> tensor<2x?x5xf32>
  return %r : tensor<2x?x5xf32>
}

// A division by a power of two is a scale, and comes before the mask. One batch is none.
// CHECK-LABEL: func.func @masked
// CHECK:         %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK:         iree_linalg_ext.attention {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2)>, affine_map<(d0, d1, d2, d3) -> (d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d3, d1)>, affine_map<(d0, d1, d2, d3) -> ()>, affine_map<(d0, d1, d2, d3) -> (d0, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1)>]} ins(%q, %k, %v, %[[SCALE]], %mask : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>, f32, tensor<4x6xf32>)
func.func @masked(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %mask: tensor<4x6xf32>, %s: tensor<4x6xf32>, %w: tensor<1x4x6xf32>, %o: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %eight = arith.constant 8.0 : f32
  %s0 = linalg.fill ins(%zero : f32) outs(%s : tensor<4x6xf32>) -> tensor<4x6xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%o : tensor<4x5xf32>) -> tensor<4x5xf32>
  %x = linalg.matmul indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%q, %k : tensor<4x8xf32>, tensor<6x8xf32>) outs(%s0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = tensor.expand_shape %x [[0, 1], [2]] output_shape [1, 4, 6] : tensor<4x6xf32> into tensor<1x4x6xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%y, %mask : tensor<1x4x6xf32>, tensor<4x6xf32>) outs(%w : tensor<1x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.divf %a, %eight : f32
    %e = arith.addf %d, %b : f32
    linalg.yield %e : f32
  } -> tensor<1x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%z : tensor<1x4x6xf32>) outs(%w : tensor<1x4x6xf32>) -> tensor<1x4x6xf32>
  %p1 = tensor.collapse_shape %p [[0, 1], [2]] : tensor<1x4x6xf32> into tensor<4x6xf32>
  %r = linalg.matmul ins(%p1, %v : tensor<4x6xf32>, tensor<6x5xf32>) outs(%o0 : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// The mask is scaled too.
// CHECK-LABEL: func.func @no_scaled_mask
// CHECK:         linalg.softmax
func.func @no_scaled_mask(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %mask: tensor<4x6xf32>, %s: tensor<4x6xf32>, %w: tensor<1x4x6xf32>, %o: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %eight = arith.constant 8.0 : f32
  %s0 = linalg.fill ins(%zero : f32) outs(%s : tensor<4x6xf32>) -> tensor<4x6xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%o : tensor<4x5xf32>) -> tensor<4x5xf32>
  %x = linalg.matmul indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%q, %k : tensor<4x8xf32>, tensor<6x8xf32>) outs(%s0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = tensor.expand_shape %x [[0, 1], [2]] output_shape [1, 4, 6] : tensor<4x6xf32> into tensor<1x4x6xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%y, %mask : tensor<1x4x6xf32>, tensor<4x6xf32>) outs(%w : tensor<1x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.addf %a, %b : f32
    %e = arith.divf %d, %eight : f32
    linalg.yield %e : f32
  } -> tensor<1x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%z : tensor<1x4x6xf32>) outs(%w : tensor<1x4x6xf32>) -> tensor<1x4x6xf32>
  %p1 = tensor.collapse_shape %p [[0, 1], [2]] : tensor<1x4x6xf32> into tensor<4x6xf32>
  %r = linalg.matmul ins(%p1, %v : tensor<4x6xf32>, tensor<6x5xf32>) outs(%o0 : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
