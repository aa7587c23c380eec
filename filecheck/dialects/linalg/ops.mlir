// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>, %d: tensor<4x8xf32>, %r: tensor<4xf32>, %s: tensor<8xf32>) {
  %0 = "linalg.elementwise"(%a, %d, %d) <{kind = #linalg.elementwise_kind<add>, indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], operandSegmentSizes = array<i32: 2, 1>}> ({
  ^bb0(%x: f32, %y: f32, %z: f32):
    %1 = arith.addf %x, %y : f32
    linalg.yield %1 : f32
  }) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = linalg.matmul indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%b, %b : tensor<8x4xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%b, %b : tensor<8x4xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = linalg.reduce { arith.addf } ins(%a : tensor<4x8xf32>) outs(%r : tensor<4xf32>) dimensions = [1]
  %5 = linalg.reduce ins(%a : tensor<4x8xf32>) outs(%r : tensor<4xf32>) dimensions = [1] (%in: f32, %init: f32) {
    %x = arith.addf %in, %init : f32
    %y = arith.mulf %x, %x : f32
    linalg.yield %y : f32
  }
  %6 = linalg.map { arith.addf {fastmath = #arith.fastmath<fast>} } ins(%a, %d : tensor<4x8xf32>, tensor<4x8xf32>) outs(%d : tensor<4x8xf32>)
  %7 = linalg.broadcast ins(%r : tensor<4xf32>) outs(%a : tensor<4x8xf32>) dimensions = [1]
  %8 = linalg.softmax dimension(1) ins(%a : tensor<4x8xf32>) outs(%d : tensor<4x8xf32>) -> tensor<4x8xf32>
  %cst = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<2x1x8x4xf32>
  %9 = linalg.pack %a padding_value(%cst : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [8, 4] into %e2 : tensor<4x8xf32> -> tensor<2x1x8x4xf32>
  %10 = linalg.unpack %9 outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [8, 4] into %a : tensor<2x1x8x4xf32> -> tensor<4x8xf32>
  %12 = linalg.transpose ins(%a : tensor<4x8xf32>) outs(%b : tensor<8x4xf32>) permutation = [1, 0] {foo}
  return
}

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>, %d: tensor<4x8xf32>, %r: tensor<4xf32>, %s: tensor<8xf32>) {
// CHECK-NEXT:     %0 = linalg.elementwise <add> indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>] ins(%a, %d : tensor<4x8xf32>, tensor<4x8xf32>) outs(%d : tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:     %1 = linalg.matmul indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%b, %b : tensor<8x4xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT:     %2 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(%b, %b : tensor<8x4xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT:     %3 = linalg.reduce ins(%a : tensor<4x8xf32>) outs(%r : tensor<4xf32>) dimensions = [1] (%4: f32, %5: f32) {
// CHECK-NEXT:       %6 = arith.addf %5, %4 : f32
// CHECK-NEXT:       linalg.yield %6 : f32
// CHECK-NEXT:     }
// CHECK-NEXT:     %7 = linalg.reduce ins(%a : tensor<4x8xf32>) outs(%r : tensor<4xf32>) dimensions = [1] (%in: f32, %init: f32) {
// CHECK-NEXT:       %x = arith.addf %in, %init : f32
// CHECK-NEXT:       %y = arith.mulf %x, %x : f32
// CHECK-NEXT:       linalg.yield %y : f32
// CHECK-NEXT:     }
// CHECK-NEXT:     %8 = linalg.map ins(%a, %d : tensor<4x8xf32>, tensor<4x8xf32>) outs(%d : tensor<4x8xf32>) (%9: f32, %10: f32, %11: f32) {
// CHECK-NEXT:       %12 = arith.addf %9, %10 fastmath<fast> : f32
// CHECK-NEXT:       linalg.yield %12 : f32
// CHECK-NEXT:     }
// CHECK-NEXT:     %13 = linalg.broadcast ins(%r : tensor<4xf32>) outs(%a : tensor<4x8xf32>) dimensions = [1]
// CHECK-NEXT:     %14 = linalg.softmax dimension(1) ins(%a : tensor<4x8xf32>) outs(%d : tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:     %cst = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %e2 = tensor.empty() : tensor<2x1x8x4xf32>
// CHECK-NEXT:     %15 = linalg.pack %a padding_value(%cst : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [8, 4] into %e2 : tensor<4x8xf32> -> tensor<2x1x8x4xf32>
// CHECK-NEXT:     %16 = linalg.unpack %15 outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [8, 4] into %a : tensor<2x1x8x4xf32> -> tensor<4x8xf32>
// CHECK-NEXT:     %17 = linalg.transpose ins(%a : tensor<4x8xf32>) outs(%b : tensor<8x4xf32>) permutation = [1, 0] {foo}
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
