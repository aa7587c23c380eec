builtin.module {
  func.func @main(%0: tensor<2x5xf32>) -> tensor<2x2xf32> {
    %1 = tensor.extract_slice %0[0, 1] [2, 4] [1, 1] : tensor<2x5xf32> to tensor<2x4xf32>
    %2 = tensor.empty() : tensor<2x2xf32>
    %3 = tensor.empty() : tensor<2x2xi64>
    %4, %5 = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%1 : tensor<2x4xf32>) outs(%2, %3 : tensor<2x2xf32>, tensor<2x2xi64>) {
    ^bb0(%6: f32, %7: f32):
      %8 = arith.cmpf ogt, %6, %7 : f32
      iree_linalg_ext.yield %8 : i1
    } -> tensor<2x2xf32>, tensor<2x2xi64>
    %9 = tensor.empty() : tensor<2x2xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4, %4 : tensor<2x2xf32>, tensor<2x2xf32>) outs(%9 : tensor<2x2xf32>) {
    ^bb0(%11: f32, %12: f32, %13: f32):
      %14 = arith.mulf %11, %12 : f32
      linalg.yield %14 : f32
    } -> tensor<2x2xf32>
    func.return %10 : tensor<2x2xf32>
  }
}
