builtin.module {
  func.func @main(%0: tensor<2x?x5xf32>) -> tensor<2x2xf32> {
    %1 = arith.constant 1 : index
    %2 = tensor.dim %0, %1 : tensor<2x?x5xf32>
    %3 = tensor.empty(%2) : tensor<2x?x5xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<2x?x5xf32>) outs(%3 : tensor<2x?x5xf32>) {
    ^bb0(%5: f32, %6: f32):
      %7 = arith.negf %5 : f32
      %8 = math.exp %7 : f32
      %9 = arith.constant 1.000000e+00 : f32
      %10 = arith.addf %8, %9 : f32
      %11 = arith.divf %9, %10 : f32
      linalg.yield %11 : f32
    } -> tensor<2x?x5xf32>
    %12 = tensor.extract_slice %4[0, 0, 0] [2, %2, 1] [1, 1, 1] : tensor<2x?x5xf32> to tensor<2x?x1xf32>
    %13 = tensor.collapse_shape %12 [[0 : i64], [1 : i64, 2 : i64]] : tensor<2x?x1xf32> into tensor<2x?xf32>
    %14 = arith.constant 0 : i64
    %15 = tensor.empty(%2) : tensor<2x?xi64>
    %16 = linalg.fill ins(%14 : i64) outs(%15 : tensor<2x?xi64>) -> tensor<2x?xi64>
    %17 = tensor.extract_slice %4[0, 0, 1] [2, %2, 4] [1, 1, 1] : tensor<2x?x5xf32> to tensor<2x?x4xf32>
    %18, %19 = iree_linalg_ext.arg_compare dimension(2) ins(%17 : tensor<2x?x4xf32>) outs(%13, %16 : tensor<2x?xf32>, tensor<2x?xi64>) index_base(%1 : index) {
    ^bb0(%20: f32, %21: f32):
      %22 = arith.cmpf ogt, %20, %21 : f32
      %23 = math.isnan %20 : f32
      %24 = math.isnan %21 : f32
      %25 = arith.constant true
      %26 = arith.xori %24, %25 : i1
      %27 = arith.andi %23, %26 : i1
      %28 = arith.ori %22, %27 : i1
      iree_linalg_ext.yield %28 : i1
    } -> tensor<2x?xf32>, tensor<2x?xi64>
    %29 = tensor.expand_shape %19 [[0 : i64], [1 : i64, 2 : i64]] output_shape [2, %2, 1] : tensor<2x?xi64> into tensor<2x?x1xi64>
    %30 = tensor.empty(%2) : tensor<2x?x1xf32>
    %31 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%29 : tensor<2x?x1xi64>) outs(%30 : tensor<2x?x1xf32>) {
    ^bb0(%32: i64, %33: f32):
      %34 = arith.sitofp %32 : i64 to f32
      linalg.yield %34 : f32
    } -> tensor<2x?x1xf32>
    %35 = tensor.empty(%2) : tensor<2x?x5xf32>
    %36 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, 0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%31, %4 : tensor<2x?x1xf32>, tensor<2x?x5xf32>) outs(%35 : tensor<2x?x5xf32>) {
    ^bb0(%37: f32, %38: f32, %39: f32):
      %40 = arith.addf %37, %38 : f32
      linalg.yield %40 : f32
    } -> tensor<2x?x5xf32>
    %41 = arith.constant 5 : index
    %42 = arith.muli %41, %2 : index
    %43 = tensor.collapse_shape %36 [[0 : i64], [1 : i64, 2 : i64]] : tensor<2x?x5xf32> into tensor<2x?xf32>
    %44 = tensor.empty() : tensor<2x2xf32>
    %45 = tensor.empty() : tensor<2x2xi64>
    %46, %47 = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%43 : tensor<2x?xf32>) outs(%44, %45 : tensor<2x2xf32>, tensor<2x2xi64>) {
    ^bb0(%48: f32, %49: f32):
      %50 = arith.cmpf ogt, %48, %49 : f32
      iree_linalg_ext.yield %50 : i1
    } -> tensor<2x2xf32>, tensor<2x2xi64>
    %51 = tensor.empty() : tensor<2x2xf64>
    %52 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%46 : tensor<2x2xf32>) outs(%51 : tensor<2x2xf64>) {
    ^bb0(%53: f32, %54: f64):
      %55 = arith.extf %53 : f32 to f64
      linalg.yield %55 : f64
    } -> tensor<2x2xf64>
    %56 = tensor.empty() : tensor<2x2xf64>
    %57 = arith.constant 0.000000e+00 : f64
    %58 = tensor.empty() : tensor<2xf64>
    %59 = linalg.fill ins(%57 : f64) outs(%58 : tensor<2xf64>) -> tensor<2xf64>
    %60, %61 = iree_linalg_ext.scan dimension(1) inclusive(true) ins(%52 : tensor<2x2xf64>) outs(%56, %59 : tensor<2x2xf64>, tensor<2xf64>) {
    ^bb0(%62: f64, %63: f64):
      %64 = arith.addf %62, %63 : f64
      iree_linalg_ext.yield %64 : f64
    } -> tensor<2x2xf64>, tensor<2xf64>
    %65 = tensor.empty() : tensor<2x2xf32>
    %66 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%60 : tensor<2x2xf64>) outs(%65 : tensor<2x2xf32>) {
    ^bb0(%67: f64, %68: f32):
      %69 = arith.truncf %67 : f64 to f32
      linalg.yield %69 : f32
    } -> tensor<2x2xf32>
    func.return %66 : tensor<2x2xf32>
  }
}
