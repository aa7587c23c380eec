builtin.module {
  func.func @main(%0: tensor<5x8x3x3xf32>) -> tensor<5x8x3x3xf32> {
    %1 = tensor.empty() : tensor<5x8x3x2xf32>
    %2 = tensor.empty() : tensor<5x8x3x2xi64>
    %3, %4 = iree_linalg_ext.topk_v2 dimension(3) is_sorted ins(%0 : tensor<5x8x3x3xf32>) outs(%1, %2 : tensor<5x8x3x2xf32>, tensor<5x8x3x2xi64>) {
    ^bb0(%5: f32, %6: f32):
      %7 = arith.cmpf ogt, %5, %6 : f32
      iree_linalg_ext.yield %7 : i1
    } -> tensor<5x8x3x2xf32>, tensor<5x8x3x2xi64>
    %8 = tensor.empty() : tensor<5x8x2x3xf32>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<5x8x3x2xf32>) outs(%8 : tensor<5x8x2x3xf32>) {
    ^bb0(%10: f32, %11: f32):
      linalg.yield %10 : f32
    } -> tensor<5x8x2x3xf32>
    %12 = arith.constant 0.000000e+00 : f32
    %13 = tensor.empty() : tensor<5x8x3x3xf32>
    %14 = linalg.fill ins(%12 : f32) outs(%13 : tensor<5x8x3x3xf32>) -> tensor<5x8x3x3xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%3, %9 : tensor<5x8x3x2xf32>, tensor<5x8x2x3xf32>) outs(%14 : tensor<5x8x3x3xf32>) {
    ^bb0(%16: f32, %17: f32, %18: f32):
      %19 = arith.mulf %16, %17 : f32
      %20 = arith.addf %18, %19 : f32
      linalg.yield %20 : f32
    } -> tensor<5x8x3x3xf32>
    func.return %15 : tensor<5x8x3x3xf32>
  }
}
