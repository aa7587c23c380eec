builtin.module {
  func.func @main(%0: tensor<4x8x4xf32>) -> tensor<4x1x8x4xf32> {
    %1 = tensor.expand_shape %0 [[0 : i64], [1 : i64, 2 : i64], [3 : i64]] output_shape [4, 1, 8, 4] : tensor<4x8x4xf32> into tensor<4x1x8x4xf32>
    %2 = tensor.empty() : tensor<4x1x8x4xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<4x1x8x4xf32>) outs(%2 : tensor<4x1x8x4xf32>) {
    ^bb0(%4: f32, %5: f32):
      %6 = arith.constant 2.000000e+00 : f32
      %7 = arith.mulf %4, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<4x1x8x4xf32>
    %8 = tensor.empty() : tensor<4x1x8x4xf32>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<4x1x8x4xf32>) outs(%8 : tensor<4x1x8x4xf32>) {
    ^bb0(%10: f32, %11: f32):
      %12 = arith.constant 0.000000e+00 : f32
      %13 = arith.maximumf %10, %12 : f32
      linalg.yield %13 : f32
    } -> tensor<4x1x8x4xf32>
    func.return %9 : tensor<4x1x8x4xf32>
  }
}
