builtin.module {
  func.func @main(%0: tensor<8x?x2xf32>) -> tensor<8x?x2xf32> {
    %1 = arith.constant 1 : index
    %2 = tensor.dim %0, %1 : tensor<8x?x2xf32>
    %3 = tensor.empty(%2) : tensor<8x?x2xi1>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<8x?x2xf32>) outs(%3 : tensor<8x?x2xi1>) {
    ^bb0(%5: f32, %6: i1):
      %7 = arith.constant 0.000000e+00 : f32
      %8 = arith.cmpf ogt, %5, %7 : f32
      linalg.yield %8 : i1
    } -> tensor<8x?x2xi1>
    %9 = tensor.empty(%2) : tensor<8x?x2xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<8x?x2xf32>) outs(%9 : tensor<8x?x2xf32>) {
    ^bb0(%11: f32, %12: f32):
      %13 = arith.negf %11 : f32
      linalg.yield %13 : f32
    } -> tensor<8x?x2xf32>
    %14 = tensor.empty(%2) : tensor<8x?x2xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4, %0, %10 : tensor<8x?x2xi1>, tensor<8x?x2xf32>, tensor<8x?x2xf32>) outs(%14 : tensor<8x?x2xf32>) {
    ^bb0(%16: i1, %17: f32, %18: f32, %19: f32):
      %20 = arith.select %16, %17, %18 : f32
      linalg.yield %20 : f32
    } -> tensor<8x?x2xf32>
    %21 = tensor.extract_slice %15[0, 0, 0] [8, %2, 1] [1, 1, 1] : tensor<8x?x2xf32> to tensor<8x?x1xf32>
    %22 = tensor.collapse_shape %21 [[0 : i64], [1 : i64, 2 : i64]] : tensor<8x?x1xf32> into tensor<8x?xf32>
    %23 = arith.constant 0 : i64
    %24 = tensor.empty(%2) : tensor<8x?xi64>
    %25 = linalg.fill ins(%23 : i64) outs(%24 : tensor<8x?xi64>) -> tensor<8x?xi64>
    %26 = tensor.extract_slice %15[0, 0, 1] [8, %2, 1] [1, 1, 1] : tensor<8x?x2xf32> to tensor<8x?x1xf32>
    %27, %28 = iree_linalg_ext.arg_compare dimension(2) ins(%26 : tensor<8x?x1xf32>) outs(%22, %25 : tensor<8x?xf32>, tensor<8x?xi64>) index_base(%1 : index) {
    ^bb0(%29: f32, %30: f32):
      %31 = arith.cmpf ogt, %29, %30 : f32
      %32 = math.isnan %29 : f32
      %33 = math.isnan %30 : f32
      %34 = arith.constant true
      %35 = arith.xori %33, %34 : i1
      %36 = arith.andi %32, %35 : i1
      %37 = arith.ori %31, %36 : i1
      iree_linalg_ext.yield %37 : i1
    } -> tensor<8x?xf32>, tensor<8x?xi64>
    %38 = tensor.expand_shape %28 [[0 : i64], [1 : i64, 2 : i64]] output_shape [8, %2, 1] : tensor<8x?xi64> into tensor<8x?x1xi64>
    %39 = tensor.empty(%2) : tensor<8x?x1xf32>
    %40 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%38 : tensor<8x?x1xi64>) outs(%39 : tensor<8x?x1xf32>) {
    ^bb0(%41: i64, %42: f32):
      %43 = arith.sitofp %41 : i64 to f32
      linalg.yield %43 : f32
    } -> tensor<8x?x1xf32>
    %44 = tensor.empty(%2) : tensor<8x?x2xf32>
    %45 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%40, %15 : tensor<8x?x1xf32>, tensor<8x?x2xf32>) outs(%44 : tensor<8x?x2xf32>) {
    ^bb0(%46: f32, %47: f32, %48: f32):
      %49 = arith.addf %46, %47 : f32
      linalg.yield %49 : f32
    } -> tensor<8x?x2xf32>
    func.return %45 : tensor<8x?x2xf32>
  }
}
