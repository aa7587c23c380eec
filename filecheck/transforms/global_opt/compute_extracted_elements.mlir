// RUN: xdsl-opt %s -p irees-compute-extracted-elements | filecheck %s

#id = affine_map<(d0) -> (d0)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>

// One element of an iota is its index, inside of the tensor.
// CHECK-LABEL: func.func @element
// CHECK-NOT:     linalg.generic
// CHECK:         %[[A:.*]] = arith.maxsi %k, %{{.*}} : index
// CHECK:         %[[B:.*]] = arith.minsi %[[A]], %{{.*}} : index
// CHECK:         %[[C:.*]] = arith.index_cast %[[B]] : index to i32
// CHECK:         func.return %[[C]]
func.func @element(%k: index) -> i32 {
  %e = tensor.empty() : tensor<1048576xi32>
  %t = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<1048576xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i32
    linalg.yield %c : i32
  } -> tensor<1048576xi32>
  %x = tensor.extract %t[%k] : tensor<1048576xi32>
  return %x : i32
}

// A slice is the formula at its elements, and a dim that it drops is dropped.
// CHECK-LABEL: func.func @part
// CHECK:         linalg.generic
// CHECK:           %[[D:.*]] = linalg.index 1 : index
// CHECK:           arith.muli %[[D]], %{{.*}} : index
// CHECK:         -> tensor<1x4xi32>
// CHECK:         tensor.collapse_shape
func.func @part() -> tensor<4xi32> {
  %e = tensor.empty() : tensor<16x1048576xi32>
  %t = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<16x1048576xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.addi %i, %j : index
    %c = arith.index_cast %s : index to i32
    linalg.yield %c : i32
  } -> tensor<16x1048576xi32>
  %x = tensor.extract_slice %t[3, 7] [1, 4] [1, 2] : tensor<16x1048576xi32> to tensor<4xi32>
  return %x : tensor<4xi32>
}

// A tensor that is read as a whole is made once.
// CHECK-LABEL: func.func @no_whole
// CHECK:         tensor.extract %
func.func @no_whole(%k: index) -> (i32, tensor<1048576xi32>) {
  %e = tensor.empty() : tensor<1048576xi32>
  %t = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<1048576xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i32
    linalg.yield %c : i32
  } -> tensor<1048576xi32>
  %x = tensor.extract %t[%k] : tensor<1048576xi32>
  return %x, %t : i32, tensor<1048576xi32>
}

// Small tensors, and those of a dynamic size.
// CHECK-LABEL: func.func @no_small
// CHECK:         tensor.extract %
// CHECK:         tensor.extract %
func.func @no_small(%k: index, %n: index) -> (i32, i32) {
  %e = tensor.empty() : tensor<16xi32>
  %t = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<16xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i32
    linalg.yield %c : i32
  } -> tensor<16xi32>
  %x = tensor.extract %t[%k] : tensor<16xi32>
  %f = tensor.empty(%n) : tensor<?xi32>
  %u = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%f : tensor<?xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i32
    linalg.yield %c : i32
  } -> tensor<?xi32>
  %y = tensor.extract %u[%k] : tensor<?xi32>
  return %x, %y : i32, i32
}
