builtin.module {
  func.func @main(%0: tensor<5x?xf32>) -> tensor<5x1x?xf32> {
    %1 = arith.constant 1 : index
    %2 = tensor.dim %0, %1 : tensor<5x?xf32>
    %3 = tensor.empty(%2) : tensor<5x?xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<5x?xf32>) outs(%3 : tensor<5x?xf32>) {
    ^bb0(%5: f32, %6: f32):
      %7 = arith.constant 1.000000e+00 : f32
      %8 = arith.subf %5, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<5x?xf32>
    %9 = tensor.empty(%2) : tensor<5x?xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4, %4 : tensor<5x?xf32>, tensor<5x?xf32>) outs(%9 : tensor<5x?xf32>) {
    ^bb0(%11: f32, %12: f32, %13: f32):
      %14 = arith.mulf %11, %12 : f32
      linalg.yield %14 : f32
    } -> tensor<5x?xf32>
    %15 = tensor.expand_shape %10 [[0 : i64, 1 : i64], [2 : i64]] output_shape [5, 1, %2] : tensor<5x?xf32> into tensor<5x1x?xf32>
    %16 = tensor.empty(%2) : tensor<5x1x?xf32>
    %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<5x1x?xf32>) outs(%16 : tensor<5x1x?xf32>) {
    ^bb0(%18: f32, %19: f32):
      %20 = arith.constant 2.000000e+00 : f32
      %21 = arith.mulf %18, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<5x1x?xf32>
    func.return %17 : tensor<5x1x?xf32>
  }
}
