builtin.module {
  func.func @main(%0: tensor<3x?xf32>) -> tensor<3x?xf32> {
    %1 = arith.constant 1 : index
    %2 = tensor.dim %0, %1 : tensor<3x?xf32>
    %3 = tensor.empty(%2) : tensor<3x?xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<3x?xf32>) outs(%3 : tensor<3x?xf32>) {
    ^bb0(%5: f32, %6: f32):
      %7 = math.exp %5 : f32
      linalg.yield %7 : f32
    } -> tensor<3x?xf32>
    %8 = tensor.empty(%2) : tensor<3x?xi64>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%8 : tensor<3x?xi64>) {
    ^bb0(%10: i64):
      %11 = linalg.index 0 : index
      %12 = linalg.index 1 : index
      %13 = arith.index_cast %12 : index to i64
      linalg.yield %13 : i64
    } -> tensor<3x?xi64>
    %14 = tensor.empty(%2) : tensor<3x?xf32>
    %15 = tensor.empty(%2) : tensor<3x?xi64>
    %16, %17 = iree_linalg_ext.sort dimension(1) ins(%4, %9 : tensor<3x?xf32>, tensor<3x?xi64>) outs(%14, %15 : tensor<3x?xf32>, tensor<3x?xi64>) {
    ^bb0(%18: f32, %19: f32, %20: i64, %21: i64):
      %22 = arith.cmpf olt, %18, %19 : f32
      iree_linalg_ext.yield %22 : i1
    } -> tensor<3x?xf32>, tensor<3x?xi64>
    %23 = tensor.empty(%2) : tensor<3x?xf16>
    %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%16 : tensor<3x?xf32>) outs(%23 : tensor<3x?xf16>) {
    ^bb0(%25: f32, %26: f16):
      %27 = arith.truncf %25 : f32 to f16
      linalg.yield %27 : f16
    } -> tensor<3x?xf16>
    %28 = tensor.empty(%2) : tensor<3x?xf32>
    %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%24 : tensor<3x?xf16>) outs(%28 : tensor<3x?xf32>) {
    ^bb0(%30: f16, %31: f32):
      %32 = arith.extf %30 : f16 to f32
      linalg.yield %32 : f32
    } -> tensor<3x?xf32>
    func.return %29 : tensor<3x?xf32>
  }
}
