builtin.module {
  func.func @main(%0: tensor<8x?x4xf32>) -> tensor<8x?x4xf32> {
    %1 = arith.constant 1 : index
    %2 = tensor.dim %0, %1 : tensor<8x?x4xf32>
    %3 = tensor.empty(%2) : tensor<8x?x4xi64>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%3 : tensor<8x?x4xi64>) {
    ^bb0(%5: i64):
      %6 = linalg.index 0 : index
      %7 = linalg.index 1 : index
      %8 = linalg.index 2 : index
      %9 = arith.index_cast %8 : index to i64
      linalg.yield %9 : i64
    } -> tensor<8x?x4xi64>
    %10 = tensor.empty(%2) : tensor<8x?x4xf32>
    %11 = tensor.empty(%2) : tensor<8x?x4xi64>
    %12, %13 = iree_linalg_ext.sort dimension(2) ins(%0, %4 : tensor<8x?x4xf32>, tensor<8x?x4xi64>) outs(%10, %11 : tensor<8x?x4xf32>, tensor<8x?x4xi64>) {
    ^bb0(%14: f32, %15: f32, %16: i64, %17: i64):
      %18 = arith.cmpf olt, %14, %15 : f32
      iree_linalg_ext.yield %18 : i1
    } -> tensor<8x?x4xf32>, tensor<8x?x4xi64>
    %19 = tensor.empty(%2) : tensor<8x?x4xf32>
    %20 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12 : tensor<8x?x4xf32>) outs(%19 : tensor<8x?x4xf32>) {
    ^bb0(%21: f32, %22: f32):
      %23 = arith.constant 0.000000e+00 : f32
      %24 = arith.maximumf %21, %23 : f32
      linalg.yield %24 : f32
    } -> tensor<8x?x4xf32>
    func.return %20 : tensor<8x?x4xf32>
  }
}
