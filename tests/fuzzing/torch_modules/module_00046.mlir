builtin.module {
  func.func @main(%0: tensor<5x2xf32>) -> tensor<5x3xf32> {
    %1 = tensor.empty() : tensor<5x2xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<5x2xf32>) outs(%1 : tensor<5x2xf32>) {
    ^bb0(%3: f32, %4: f32):
      %5 = math.erf %3 : f32
      linalg.yield %5 : f32
    } -> tensor<5x2xf32>
    %6 = arith.constant 1.000000e+00 : f32
    %7 = arith.constant 0 : index
    %8 = tensor.pad %2 low[0, 0] high[0, 1] {
    ^bb0(%9: index, %10: index):
      tensor.yield %6 : f32
    } : tensor<5x2xf32> to tensor<5x3xf32>
    %11 = arith.constant 0.000000e+00 : f64
    %12 = tensor.empty() : tensor<5xf64>
    %13 = linalg.fill ins(%11 : f64) outs(%12 : tensor<5xf64>) -> tensor<5xf64>
    %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%8 : tensor<5x3xf32>) outs(%13 : tensor<5xf64>) {
    ^bb0(%15: f32, %16: f64):
      %17 = arith.extf %15 : f32 to f64
      %18 = arith.addf %16, %17 : f64
      linalg.yield %18 : f64
    } -> tensor<5xf64>
    %19 = tensor.expand_shape %14 [[0 : i64, 1 : i64]] output_shape [5, 1] : tensor<5xf64> into tensor<5x1xf64>
    %20 = tensor.empty() : tensor<5xf64>
    %21 = linalg.fill ins(%11 : f64) outs(%20 : tensor<5xf64>) -> tensor<5xf64>
    %22 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%8, %19 : tensor<5x3xf32>, tensor<5x1xf64>) outs(%21 : tensor<5xf64>) {
    ^bb0(%23: f32, %24: f64, %25: f64):
      %26 = arith.extf %23 : f32 to f64
      %27 = arith.constant 3.000000e+00 : f64
      %28 = arith.divf %24, %27 : f64
      %29 = arith.subf %26, %28 : f64
      %30 = arith.mulf %29, %29 : f64
      %31 = arith.addf %25, %30 : f64
      linalg.yield %31 : f64
    } -> tensor<5xf64>
    %32 = tensor.empty() : tensor<5xf32>
    %33 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%22 : tensor<5xf64>) outs(%32 : tensor<5xf32>) {
    ^bb0(%34: f64, %35: f32):
      %36 = arith.constant 3.000000e+00 : f64
      %37 = arith.constant 1.000000e+00 : f64
      %38 = arith.subf %36, %37 : f64
      %39 = arith.constant 0.000000e+00 : f64
      %40 = arith.maximumf %38, %39 : f64
      %41 = arith.divf %34, %40 : f64
      %42 = arith.truncf %41 : f64 to f32
      linalg.yield %42 : f32
    } -> tensor<5xf32>
    %43 = tensor.empty() : tensor<5xf32>
    %44 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%14 : tensor<5xf64>) outs(%43 : tensor<5xf32>) {
    ^bb0(%45: f64, %46: f32):
      %47 = arith.constant 3.000000e+00 : f64
      %48 = arith.divf %45, %47 : f64
      %49 = arith.truncf %48 : f64 to f32
      linalg.yield %49 : f32
    } -> tensor<5xf32>
    %50 = tensor.expand_shape %33 [[0 : i64, 1 : i64]] output_shape [5, 1] : tensor<5xf32> into tensor<5x1xf32>
    %51 = tensor.empty() : tensor<5x3xf32>
    %52 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%50, %8 : tensor<5x1xf32>, tensor<5x3xf32>) outs(%51 : tensor<5x3xf32>) {
    ^bb0(%53: f32, %54: f32, %55: f32):
      %56 = arith.subf %53, %54 : f32
      linalg.yield %56 : f32
    } -> tensor<5x3xf32>
    %57 = tensor.empty() : tensor<5x3xf64>
    %58 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%52 : tensor<5x3xf32>) outs(%57 : tensor<5x3xf64>) {
    ^bb0(%59: f32, %60: f64):
      %61 = arith.extf %59 : f32 to f64
      linalg.yield %61 : f64
    } -> tensor<5x3xf64>
    %62 = tensor.empty() : tensor<5x3xf64>
    %63 = tensor.empty() : tensor<5xf64>
    %64 = linalg.fill ins(%11 : f64) outs(%63 : tensor<5xf64>) -> tensor<5xf64>
    %65, %66 = iree_linalg_ext.scan dimension(1) inclusive(true) ins(%58 : tensor<5x3xf64>) outs(%62, %64 : tensor<5x3xf64>, tensor<5xf64>) {
    ^bb0(%67: f64, %68: f64):
      %69 = arith.addf %67, %68 : f64
      iree_linalg_ext.yield %69 : f64
    } -> tensor<5x3xf64>, tensor<5xf64>
    %70 = tensor.empty() : tensor<5x3xf32>
    %71 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%65 : tensor<5x3xf64>) outs(%70 : tensor<5x3xf32>) {
    ^bb0(%72: f64, %73: f32):
      %74 = arith.truncf %72 : f64 to f32
      linalg.yield %74 : f32
    } -> tensor<5x3xf32>
    %75 = tensor.empty() : tensor<5x3xf32>
    %76 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%71 : tensor<5x3xf32>) outs(%75 : tensor<5x3xf32>) {
    ^bb0(%77: f32, %78: f32):
      %79 = math.erf %77 : f32
      linalg.yield %79 : f32
    } -> tensor<5x3xf32>
    func.return %76 : tensor<5x3xf32>
  }
}
