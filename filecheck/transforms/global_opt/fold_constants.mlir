// RUN: xdsl-opt %s -p irees-fold-constants | filecheck %s

// A generic on constants is computed.
// CHECK-LABEL: func.func @generic
// CHECK-NOT:     linalg.generic
// CHECK:         %[[R:.*]] = arith.constant dense_resource<folded_{{.*}}> : tensor<2xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @generic() -> tensor<2xf32> {
  %w = arith.constant dense<[1.0, 4.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%w : tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.sqrt %a : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// A reshape of a constant only changes its type.
// CHECK-LABEL: func.func @reshape
// CHECK:         %[[R:.*]] = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
// CHECK-NEXT:    func.return %[[R]]
func.func @reshape() -> tensor<4xi32> {
  %w = arith.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %r = tensor.collapse_shape %w [[0, 1]] : tensor<2x2xi32> into tensor<4xi32>
  return %r : tensor<4xi32>
}

// What is folded folds its users.
// CHECK-LABEL: func.func @chain
// CHECK-NOT:     tensor.extract_slice
// CHECK:         %[[R:.*]] = arith.constant dense_resource<folded_{{.*}}> : tensor<2xi32>
// CHECK-NEXT:    func.return %[[R]]
func.func @chain() -> tensor<2xi32> {
  %w = arith.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %r = tensor.collapse_shape %w [[0, 1]] : tensor<2x2xi32> into tensor<4xi32>
  %s = tensor.extract_slice %r[1] [2] [1] : tensor<4xi32> to tensor<2xi32>
  return %s : tensor<2xi32>
}

// A slice of a splat is a splat, wherever it starts and however large the splat is.
// CHECK-LABEL: func.func @slice_of_splat
// CHECK:         %[[S:.*]] = arith.constant dense<2.500000e+00> : tensor<2x3xf32>
// CHECK-NEXT:    func.return %[[S]]
func.func @slice_of_splat(%i: index) -> tensor<2x3xf32> {
  %c = arith.constant dense<2.5> : tensor<1000x1000xf32>
  %s = tensor.extract_slice %c[%i, 0] [2, 3] [1, 1] : tensor<1000x1000xf32> to tensor<2x3xf32>
  return %s : tensor<2x3xf32>
}

// One operand is known only at run time.
// CHECK-LABEL: func.func @no_argument
// CHECK:         linalg.generic
func.func @no_argument(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w = arith.constant dense<[1.0, 4.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%w, %x : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// The result has no size yet.
// CHECK-LABEL: func.func @no_dynamic
// CHECK:         tensor.extract_slice
func.func @no_dynamic(%n: index) -> tensor<?xf32> {
  %w = arith.constant dense<[1.0, 4.0]> : tensor<2xf32>
  %s = tensor.extract_slice %w[0] [%n] [1] : tensor<2xf32> to tensor<?xf32>
  return %s : tensor<?xf32>
}

// 256 KiB from 4 bytes would only make the program larger.
// CHECK-LABEL: func.func @no_growth
// CHECK:         linalg.generic
func.func @no_growth() -> tensor<65536xf32> {
  %w = arith.constant dense<[1.0]> : tensor<1xf32>
  %e = tensor.empty() : tensor<65536xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%w : tensor<1xf32>) outs(%e : tensor<65536xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  return %r : tensor<65536xf32>
}

// A failing assertion has to fail at run time.
// CHECK-LABEL: func.func @no_trap
// CHECK:         cf.assert
func.func @no_trap() -> tensor<1xi32> {
  %w = arith.constant dense<[1]> : tensor<1xi32>
  %e = tensor.empty() : tensor<1xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%w : tensor<1xi32>) outs(%e : tensor<1xi32>) {
  ^bb0(%a: i32, %o: i32):
    %never = arith.cmpi ne, %a, %a : i32
    cf.assert %never, "never"
    linalg.yield %a : i32
  } -> tensor<1xi32>
  return %r : tensor<1xi32>
}

// What only moves elements is not read, so it may be large: a reversed weight,
// CHECK-LABEL: func.func @reversed
// CHECK-NOT:     linalg.generic
// CHECK:         arith.constant dense_resource<w_strided_{{.*}}> : tensor<3x4xf32>
// CHECK:         func.return
func.func @reversed() -> tensor<3x4xf32> {
  %w = arith.constant dense_resource<w> : tensor<4x3xf32>
  %last = arith.constant 3 : index
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<3x4xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.subi %last, %j : index
    %v = tensor.extract %w[%k, %i] : tensor<4x3xf32>
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// or a padded one, but not one that becomes much larger.
// CHECK-LABEL: func.func @padded
// CHECK:         arith.constant dense_resource<w_padded_{{.*}}> : tensor<6x5xf32>
// CHECK:         tensor.insert_slice
// CHECK:         func.return
func.func @padded() -> (tensor<6x5xf32>, tensor<200x100xf32>) {
  %w = arith.constant dense_resource<w> : tensor<4x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x5xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%e : tensor<6x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<6x5xf32>
  %r = tensor.insert_slice %w into %f[1, 1] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<6x5xf32>
  %d = tensor.empty() : tensor<200x100xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%d : tensor<200x100xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<200x100xf32>
  %s = tensor.insert_slice %w into %g[1, 0] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<200x100xf32>
  return %r, %s : tensor<6x5xf32>, tensor<200x100xf32>
}

{-# dialect_resources: { builtin: { w: "0x04000000000000000000803f0000004000004040000080400000a0400000c0400000e04000000041000010410000204100003041" } } #-}
