builtin.module {
  func.func @main(%0: tensor<?x5x4xf32>) -> tensor<?x5x4xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x5x4xf32>
    %3 = tensor.empty(%2) : tensor<?x5x4xf16>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<?x5x4xf32>) outs(%3 : tensor<?x5x4xf16>) {
    ^bb0(%5: f32, %6: f16):
      %7 = arith.truncf %5 : f32 to f16
      linalg.yield %7 : f16
    } -> tensor<?x5x4xf16>
    %8 = tensor.empty(%2) : tensor<?x5x4xf32>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<?x5x4xf16>) outs(%8 : tensor<?x5x4xf32>) {
    ^bb0(%10: f16, %11: f32):
      %12 = arith.extf %10 : f16 to f32
      linalg.yield %12 : f32
    } -> tensor<?x5x4xf32>
    func.return %9 : tensor<?x5x4xf32>
  }
}
