builtin.module {
  func.func @main(%0: tensor<?x8x2x3xf32>) -> tensor<?x1x8x2x3xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x8x2x3xf32>
    %3 = arith.constant 1 : index
    %4 = tensor.expand_shape %0 [[0 : i64], [1 : i64, 2 : i64], [3 : i64], [4 : i64]] output_shape [%2, 1, 8, 2, 3] : tensor<?x8x2x3xf32> into tensor<?x1x8x2x3xf32>
    %5 = tensor.empty(%2) : tensor<?x1x8x2x3xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<?x1x8x2x3xf32>) outs(%5 : tensor<?x1x8x2x3xf32>) {
    ^bb0(%7: f32, %8: f32):
      %9 = arith.constant 2.000000e+00 : f32
      %10 = arith.mulf %7, %9 : f32
      linalg.yield %10 : f32
    } -> tensor<?x1x8x2x3xf32>
    func.return %6 : tensor<?x1x8x2x3xf32>
  }
}
