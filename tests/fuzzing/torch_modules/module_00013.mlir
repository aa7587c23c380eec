builtin.module {
  func.func @main(%0: tensor<4x3x?xf32>) -> tensor<4x3x?xf32> {
    %1 = arith.constant 2 : index
    %2 = tensor.dim %0, %1 : tensor<4x3x?xf32>
    %3 = arith.constant 1 : index
    %4 = arith.addi %2, %3 : index
    %5 = arith.constant 1.000000e+00 : f32
    %6 = arith.constant 0 : index
    %7 = tensor.pad %0 low[0, 0, 0] high[0, 0, 1] {
    ^bb0(%8: index, %9: index, %10: index):
      tensor.yield %5 : f32
    } : tensor<4x3x?xf32> to tensor<4x3x?xf32>
    %11 = arith.addi %3, %2 : index
    %12 = tensor.empty(%11) : tensor<4x3x?xi64>
    %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%12 : tensor<4x3x?xi64>) {
    ^bb0(%14: i64):
      %15 = linalg.index 0 : index
      %16 = linalg.index 1 : index
      %17 = linalg.index 2 : index
      %18 = arith.index_cast %17 : index to i64
      linalg.yield %18 : i64
    } -> tensor<4x3x?xi64>
    %19 = tensor.empty(%11) : tensor<4x3x?xf32>
    %20 = tensor.empty(%11) : tensor<4x3x?xi64>
    %21, %22 = iree_linalg_ext.sort dimension(2) ins(%7, %13 : tensor<4x3x?xf32>, tensor<4x3x?xi64>) outs(%19, %20 : tensor<4x3x?xf32>, tensor<4x3x?xi64>) {
    ^bb0(%23: f32, %24: f32, %25: i64, %26: i64):
      %27 = arith.cmpf olt, %23, %24 : f32
      iree_linalg_ext.yield %27 : i1
    } -> tensor<4x3x?xf32>, tensor<4x3x?xi64>
    func.return %21 : tensor<4x3x?xf32>
  }
}
