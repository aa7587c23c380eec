builtin.module {
  func.func @main(%0: tensor<2x2xf32>) -> tensor<2x4xf32> {
    %1 = tensor.empty() : tensor<2x2xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<2x2xf32>) outs(%1 : tensor<2x2xf32>) {
    ^bb0(%3: f32, %4: f32):
      linalg.yield %3 : f32
    } -> tensor<2x2xf32>
    %5 = arith.constant 0.000000e+00 : f32
    %6 = tensor.empty() : tensor<2x2xf32>
    %7 = linalg.fill ins(%5 : f32) outs(%6 : tensor<2x2xf32>) -> tensor<2x2xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%0, %2 : tensor<2x2xf32>, tensor<2x2xf32>) outs(%7 : tensor<2x2xf32>) {
    ^bb0(%9: f32, %10: f32, %11: f32):
      %12 = arith.mulf %9, %10 : f32
      %13 = arith.addf %11, %12 : f32
      linalg.yield %13 : f32
    } -> tensor<2x2xf32>
    %14 = tensor.empty() : tensor<2x2xf16>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<2x2xf32>) outs(%14 : tensor<2x2xf16>) {
    ^bb0(%16: f32, %17: f16):
      %18 = arith.truncf %16 : f32 to f16
      linalg.yield %18 : f16
    } -> tensor<2x2xf16>
    %19 = tensor.empty() : tensor<2x2xf32>
    %20 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%15 : tensor<2x2xf16>) outs(%19 : tensor<2x2xf32>) {
    ^bb0(%21: f16, %22: f32):
      %23 = arith.extf %21 : f16 to f32
      linalg.yield %23 : f32
    } -> tensor<2x2xf32>
    %24 = tensor.concat dim(1) %20, %20 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
    func.return %24 : tensor<2x4xf32>
  }
}
