builtin.module {
  func.func @main(%0: tensor<2x3x4xf32>) -> tensor<2x3x8xf32> {
    %1 = tensor.empty() : tensor<2x3x4xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<2x3x4xf32>) outs(%1 : tensor<2x3x4xf32>) {
    ^bb0(%3: f32, %4: f32):
      %5 = arith.constant 5.000000e-01 : f32
      %6 = arith.mulf %3, %5 : f32
      %7 = arith.constant 0.707106769 : f32
      %8 = arith.mulf %3, %7 : f32
      %9 = math.erf %8 : f32
      %10 = arith.constant 1.000000e+00 : f32
      %11 = arith.addf %9, %10 : f32
      %12 = arith.mulf %6, %11 : f32
      linalg.yield %12 : f32
    } -> tensor<2x3x4xf32>
    %13 = tensor.concat dim(2) %2, %2 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x8xf32>
    %14 = tensor.empty() : tensor<2x3x8xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13 : tensor<2x3x8xf32>) outs(%14 : tensor<2x3x8xf32>) {
    ^bb0(%16: f32, %17: f32):
      %18 = arith.constant 5.000000e-01 : f32
      %19 = arith.mulf %16, %18 : f32
      %20 = arith.constant 0.707106769 : f32
      %21 = arith.mulf %16, %20 : f32
      %22 = math.erf %21 : f32
      %23 = arith.constant 1.000000e+00 : f32
      %24 = arith.addf %22, %23 : f32
      %25 = arith.mulf %19, %24 : f32
      linalg.yield %25 : f32
    } -> tensor<2x3x8xf32>
    %26 = tensor.empty() : tensor<2x3x8xf16>
    %27 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<2x3x8xf32>) outs(%26 : tensor<2x3x8xf16>) {
    ^bb0(%28: f32, %29: f16):
      %30 = arith.truncf %28 : f32 to f16
      linalg.yield %30 : f16
    } -> tensor<2x3x8xf16>
    %31 = tensor.empty() : tensor<2x3x8xf32>
    %32 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%27 : tensor<2x3x8xf16>) outs(%31 : tensor<2x3x8xf32>) {
    ^bb0(%33: f16, %34: f32):
      %35 = arith.extf %33 : f16 to f32
      linalg.yield %35 : f32
    } -> tensor<2x3x8xf32>
    func.return %32 : tensor<2x3x8xf32>
  }
}
