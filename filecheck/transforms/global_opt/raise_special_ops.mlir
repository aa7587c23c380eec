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
