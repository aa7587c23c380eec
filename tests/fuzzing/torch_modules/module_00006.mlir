builtin.module {
  func.func @main(%0: tensor<2x5x4x2xf32>) -> tensor<2x5x4x2xf32> {
    %1 = tensor.empty() : tensor<2x5x4x2xf64>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%0 : tensor<2x5x4x2xf32>) outs(%1 : tensor<2x5x4x2xf64>) {
    ^bb0(%3: f32, %4: f64):
      %5 = arith.extf %3 : f32 to f64
      linalg.yield %5 : f64
    } -> tensor<2x5x4x2xf64>
    %6 = tensor.empty() : tensor<2x5x4x2xf64>
    %7 = arith.constant 0.000000e+00 : f64
    %8 = tensor.empty() : tensor<2x5x4xf64>
    %9 = linalg.fill ins(%7 : f64) outs(%8 : tensor<2x5x4xf64>) -> tensor<2x5x4xf64>
    %10, %11 = iree_linalg_ext.scan dimension(3) inclusive(true) ins(%2 : tensor<2x5x4x2xf64>) outs(%6, %9 : tensor<2x5x4x2xf64>, tensor<2x5x4xf64>) {
    ^bb0(%12: f64, %13: f64):
      %14 = arith.addf %12, %13 : f64
      iree_linalg_ext.yield %14 : f64
    } -> tensor<2x5x4x2xf64>, tensor<2x5x4xf64>
    %15 = tensor.empty() : tensor<2x5x4x2xf32>
    %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10 : tensor<2x5x4x2xf64>) outs(%15 : tensor<2x5x4x2xf32>) {
    ^bb0(%17: f64, %18: f32):
      %19 = arith.truncf %17 : f64 to f32
      linalg.yield %19 : f32
    } -> tensor<2x5x4x2xf32>
    func.return %16 : tensor<2x5x4x2xf32>
  }
}
