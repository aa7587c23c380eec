builtin.module {
  func.func @main(%0: tensor<8x2xf32>) -> tensor<8x1xf32> {
    %1 = arith.constant 0.000000e+00 : f32
    %2 = tensor.empty() : tensor<8xf32>
    %3 = linalg.fill ins(%1 : f32) outs(%2 : tensor<8xf32>) -> tensor<8xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<8x2xf32>) outs(%3 : tensor<8xf32>) {
    ^bb0(%5: f32, %6: f32):
      %7 = arith.addf %6, %5 : f32
      linalg.yield %7 : f32
    } -> tensor<8xf32>
    %8 = tensor.expand_shape %4 [[0 : i64, 1 : i64]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
    %9 = tensor.empty() : tensor<8x2xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%8, %0 : tensor<8x1xf32>, tensor<8x2xf32>) outs(%9 : tensor<8x2xf32>) {
    ^bb0(%11: f32, %12: f32, %13: f32):
      %14 = arith.addf %11, %12 : f32
      linalg.yield %14 : f32
    } -> tensor<8x2xf32>
    %15 = tensor.empty() : tensor<8x2xf32>
    %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%10, %10 : tensor<8x2xf32>, tensor<8x2xf32>) outs(%15 : tensor<8x2xf32>) {
    ^bb0(%17: f32, %18: f32, %19: f32):
      %20 = arith.mulf %17, %18 : f32
      linalg.yield %20 : f32
    } -> tensor<8x2xf32>
    %21 = tensor.empty() : tensor<2xf32>
    %22 = arith.constant 0xff800000 : f32
    %23 = tensor.empty() : tensor<8x1xf32>
    %24 = linalg.fill ins(%22 : f32) outs(%23 : tensor<8x1xf32>) -> tensor<8x1xf32>
    %25 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, ((d1 * 2) + d2))>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%16, %21 : tensor<8x2xf32>, tensor<2xf32>) outs(%24 : tensor<8x1xf32>) {
    ^bb0(%26: f32, %27: f32, %28: f32):
      %29 = arith.maximumf %28, %26 : f32
      linalg.yield %29 : f32
    } -> tensor<8x1xf32>
    func.return %25 : tensor<8x1xf32>
  }
}
