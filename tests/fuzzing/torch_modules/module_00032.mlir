builtin.module {
  func.func @main(%0: tensor<3x3xf32>) -> tensor<3x2xf32> {
    %1 = tensor.extract_slice %0[0, 1] [3, 2] [1, 1] : tensor<3x3xf32> to tensor<3x2xf32>
    %2 = tensor.empty() : tensor<3x2xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%1, %1 : tensor<3x2xf32>, tensor<3x2xf32>) outs(%2 : tensor<3x2xf32>) {
    ^bb0(%4: f32, %5: f32, %6: f32):
      %7 = arith.mulf %4, %5 : f32
      linalg.yield %7 : f32
    } -> tensor<3x2xf32>
    %8 = tensor.empty() : tensor<3x2xf32>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<3x2xf32>) outs(%8 : tensor<3x2xf32>) {
    ^bb0(%10: f32, %11: f32):
      %12 = arith.negf %10 : f32
      %13 = math.exp %12 : f32
      %14 = arith.constant 1.000000e+00 : f32
      %15 = arith.addf %13, %14 : f32
      %16 = arith.divf %14, %15 : f32
      linalg.yield %16 : f32
    } -> tensor<3x2xf32>
    func.return %9 : tensor<3x2xf32>
  }
}
