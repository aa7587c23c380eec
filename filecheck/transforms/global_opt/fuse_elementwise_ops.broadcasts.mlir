// RUN: xdsl-opt %s -p irees-fuse-elementwise-ops | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>
#columns = affine_map<(d0, d1) -> (d1)>
#line = affine_map<(d0) -> (d0)>

// Every row would compute the exponential of each column again.
// CHECK-LABEL: func.func @columns
// CHECK:         %[[E:.*]] = linalg.generic {{.*}} ins(%w : tensor<512xf32>)
// CHECK:           math.exp
// CHECK:         linalg.generic {{.*}} ins(%x, %[[E]] : tensor<2048x512xf32>, tensor<512xf32>)
func.func @columns(%x: tensor<2048x512xf32>, %w: tensor<512xf32>) -> tensor<2048x512xf32> {
  %v = tensor.empty() : tensor<512xf32>
  %e = tensor.empty() : tensor<2048x512xf32>
  %1 = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%w : tensor<512xf32>) outs(%v : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = math.exp %a : f32
    linalg.yield %b : f32
  } -> tensor<512xf32>
  %2 = linalg.generic {indexing_maps = [#id, #columns, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %1 : tensor<2048x512xf32>, tensor<512xf32>) outs(%e : tensor<2048x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2048x512xf32>
  return %2 : tensor<2048x512xf32>
}

// The exponential of a row is hoisted out of the loop over its columns,
// CHECK-LABEL: func.func @rows
// CHECK:         linalg.generic {{.*}} ins(%x, %w : tensor<16x512xf32>, tensor<16xf32>)
// CHECK:           math.exp
func.func @rows(%x: tensor<16x512xf32>, %w: tensor<16xf32>) -> tensor<16x512xf32> {
  %v = tensor.empty() : tensor<16xf32>
  %e = tensor.empty() : tensor<16x512xf32>
  %1 = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%w : tensor<16xf32>) outs(%v : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = math.exp %a : f32
    linalg.yield %b : f32
  } -> tensor<16xf32>
  %2 = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %1 : tensor<16x512xf32>, tensor<16xf32>) outs(%e : tensor<16x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<16x512xf32>
  return %2 : tensor<16x512xf32>
}

// but many of them take less time as vectors.
// CHECK-LABEL: func.func @many_rows
// CHECK:         %[[E:.*]] = linalg.generic {{.*}} ins(%w : tensor<2048xf32>)
// CHECK:           math.exp
// CHECK:         linalg.generic {{.*}} ins(%x, %[[E]] : tensor<2048x512xf32>, tensor<2048xf32>)
func.func @many_rows(%x: tensor<2048x512xf32>, %w: tensor<2048xf32>) -> tensor<2048x512xf32> {
  %v = tensor.empty() : tensor<2048xf32>
  %e = tensor.empty() : tensor<2048x512xf32>
  %1 = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%w : tensor<2048xf32>) outs(%v : tensor<2048xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = math.exp %a : f32
    linalg.yield %b : f32
  } -> tensor<2048xf32>
  %2 = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %1 : tensor<2048x512xf32>, tensor<2048xf32>) outs(%e : tensor<2048x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2048x512xf32>
  return %2 : tensor<2048x512xf32>
}

// An addition costs less than to store and load its result.
// CHECK-LABEL: func.func @cheap
// CHECK:         linalg.generic {{.*}} ins(%x, %w : tensor<2048x512xf32>, tensor<512xf32>)
func.func @cheap(%x: tensor<2048x512xf32>, %w: tensor<512xf32>) -> tensor<2048x512xf32> {
  %v = tensor.empty() : tensor<512xf32>
  %e = tensor.empty() : tensor<2048x512xf32>
  %1 = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%w : tensor<512xf32>) outs(%v : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = arith.addf %a, %a : f32
    linalg.yield %b : f32
  } -> tensor<512xf32>
  %2 = linalg.generic {indexing_maps = [#id, #columns, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %1 : tensor<2048x512xf32>, tensor<512xf32>) outs(%e : tensor<2048x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2048x512xf32>
  return %2 : tensor<2048x512xf32>
}

// The repeated loads would be twice as wide.
// CHECK-LABEL: func.func @narrowing
// CHECK:         %[[N:.*]] = linalg.generic {{.*}} ins(%w : tensor<512xf64>)
// CHECK:           arith.truncf
// CHECK:         linalg.generic {{.*}} ins(%x, %[[N]] : tensor<2048x512xf32>, tensor<512xf32>)
func.func @narrowing(%x: tensor<2048x512xf32>, %w: tensor<512xf64>) -> tensor<2048x512xf32> {
  %v = tensor.empty() : tensor<512xf32>
  %e = tensor.empty() : tensor<2048x512xf32>
  %1 = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%w : tensor<512xf64>) outs(%v : tensor<512xf32>) {
  ^bb0(%a: f64, %o: f32):
    %b = arith.truncf %a : f64 to f32
    linalg.yield %b : f32
  } -> tensor<512xf32>
  %2 = linalg.generic {indexing_maps = [#id, #columns, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %1 : tensor<2048x512xf32>, tensor<512xf32>) outs(%e : tensor<2048x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2048x512xf32>
  return %2 : tensor<2048x512xf32>
}

// A product with a vector reads each weight once, so that it can dequantize them.
// CHECK-LABEL: func.func @once
// CHECK:         linalg.generic {{.*}} ins(%x, %w, %s : tensor<64xf32>, tensor<32x64xi8>, tensor<32xf32>)
// CHECK:           arith.sitofp
func.func @once(%x: tensor<64xf32>, %w: tensor<32x64xi8>, %s: tensor<32xf32>, %o: tensor<32xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %s : tensor<32x64xi8>, tensor<32xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%a: i8, %b: f32, %c: f32):
    %f = arith.sitofp %a : i8 to f32
    %m = arith.mulf %f, %b : f32
    linalg.yield %m : f32
  } -> tensor<32x64xf32>
  %2 = linalg.generic {indexing_maps = [#columns, #id, #rows], iterator_types = ["parallel", "reduction"]} ins(%x, %1 : tensor<64xf32>, tensor<32x64xf32>) outs(%o : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  return %2 : tensor<32xf32>
}

// A product with several rows would dequantize each weight again.
// CHECK-LABEL: func.func @again
// CHECK:         %[[W:.*]] = linalg.generic {{.*}} ins(%w, %s : tensor<32x64xi8>, tensor<32xf32>)
// CHECK:         linalg.generic {{.*}} ins(%x, %[[W]] : tensor<4x64xf32>, tensor<32x64xf32>)
func.func @again(%x: tensor<4x64xf32>, %w: tensor<32x64xi8>, %s: tensor<32xf32>, %o: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %e = tensor.empty() : tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#id, #rows, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %s : tensor<32x64xi8>, tensor<32xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%a: i8, %b: f32, %c: f32):
    %f = arith.sitofp %a : i8 to f32
    %m = arith.mulf %f, %b : f32
    linalg.yield %m : f32
  } -> tensor<32x64xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %1 : tensor<4x64xf32>, tensor<32x64xf32>) outs(%o : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m : f32
    linalg.yield %t : f32
  } -> tensor<4x32xf32>
  return %2 : tensor<4x32xf32>
}
