builtin.module {
  func.func @main(%0: tensor<2x2x4x3xf32>) -> tensor<2x2x3x4xf32> {
    %1 = tensor.empty() : tensor<2x2x3x4xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%0 : tensor<2x2x4x3xf32>) outs(%1 : tensor<2x2x3x4xf32>) {
    ^bb0(%3: f32, %4: f32):
      linalg.yield %3 : f32
    } -> tensor<2x2x3x4xf32>
    %5 = tensor.empty() : tensor<2x2x3x4xf32>
    %6 = linalg.softmax dimension(3) ins(%2 : tensor<2x2x3x4xf32>) outs(%5 : tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
    func.return %6 : tensor<2x2x3x4xf32>
  }
}
