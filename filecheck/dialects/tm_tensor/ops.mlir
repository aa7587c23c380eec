// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

func.func @tm(%v: tensor<4x8xf32>, %i: tensor<4x8xi64>, %a: tensor<8xf32>, %k: tensor<4x2xf32>, %ki: tensor<4x2xi32>, %u: tensor<3xf32>, %x: tensor<3x2xi64>, %q: tensor<2x16x64xf32>) {
  %0:2 = tm_tensor.sort dimension(1) outs(%v, %i : tensor<4x8xf32>, tensor<4x8xi64>) {
  ^bb0(%l: f32, %r: f32, %li: i64, %ri: i64):
    %c = arith.cmpf olt, %l, %r : f32
    tm_tensor.yield %c : i1
  } -> tensor<4x8xf32>, tensor<4x8xi64>
  %1:2 = tm_tensor.scan dimension(0) inclusive(true) ins(%v : tensor<4x8xf32>) outs(%v, %a : tensor<4x8xf32>, tensor<8xf32>) {
  ^bb0(%l: f32, %r: f32):
    %c = arith.addf %l, %r : f32
    tm_tensor.yield %c : f32
  } -> tensor<4x8xf32>, tensor<8xf32>
  %2:2 = tm_tensor.topk dimension(1) ins(%v : tensor<4x8xf32>) outs(%k, %ki : tensor<4x2xf32>, tensor<4x2xi32>) {
  ^bb0(%l: f32, %r: f32):
    %c = arith.cmpf ogt, %l, %r : f32
    tm_tensor.yield %c : i1
  } -> tensor<4x2xf32>, tensor<4x2xi32>
  %3 = tm_tensor.scatter {dimension_map = array<i64: 0, 1>} unique_indices(false) ins(%u, %x : tensor<3xf32>, tensor<3x2xi64>) outs(%v : tensor<4x8xf32>) {
  ^bb0(%l: f32, %r: f32):
    tm_tensor.yield %l : f32
  } -> tensor<4x8xf32>
  %4 = tm_tensor.attention ins(%q, %q, %q : tensor<2x16x64xf32>, tensor<2x16x64xf32>, tensor<2x16x64xf32>) outs(%q : tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
  return
}

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @tm(%v: tensor<4x8xf32>, %i: tensor<4x8xi64>, %a: tensor<8xf32>, %k: tensor<4x2xf32>, %ki: tensor<4x2xi32>, %u: tensor<3xf32>, %x: tensor<3x2xi64>, %q: tensor<2x16x64xf32>) {
// CHECK-NEXT:     %0, %1 = tm_tensor.sort dimension(1) outs(%v, %i : tensor<4x8xf32>, tensor<4x8xi64>) {
// CHECK-NEXT:     ^bb0(%l: f32, %r: f32, %li: i64, %ri: i64):
// CHECK-NEXT:       %c = arith.cmpf olt, %l, %r : f32
// CHECK-NEXT:       tm_tensor.yield %c : i1
// CHECK-NEXT:     } -> tensor<4x8xf32>, tensor<4x8xi64>
// CHECK-NEXT:     %2, %3 = tm_tensor.scan dimension(0) inclusive(true) ins(%v : tensor<4x8xf32>) outs(%v, %a : tensor<4x8xf32>, tensor<8xf32>) {
// CHECK-NEXT:     ^bb0(%l_1: f32, %r_1: f32):
// CHECK-NEXT:       %c_1 = arith.addf %l_1, %r_1 : f32
// CHECK-NEXT:       tm_tensor.yield %c_1 : f32
// CHECK-NEXT:     } -> tensor<4x8xf32>, tensor<8xf32>
// CHECK-NEXT:     %4, %5 = tm_tensor.topk dimension(1) ins(%v : tensor<4x8xf32>) outs(%k, %ki : tensor<4x2xf32>, tensor<4x2xi32>) {
// CHECK-NEXT:     ^bb0(%l_2: f32, %r_2: f32):
// CHECK-NEXT:       %c_2 = arith.cmpf ogt, %l_2, %r_2 : f32
// CHECK-NEXT:       tm_tensor.yield %c_2 : i1
// CHECK-NEXT:     } -> tensor<4x2xf32>, tensor<4x2xi32>
// CHECK-NEXT:     %6 = tm_tensor.scatter {dimension_map = array<i64: 0, 1>} unique_indices(false) ins(%u, %x : tensor<3xf32>, tensor<3x2xi64>) outs(%v : tensor<4x8xf32>) {
// CHECK-NEXT:     ^bb0(%l_3: f32, %r_3: f32):
// CHECK-NEXT:       tm_tensor.yield %l_3 : f32
// CHECK-NEXT:     } -> tensor<4x8xf32>
// CHECK-NEXT:     %7 = tm_tensor.attention ins(%q, %q, %q : tensor<2x16x64xf32>, tensor<2x16x64xf32>, tensor<2x16x64xf32>) outs(%q : tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
