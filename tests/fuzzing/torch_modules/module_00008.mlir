builtin.module {
  func.func @main(%0: tensor<?x5xf32>) -> tensor<?x2xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x5xf32>
    %3 = tensor.empty(%2) : tensor<?x2xf32>
    %4 = tensor.empty(%2) : tensor<?x2xi64>
    %5, %6 = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%0 : tensor<?x5xf32>) outs(%3, %4 : tensor<?x2xf32>, tensor<?x2xi64>) {
    ^bb0(%7: f32, %8: f32):
      %9 = arith.cmpf ogt, %7, %8 : f32
      iree_linalg_ext.yield %9 : i1
    } -> tensor<?x2xf32>, tensor<?x2xi64>
    %10 = tensor.empty(%2) : tensor<?x2xf32>
    %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<?x2xf32>) outs(%10 : tensor<?x2xf32>) {
    ^bb0(%12: f32, %13: f32):
      %14 = arith.constant 5.000000e-01 : f32
      %15 = arith.mulf %12, %14 : f32
      %16 = arith.constant 0.707106769 : f32
      %17 = arith.mulf %12, %16 : f32
      %18 = math.erf %17 : f32
      %19 = arith.constant 1.000000e+00 : f32
      %20 = arith.addf %18, %19 : f32
      %21 = arith.mulf %15, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<?x2xf32>
    func.return %11 : tensor<?x2xf32>
  }
}
