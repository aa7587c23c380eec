builtin.module {
  func.func @main(%0: tensor<?x3x8x8xf32>) -> tensor<?x3x8x2xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x3x8x8xf32>
    %3 = tensor.empty(%2) : tensor<?x3x8x8xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%0 : tensor<?x3x8x8xf32>) outs(%3 : tensor<?x3x8x8xf32>) {
    ^bb0(%5: f32, %6: f32):
      %7 = linalg.index 3 : index
      %8 = linalg.index 2 : index
      %9 = arith.subi %7, %8 : index
      %10 = arith.cmpi sle, %9, %1 : index
      %11 = arith.constant 0.000000e+00 : f32
      %12 = arith.select %10, %5, %11 : f32
      linalg.yield %12 : f32
    } -> tensor<?x3x8x8xf32>
    %13 = tensor.empty(%2) : tensor<?x3x8x2xf32>
    %14 = tensor.empty(%2) : tensor<?x3x8x2xi64>
    %15, %16 = iree_linalg_ext.topk_v2 dimension(3) is_sorted ins(%4 : tensor<?x3x8x8xf32>) outs(%13, %14 : tensor<?x3x8x2xf32>, tensor<?x3x8x2xi64>) {
    ^bb0(%17: f32, %18: f32):
      %19 = arith.cmpf ogt, %17, %18 : f32
      iree_linalg_ext.yield %19 : i1
    } -> tensor<?x3x8x2xf32>, tensor<?x3x8x2xi64>
    %20 = tensor.extract_slice %15[0, 0, 0, 1] [%2, 3, 8, 1] [1, 1, 1, 1] : tensor<?x3x8x2xf32> to tensor<?x3x8x1xf32>
    %21 = tensor.extract_slice %15[0, 0, 0, 0] [%2, 3, 8, 1] [1, 1, 1, 1] : tensor<?x3x8x2xf32> to tensor<?x3x8x1xf32>
    %22 = tensor.concat dim(3) %20, %21 : (tensor<?x3x8x1xf32>, tensor<?x3x8x1xf32>) -> tensor<?x3x8x2xf32>
    func.return %22 : tensor<?x3x8x2xf32>
  }
}
