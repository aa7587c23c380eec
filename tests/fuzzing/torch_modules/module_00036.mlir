builtin.module {
  func.func @main(%0: tensor<2x2x4xf32>) -> tensor<2x2x4xf32> {
    %1 = tensor.empty() : tensor<2x2x4xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<2x2x4xf32>) outs(%1 : tensor<2x2x4xf32>) {
    ^bb0(%3: f32, %4: f32):
      %5 = arith.constant 0.000000e+00 : f32
      %6 = arith.maximumf %3, %5 : f32
      linalg.yield %6 : f32
    } -> tensor<2x2x4xf32>
    func.return %2 : tensor<2x2x4xf32>
  }
}
