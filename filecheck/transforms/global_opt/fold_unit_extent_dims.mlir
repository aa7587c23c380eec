// RUN: xdsl-opt %s -p irees-fold-unit-extent-dims | filecheck %s

// A keepdim axis that is broadcast back reads the reduced tensor itself.
// CHECK-LABEL: func.func @keepdim
// CHECK-NEXT:    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-SAME:    ins(%x, %m : tensor<512x64xf32>, tensor<512xf32>)
func.func @keepdim(%x: tensor<512x64xf32>, %m: tensor<512xf32>, %o: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %e = tensor.expand_shape %m [[0, 1]] output_shape [512, 1] : tensor<512xf32> into tensor<512x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %e : tensor<512x64xf32>, tensor<512x1xf32>) outs(%o : tensor<512x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<512x64xf32>
  return %r : tensor<512x64xf32>
}

// A loop of one iteration goes, and its index is 0.
// CHECK-LABEL: func.func @batch_of_one
// CHECK:         %[[X:.*]] = tensor.collapse_shape %x {{\[}}[0, 1]] : tensor<1x8xf32> into tensor<8xf32>
// CHECK:         %[[R:.*]] = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%[[X]] : tensor<8xf32>)
// CHECK:         %[[I:.*]] = arith.constant 0 : index
// CHECK-NEXT:      %[[J:.*]] = linalg.index 0 : index
// CHECK-NEXT:      arith.addi %[[I]], %[[J]] : index
// CHECK:         tensor.expand_shape %[[R]] {{\[}}[0, 1]] output_shape [1, 8] : tensor<8xindex> into tensor<1x8xindex>
func.func @batch_of_one(%x: tensor<1x8xf32>, %o: tensor<1x8xindex>) -> tensor<1x8xindex> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1x8xf32>) outs(%o : tensor<1x8xindex>) {
  ^bb0(%a: f32, %c: index):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.addi %i, %j : index
    linalg.yield %s : index
  } -> tensor<1x8xindex>
  return %r : tensor<1x8xindex>
}

// Dynamic dims beside the unit dim are carried along.
// CHECK-LABEL: func.func @dynamic
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<?xf32>) outs(%{{.*}} : tensor<?xf32>)
// CHECK:         %[[D:.*]] = tensor.dim %o
// CHECK:         tensor.expand_shape %[[R]] {{\[}}[0, 1]] output_shape [%[[D]], 1] : tensor<?xf32> into tensor<?x1xf32>
func.func @dynamic(%x: tensor<?x1xf32>, %o: tensor<?x1xf32>) -> tensor<?x1xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x1xf32>) outs(%o : tensor<?x1xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.negf %a : f32
    linalg.yield %s : f32
  } -> tensor<?x1xf32>
  return %r : tensor<?x1xf32>
}

// Two reshapes that only add and drop unit dims cancel.
// CHECK-LABEL: func.func @reshapes
// CHECK-NEXT:    func.return %x
func.func @reshapes(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<1x8xf32> into tensor<8xf32>
  %e = tensor.expand_shape %c [[0, 1]] output_shape [1, 8] : tensor<8xf32> into tensor<1x8xf32>
  return %e : tensor<1x8xf32>
}

// `?` may be 1 when the program runs, which is not known here.
// CHECK-LABEL: func.func @no_dynamic
// CHECK-NEXT:    linalg.generic {{.*}} ins(%x : tensor<?x8xf32>) outs(%o : tensor<?x8xf32>)
func.func @no_dynamic(%x: tensor<?x8xf32>, %o: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x8xf32>) outs(%o : tensor<?x8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.negf %a : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// A reshape that changes more than unit dims stays.
// CHECK-LABEL: func.func @no_reshape
// CHECK-NEXT:    tensor.collapse_shape
// CHECK-NEXT:    tensor.expand_shape
func.func @no_reshape(%x: tensor<2x4xf32>) -> tensor<8x1xf32> {
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  %e = tensor.expand_shape %c [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  return %e : tensor<8x1xf32>
}

// A pad loses them as well, and so does the fill that it is put into.
// CHECK-LABEL: func.func @pad
// CHECK:         %[[S:.*]] = tensor.collapse_shape %x {{\[\[}}0, 1], [2]] : tensor<1x?x4xf32> into tensor<?x4xf32>
// CHECK:         %[[F:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>]
// CHECK:         %[[P:.*]] = tensor.insert_slice %[[S]] into %[[F]][2, 1] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<9x6xf32>
// CHECK:         tensor.expand_shape %[[P]]
func.func @pad(%x: tensor<1x?x4xf32>, %n: index) -> tensor<1x9x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x9x6xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<1x9x6xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<1x9x6xf32>
  %p = tensor.insert_slice %x into %f[0, 2, 1] [1, %n, 4] [1, 1, 1] : tensor<1x?x4xf32> into tensor<1x9x6xf32>
  return %p : tensor<1x9x6xf32>
}

// What is not a fill may be updated in place.
// CHECK-LABEL: func.func @no_update
// CHECK-NEXT:    tensor.insert_slice
func.func @no_update(%x: tensor<1x3x4xf32>, %c: tensor<1x9x6xf32>) -> tensor<1x9x6xf32> {
  %p = tensor.insert_slice %x into %c[0, 2, 1] [1, 3, 4] [1, 1, 1] : tensor<1x3x4xf32> into tensor<1x9x6xf32>
  return %p : tensor<1x9x6xf32>
}

// The product of two loops is not simplified.
// CHECK-LABEL: func.func @no_product
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> ((d1 * d1), d0)>, affine_map<(d0, d1) -> (d1)>]
func.func @no_product(%x: tensor<?x1xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1 * d1, d0)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<?x1xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// Where the result has one element in that dim, the input may still be larger than the window.
// CHECK-LABEL: func.func @no_window
// CHECK:         %[[N:.*]] = tensor.dim %w, %{{.*}} : tensor<?xf32>
// CHECK-NEXT:    %[[X:.*]] = tensor.extract_slice %x[0] [%[[N]]] [1] : tensor<?xf32> to tensor<?xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>]{{.*}} ins(%[[X]], %w : tensor<?xf32>, tensor<?xf32>)
func.func @no_window(%x: tensor<?xf32>, %w: tensor<?xf32>, %o: tensor<1xf32>) -> tensor<1xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<?xf32>, tensor<?xf32>) outs(%o : tensor<1xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<1xf32>
  return %r : tensor<1xf32>
}

// A window of one element over all of the input reads each element of it.
// CHECK-LABEL: func.func @window_of_one
// CHECK:         indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>]
func.func @window_of_one(%x: tensor<?xf32>, %w: tensor<1xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %o = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<?xf32>, tensor<1xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.mulf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// A window that does not move (a stride of 0) reads a part of the image.
// CHECK-LABEL: func.func @still_window
// CHECK:         %[[S:.*]] = tensor.extract_slice %x[0, 0] [1, 3] [1, 1] : tensor<1x9xf32> to tensor<1x3xf32>
// CHECK-NEXT:    %[[X:.*]] = tensor.collapse_shape %[[S]]
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>{{.*}} ins(%[[X]], %w : tensor<3xf32>, tensor<3xf32>)
func.func @still_window(%x: tensor<1x9xf32>, %w: tensor<3xf32>, %c: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(b, i, k) -> (b, i * 0 + k)>, affine_map<(b, i, k) -> (k)>, affine_map<(b, i, k) -> (b, i)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x9xf32>, tensor<3xf32>) outs(%c : tensor<1x4xf32>) {
  ^bb0(%a: f32, %f: f32, %o: f32):
    %p = arith.mulf %a, %f : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x4xf32>
  return %r : tensor<1x4xf32>
}
