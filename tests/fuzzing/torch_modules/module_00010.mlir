builtin.module {
  func.func @main(%0: tensor<2x5x5x?xf32>) -> tensor<2x5x5x?xf32> {
    %1 = arith.constant 3 : index
    %2 = tensor.dim %0, %1 : tensor<2x5x5x?xf32>
    %3 = tensor.extract_slice %0[0, 0, 0, 0] [2, 5, 5, 1] [1, 1, 1, 1] : tensor<2x5x5x?xf32> to tensor<2x5x5x1xf32>
    %4 = tensor.collapse_shape %3 [[0 : i64], [1 : i64], [2 : i64, 3 : i64]] : tensor<2x5x5x1xf32> into tensor<2x5x5xf32>
    %5 = arith.constant 0 : i64
    %6 = tensor.empty() : tensor<2x5x5xi64>
    %7 = linalg.fill ins(%5 : i64) outs(%6 : tensor<2x5x5xi64>) -> tensor<2x5x5xi64>
    %8 = arith.constant 1 : index
    %9 = arith.subi %2, %8 : index
    %10 = tensor.extract_slice %0[0, 0, 0, 1] [2, 5, 5, %9] [1, 1, 1, 1] : tensor<2x5x5x?xf32> to tensor<2x5x5x?xf32>
    %11, %12 = iree_linalg_ext.arg_compare dimension(3) ins(%10 : tensor<2x5x5x?xf32>) outs(%4, %7 : tensor<2x5x5xf32>, tensor<2x5x5xi64>) index_base(%8 : index) {
    ^bb0(%13: f32, %14: f32):
      %15 = arith.cmpf ogt, %13, %14 : f32
      %16 = math.isnan %13 : f32
      %17 = math.isnan %14 : f32
      %18 = arith.constant true
      %19 = arith.xori %17, %18 : i1
      %20 = arith.andi %16, %19 : i1
      %21 = arith.ori %15, %20 : i1
      iree_linalg_ext.yield %21 : i1
    } -> tensor<2x5x5xf32>, tensor<2x5x5xi64>
    %22 = tensor.expand_shape %12 [[0 : i64], [1 : i64], [2 : i64, 3 : i64]] output_shape [2, 5, 5, 1] : tensor<2x5x5xi64> into tensor<2x5x5x1xi64>
    %23 = tensor.empty() : tensor<2x5x5x1xf32>
    %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22 : tensor<2x5x5x1xi64>) outs(%23 : tensor<2x5x5x1xf32>) {
    ^bb0(%25: i64, %26: f32):
      %27 = arith.sitofp %25 : i64 to f32
      linalg.yield %27 : f32
    } -> tensor<2x5x5x1xf32>
    %28 = tensor.empty(%2) : tensor<2x5x5x?xf32>
    %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24, %0 : tensor<2x5x5x1xf32>, tensor<2x5x5x?xf32>) outs(%28 : tensor<2x5x5x?xf32>) {
    ^bb0(%30: f32, %31: f32, %32: f32):
      %33 = arith.addf %30, %31 : f32
      linalg.yield %33 : f32
    } -> tensor<2x5x5x?xf32>
    func.return %29 : tensor<2x5x5x?xf32>
  }
}
