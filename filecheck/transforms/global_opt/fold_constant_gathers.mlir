// RUN: xdsl-opt %s -p irees-fold-constant-gathers | filecheck %s

#id = affine_map<(d0) -> (d0)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#back = affine_map<(d0, d1) -> (d1, d0)>

// Indices that count up are a reshape; negative ones are made positive in the body.
// CHECK-LABEL: func.func @flatten
// CHECK-NOT:     linalg.generic
// CHECK:         %[[R:.*]] = tensor.collapse_shape %x {{\[\[}}0, 1]] : tensor<2x3xf32> into tensor<6xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @flatten(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  %c0 = arith.constant 0 : i64
  %c2 = arith.constant 2 : i64
  %i = arith.constant dense<[0, 0, 0, -1, 1, -1]> : tensor<6xi64>
  %j = arith.constant dense<[0, 1, 2, 0, 1, 2]> : tensor<6xi64>
  %e = tensor.empty() : tensor<6xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%i, %j : tensor<6xi64>, tensor<6xi64>) outs(%e : tensor<6xf32>) {
  ^bb0(%a: i64, %b: i64, %o: f32):
    %negative = arith.cmpi slt, %a, %c0 : i64
    %wrapped = arith.addi %a, %c2 : i64
    %row = arith.select %negative, %wrapped, %a : i64
    %p = arith.index_cast %row : i64 to index
    %q = arith.index_cast %b : i64 to index
    %v = tensor.extract %x[%p, %q] : tensor<2x3xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  return %r : tensor<6xf32>
}

// Loops count as well as constants do.
// CHECK-LABEL: func.func @split
// CHECK-NOT:     linalg.generic
// CHECK:         tensor.expand_shape %x {{\[\[}}0, 1]] output_shape [2, 3] : tensor<6xi8> into tensor<2x3xi8>
func.func @split(%x: tensor<6xi8>) -> tensor<2x3xi8> {
  %i = arith.constant dense<[0, 3]> : tensor<2xi64>
  %e = tensor.empty() : tensor<2x3xi8>
  %r = linalg.generic {indexing_maps = [#row, #id2], iterator_types = ["parallel", "parallel"]} ins(%i : tensor<2xi64>) outs(%e : tensor<2x3xi8>) {
  ^bb0(%a: i64, %o: i8):
    %p = arith.index_cast %a : i64 to index
    %j = linalg.index 1 : index
    %q = arith.addi %p, %j : index
    %v = tensor.extract %x[%q] : tensor<6xi8>
    linalg.yield %v : i8
  } -> tensor<2x3xi8>
  return %r : tensor<2x3xi8>
}

// Shapes of which neither is finer than the other meet in one dim.
// CHECK-LABEL: func.func @regroup
// CHECK-NOT:     linalg.generic
// CHECK:         %[[F:.*]] = tensor.collapse_shape %x {{\[\[}}0, 1]] : tensor<2x3xf32> into tensor<6xf32>
// CHECK-NEXT:    tensor.expand_shape %[[F]] {{\[\[}}0, 1]] output_shape [3, 2] : tensor<6xf32> into tensor<3x2xf32>
func.func @regroup(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %i = arith.constant dense<[[0, 0], [0, 1], [1, 1]]> : tensor<3x2xi64>
  %j = arith.constant dense<[[0, 1], [2, 0], [1, 2]]> : tensor<3x2xi64>
  %e = tensor.empty() : tensor<3x2xf32>
  %r = linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%i, %j : tensor<3x2xi64>, tensor<3x2xi64>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%a: i64, %b: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %q = arith.index_cast %b : i64 to index
    %v = tensor.extract %x[%p, %q] : tensor<2x3xf32>
    linalg.yield %v : f32
  } -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

// Another order, an element that is read twice, and a part of the tensor stay gathers.
// CHECK-LABEL: func.func @no_other_order
// CHECK-COUNT-3: tensor.extract
func.func @no_other_order(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<3xf32>) {
  %i = arith.constant dense<[0, 2, 1, 3]> : tensor<4xi64>
  %j = arith.constant dense<[0, 1, 2, 2]> : tensor<4xi64>
  %k = arith.constant dense<[0, 1, 2]> : tensor<3xi64>
  %e = tensor.empty() : tensor<4xf32>
  %f = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%i : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %v = tensor.extract %x[%p] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%j : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %v = tensor.extract %x[%p] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%k : tensor<3xi64>) outs(%f : tensor<3xf32>) {
  ^bb0(%a: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %v = tensor.extract %x[%p] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %r, %s, %t : tensor<4xf32>, tensor<4xf32>, tensor<3xf32>
}

// Indices that are not known, a body that computes, and a result that is written transposed.
// CHECK-LABEL: func.func @no_plain_read
// CHECK-COUNT-3: tensor.extract
func.func @no_plain_read(%x: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>) {
  %j = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %k = arith.constant dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>
  %e = tensor.empty() : tensor<4xf32>
  %f = tensor.empty() : tensor<2x2xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%i : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %v = tensor.extract %x[%p] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%j : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %v = tensor.extract %x[%p] : tensor<4xf32>
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  %t = linalg.generic {indexing_maps = [#id2, #back], iterator_types = ["parallel", "parallel"]} ins(%k : tensor<2x2xi64>) outs(%f : tensor<2x2xf32>) {
  ^bb0(%a: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %v = tensor.extract %x[%p] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<2x2xf32>
  return %r, %s, %t : tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>
}

// A reshape would assert nothing.
// CHECK-LABEL: func.func @no_assertions
// CHECK:         cf.assert
func.func @no_assertions(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %x[%i] : tensor<4xf32>
    %c = arith.cmpf oge, %v, %zero : f32
    cf.assert %c, "negative"
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
