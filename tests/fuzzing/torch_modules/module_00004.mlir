builtin.module {
  func.func @main(%0: tensor<4x?xf32>) -> tensor<4x?xf32> {
    %1 = arith.constant 1 : index
    %2 = tensor.dim %0, %1 : tensor<4x?xf32>
    %3 = tensor.empty(%2) : tensor<4x?xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<4x?xf32>) outs(%3 : tensor<4x?xf32>) {
    ^bb0(%5: f32, %6: f32):
      %7 = arith.constant 1.000000e+00 : f32
      %8 = arith.subf %5, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<4x?xf32>
    %9 = tensor.empty(%2) : tensor<4x?xf64>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<4x?xf32>) outs(%9 : tensor<4x?xf64>) {
    ^bb0(%11: f32, %12: f64):
      %13 = arith.extf %11 : f32 to f64
      linalg.yield %13 : f64
    } -> tensor<4x?xf64>
    %14 = tensor.empty(%2) : tensor<4x?xf64>
    %15 = arith.constant 0.000000e+00 : f64
    %16 = tensor.empty() : tensor<4xf64>
    %17 = linalg.fill ins(%15 : f64) outs(%16 : tensor<4xf64>) -> tensor<4xf64>
    %18, %19 = iree_linalg_ext.scan dimension(1) inclusive(true) ins(%10 : tensor<4x?xf64>) outs(%14, %17 : tensor<4x?xf64>, tensor<4xf64>) {
    ^bb0(%20: f64, %21: f64):
      %22 = arith.addf %20, %21 : f64
      iree_linalg_ext.yield %22 : f64
    } -> tensor<4x?xf64>, tensor<4xf64>
    %23 = tensor.empty(%2) : tensor<4x?xf32>
    %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%18 : tensor<4x?xf64>) outs(%23 : tensor<4x?xf32>) {
    ^bb0(%25: f64, %26: f32):
      %27 = arith.truncf %25 : f64 to f32
      linalg.yield %27 : f32
    } -> tensor<4x?xf32>
    %28 = tensor.empty(%2) : tensor<4x?xf32>
    %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%24 : tensor<4x?xf32>) outs(%28 : tensor<4x?xf32>) {
    ^bb0(%30: f32, %31: f32):
      %32 = math.exp %30 : f32
      linalg.yield %32 : f32
    } -> tensor<4x?xf32>
    %33 = tensor.empty(%2) : tensor<4x?xf32>
    %34 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%29 : tensor<4x?xf32>) outs(%33 : tensor<4x?xf32>) {
    ^bb0(%35: f32, %36: f32):
      %37 = math.tanh %35 : f32
      linalg.yield %37 : f32
    } -> tensor<4x?xf32>
    func.return %34 : tensor<4x?xf32>
  }
}
