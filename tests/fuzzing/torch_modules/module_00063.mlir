builtin.module {
  func.func @main(%0: tensor<5x4x4xf32>) -> tensor<5x1x4x4xf32> {
    %1 = tensor.empty() : tensor<5x4x4xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<5x4x4xf32>) outs(%1 : tensor<5x4x4xf32>) {
    ^bb0(%3: f32, %4: f32):
      %5 = math.exp %3 : f32
      linalg.yield %5 : f32
    } -> tensor<5x4x4xf32>
    %6 = tensor.expand_shape %2 [[0 : i64], [1 : i64, 2 : i64], [3 : i64]] output_shape [5, 1, 4, 4] : tensor<5x4x4xf32> into tensor<5x1x4x4xf32>
    %7 = tensor.empty() : tensor<5x1x4x4xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6 : tensor<5x1x4x4xf32>) outs(%7 : tensor<5x1x4x4xf32>) {
    ^bb0(%9: f32, %10: f32):
      %11 = arith.constant 2.000000e+00 : f32
      %12 = arith.mulf %9, %11 : f32
      linalg.yield %12 : f32
    } -> tensor<5x1x4x4xf32>
    %13 = tensor.empty() : tensor<5x1x4x4xf32>
    %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<5x1x4x4xf32>) outs(%13 : tensor<5x1x4x4xf32>) {
    ^bb0(%15: f32, %16: f32):
      %17 = math.exp %15 : f32
      linalg.yield %17 : f32
    } -> tensor<5x1x4x4xf32>
    %18 = tensor.empty() : tensor<5x1x4x4xf32>
    %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<5x1x4x4xf32>) outs(%18 : tensor<5x1x4x4xf32>) {
    ^bb0(%20: f32, %21: f32):
      %22 = math.tanh %20 : f32
      linalg.yield %22 : f32
    } -> tensor<5x1x4x4xf32>
    func.return %19 : tensor<5x1x4x4xf32>
  }
}
