builtin.module {
  func.func @main(%0: tensor<5x4x?x3xf32>) -> tensor<5x4x?x3xf32> {
    %1 = arith.constant 2 : index
    %2 = tensor.dim %0, %1 : tensor<5x4x?x3xf32>
    %3 = tensor.empty(%2) : tensor<5x4x?x3xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%0 : tensor<5x4x?x3xf32>) outs(%3 : tensor<5x4x?x3xf32>) {
    ^bb0(%5: f32, %6: f32):
      %7 = math.tanh %5 : f32
      linalg.yield %7 : f32
    } -> tensor<5x4x?x3xf32>
    func.return %4 : tensor<5x4x?x3xf32>
  }
}
