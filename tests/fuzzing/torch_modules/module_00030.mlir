builtin.module {
  func.func @main(%0: tensor<4x?x2x8xf32>) -> tensor<4x?x2x16xf32> {
    %1 = arith.constant 1 : index
    %2 = tensor.dim %0, %1 : tensor<4x?x2x8xf32>
    %3 = tensor.concat dim(3) %0, %0 : (tensor<4x?x2x8xf32>, tensor<4x?x2x8xf32>) -> tensor<4x?x2x16xf32>
    %4 = tensor.empty(%2) : tensor<4x?x2x16xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<4x?x2x16xf32>) outs(%4 : tensor<4x?x2x16xf32>) {
    ^bb0(%6: f32, %7: f32):
      %8 = arith.negf %6 : f32
      %9 = math.exp %8 : f32
      %10 = arith.constant 1.000000e+00 : f32
      %11 = arith.addf %9, %10 : f32
      %12 = arith.divf %10, %11 : f32
      %13 = arith.mulf %6, %12 : f32
      linalg.yield %13 : f32
    } -> tensor<4x?x2x16xf32>
    func.return %5 : tensor<4x?x2x16xf32>
  }
}
