builtin.module {
  func.func @main(%0: tensor<?x2xf32>) -> tensor<1xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x2xf32>
    %3 = tensor.empty() : tensor<2xf32>
    %4 = arith.constant 0xff800000 : f32
    %5 = tensor.empty(%2) : tensor<?x1xf32>
    %6 = linalg.fill ins(%4 : f32) outs(%5 : tensor<?x1xf32>) -> tensor<?x1xf32>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, ((d1 * 2) + d2))>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%0, %3 : tensor<?x2xf32>, tensor<2xf32>) outs(%6 : tensor<?x1xf32>) {
    ^bb0(%8: f32, %9: f32, %10: f32):
      %11 = arith.maximumf %10, %8 : f32
      linalg.yield %11 : f32
    } -> tensor<?x1xf32>
    %12 = tensor.empty(%2) : tensor<?x1xi64>
    %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%12 : tensor<?x1xi64>) {
    ^bb0(%14: i64):
      %15 = linalg.index 0 : index
      %16 = linalg.index 1 : index
      %17 = arith.index_cast %16 : index to i64
      linalg.yield %17 : i64
    } -> tensor<?x1xi64>
    %18 = tensor.empty(%2) : tensor<?x1xf32>
    %19 = tensor.empty(%2) : tensor<?x1xi64>
    %20, %21 = iree_linalg_ext.sort dimension(1) ins(%7, %13 : tensor<?x1xf32>, tensor<?x1xi64>) outs(%18, %19 : tensor<?x1xf32>, tensor<?x1xi64>) {
    ^bb0(%22: f32, %23: f32, %24: i64, %25: i64):
      %26 = arith.cmpf olt, %22, %23 : f32
      iree_linalg_ext.yield %26 : i1
    } -> tensor<?x1xf32>, tensor<?x1xi64>
    %27 = arith.constant 0.000000e+00 : f32
    %28 = tensor.empty(%2) : tensor<?xf32>
    %29 = linalg.fill ins(%27 : f32) outs(%28 : tensor<?xf32>) -> tensor<?xf32>
    %30 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%20 : tensor<?x1xf32>) outs(%29 : tensor<?xf32>) {
    ^bb0(%31: f32, %32: f32):
      %33 = arith.addf %32, %31 : f32
      linalg.yield %33 : f32
    } -> tensor<?xf32>
    %34 = arith.constant 1 : index
    %35 = tensor.expand_shape %30 [[0 : i64, 1 : i64]] output_shape [%2, 1] : tensor<?xf32> into tensor<?x1xf32>
    %36 = tensor.empty(%2) : tensor<?x1xf32>
    %37 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%35, %20 : tensor<?x1xf32>, tensor<?x1xf32>) outs(%36 : tensor<?x1xf32>) {
    ^bb0(%38: f32, %39: f32, %40: f32):
      %41 = arith.addf %38, %39 : f32
      linalg.yield %41 : f32
    } -> tensor<?x1xf32>
    %42 = tensor.empty() : tensor<1xf32>
    %43 = linalg.fill ins(%4 : f32) outs(%42 : tensor<1xf32>) -> tensor<1xf32>
    %44 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%37 : tensor<?x1xf32>) outs(%43 : tensor<1xf32>) {
    ^bb0(%45: f32, %46: f32):
      %47 = arith.maximumf %46, %45 : f32
      linalg.yield %47 : f32
    } -> tensor<1xf32>
    %48 = tensor.empty() : tensor<1xf32>
    %49 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%44 : tensor<1xf32>) outs(%48 : tensor<1xf32>) {
    ^bb0(%50: f32, %51: f32):
      %52 = math.exp %50 : f32
      linalg.yield %52 : f32
    } -> tensor<1xf32>
    func.return %49 : tensor<1xf32>
  }
}
