builtin.module {
  func.func @main(%0: tensor<4x5xf32>) -> tensor<4x5xf32> {
    %1 = arith.constant 0.000000e+00 : f64
    %2 = tensor.empty() : tensor<4xf64>
    %3 = linalg.fill ins(%1 : f64) outs(%2 : tensor<4xf64>) -> tensor<4xf64>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<4x5xf32>) outs(%3 : tensor<4xf64>) {
    ^bb0(%5: f32, %6: f64):
      %7 = arith.extf %5 : f32 to f64
      %8 = arith.addf %6, %7 : f64
      linalg.yield %8 : f64
    } -> tensor<4xf64>
    %9 = tensor.expand_shape %4 [[0 : i64, 1 : i64]] output_shape [4, 1] : tensor<4xf64> into tensor<4x1xf64>
    %10 = tensor.empty() : tensor<4xf64>
    %11 = linalg.fill ins(%1 : f64) outs(%10 : tensor<4xf64>) -> tensor<4xf64>
    %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%0, %9 : tensor<4x5xf32>, tensor<4x1xf64>) outs(%11 : tensor<4xf64>) {
    ^bb0(%13: f32, %14: f64, %15: f64):
      %16 = arith.extf %13 : f32 to f64
      %17 = arith.constant 5.000000e+00 : f64
      %18 = arith.divf %14, %17 : f64
      %19 = arith.subf %16, %18 : f64
      %20 = arith.mulf %19, %19 : f64
      %21 = arith.addf %15, %20 : f64
      linalg.yield %21 : f64
    } -> tensor<4xf64>
    %22 = tensor.empty() : tensor<4xf32>
    %23 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%12 : tensor<4xf64>) outs(%22 : tensor<4xf32>) {
    ^bb0(%24: f64, %25: f32):
      %26 = arith.constant 5.000000e+00 : f64
      %27 = arith.divf %24, %26 : f64
      %28 = arith.truncf %27 : f64 to f32
      linalg.yield %28 : f32
    } -> tensor<4xf32>
    %29 = tensor.empty() : tensor<4xf32>
    %30 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%4 : tensor<4xf64>) outs(%29 : tensor<4xf32>) {
    ^bb0(%31: f64, %32: f32):
      %33 = arith.constant 5.000000e+00 : f64
      %34 = arith.divf %31, %33 : f64
      %35 = arith.truncf %34 : f64 to f32
      linalg.yield %35 : f32
    } -> tensor<4xf32>
    %36 = tensor.empty() : tensor<4xf32>
    %37 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%23 : tensor<4xf32>) outs(%36 : tensor<4xf32>) {
    ^bb0(%38: f32, %39: f32):
      %40 = arith.constant 1.000000e-05 : f32
      %41 = arith.addf %38, %40 : f32
      %42 = math.sqrt %41 : f32
      %43 = arith.constant 1.000000e+00 : f32
      %44 = arith.divf %43, %42 : f32
      linalg.yield %44 : f32
    } -> tensor<4xf32>
    %45 = tensor.expand_shape %30 [[0 : i64, 1 : i64]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
    %46 = tensor.expand_shape %37 [[0 : i64, 1 : i64]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
    %47 = tensor.empty() : tensor<4x5xf32>
    %48 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%0, %45, %46 : tensor<4x5xf32>, tensor<4x1xf32>, tensor<4x1xf32>) outs(%47 : tensor<4x5xf32>) {
    ^bb0(%49: f32, %50: f32, %51: f32, %52: f32):
      %53 = arith.subf %49, %50 : f32
      %54 = arith.mulf %53, %51 : f32
      linalg.yield %54 : f32
    } -> tensor<4x5xf32>
    %55 = tensor.empty() : tensor<4x5xf32>
    %56 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%48 : tensor<4x5xf32>) outs(%55 : tensor<4x5xf32>) {
    ^bb0(%57: f32, %58: f32):
      linalg.yield %57 : f32
    } -> tensor<4x5xf32>
    func.return %56 : tensor<4x5xf32>
  }
}
