builtin.module {
  func.func @main(%0: tensor<5x2xf32>) -> tensor<2x5xf32> {
    %1 = tensor.empty() : tensor<5x2xf64>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<5x2xf32>) outs(%1 : tensor<5x2xf64>) {
    ^bb0(%3: f32, %4: f64):
      %5 = arith.extf %3 : f32 to f64
      linalg.yield %5 : f64
    } -> tensor<5x2xf64>
    %6 = tensor.empty() : tensor<5x2xf64>
    %7 = arith.constant 0.000000e+00 : f64
    %8 = tensor.empty() : tensor<5xf64>
    %9 = linalg.fill ins(%7 : f64) outs(%8 : tensor<5xf64>) -> tensor<5xf64>
    %10, %11 = iree_linalg_ext.scan dimension(1) inclusive(true) ins(%2 : tensor<5x2xf64>) outs(%6, %9 : tensor<5x2xf64>, tensor<5xf64>) {
    ^bb0(%12: f64, %13: f64):
      %14 = arith.addf %12, %13 : f64
      iree_linalg_ext.yield %14 : f64
    } -> tensor<5x2xf64>, tensor<5xf64>
    %15 = tensor.empty() : tensor<5x2xf32>
    %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%10 : tensor<5x2xf64>) outs(%15 : tensor<5x2xf32>) {
    ^bb0(%17: f64, %18: f32):
      %19 = arith.truncf %17 : f64 to f32
      linalg.yield %19 : f32
    } -> tensor<5x2xf32>
    %20 = tensor.empty() : tensor<5x2xf32>
    %21 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%16 : tensor<5x2xf32>) outs(%20 : tensor<5x2xf32>) {
    ^bb0(%22: f32, %23: f32):
      %24 = arith.constant 5.000000e-01 : f32
      %25 = arith.mulf %22, %24 : f32
      %26 = arith.constant 0.707106769 : f32
      %27 = arith.mulf %22, %26 : f32
      %28 = math.erf %27 : f32
      %29 = arith.constant 1.000000e+00 : f32
      %30 = arith.addf %28, %29 : f32
      %31 = arith.mulf %25, %30 : f32
      linalg.yield %31 : f32
    } -> tensor<5x2xf32>
    %32 = tensor.empty() : tensor<2x5xf32>
    %33 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%21 : tensor<5x2xf32>) outs(%32 : tensor<2x5xf32>) {
    ^bb0(%34: f32, %35: f32):
      linalg.yield %34 : f32
    } -> tensor<2x5xf32>
    %36 = arith.constant 0.000000e+00 : f32
    %37 = tensor.empty() : tensor<2xf32>
    %38 = linalg.fill ins(%36 : f32) outs(%37 : tensor<2xf32>) -> tensor<2xf32>
    %39 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%33 : tensor<2x5xf32>) outs(%38 : tensor<2xf32>) {
    ^bb0(%40: f32, %41: f32):
      %42 = arith.addf %41, %40 : f32
      linalg.yield %42 : f32
    } -> tensor<2xf32>
    %43 = tensor.expand_shape %39 [[0 : i64, 1 : i64]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
    %44 = tensor.empty() : tensor<2x5xf32>
    %45 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%43, %33 : tensor<2x1xf32>, tensor<2x5xf32>) outs(%44 : tensor<2x5xf32>) {
    ^bb0(%46: f32, %47: f32, %48: f32):
      %49 = arith.addf %46, %47 : f32
      linalg.yield %49 : f32
    } -> tensor<2x5xf32>
    func.return %45 : tensor<2x5xf32>
  }
}
