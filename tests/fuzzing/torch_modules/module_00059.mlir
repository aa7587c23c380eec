builtin.module {
  func.func @main(%0: tensor<2x5xf32>) -> tensor<5x2xf32> {
    %1 = tensor.empty() : tensor<5x2xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<2x5xf32>) outs(%1 : tensor<5x2xf32>) {
    ^bb0(%3: f32, %4: f32):
      linalg.yield %3 : f32
    } -> tensor<5x2xf32>
    func.return %2 : tensor<5x2xf32>
  }
}
