builtin.module {
  func.func @main(%0: tensor<4x8x3xf32>) -> tensor<4x2x3xf32> {
    %1 = arith.constant 1.000000e+00 : f32
    %2 = arith.constant 0 : index
    %3 = tensor.pad %0 low[0, 0, 0] high[0, 0, 1] {
    ^bb0(%4: index, %5: index, %6: index):
      tensor.yield %1 : f32
    } : tensor<4x8x3xf32> to tensor<4x8x4xf32>
    %7 = tensor.empty() : tensor<4x8x4xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<4x8x4xf32>) outs(%7 : tensor<4x8x4xf32>) {
    ^bb0(%9: f32, %10: f32):
      %11 = arith.constant 1.000000e+00 : f32
      %12 = arith.subf %9, %11 : f32
      linalg.yield %12 : f32
    } -> tensor<4x8x4xf32>
    %13 = tensor.extract_slice %8[0, 0, 0] [2, 8, 4] [1, 1, 1] : tensor<4x8x4xf32> to tensor<2x8x4xf32>
    %14 = tensor.extract_slice %13[0, 0, 0] [2, 8, 2] [1, 1, 1] : tensor<2x8x4xf32> to tensor<2x8x2xf32>
    %15 = arith.constant 0.000000e+00 : f32
    %16 = tensor.empty() : tensor<4x2x3xf32>
    %17 = linalg.fill ins(%15 : f32) outs(%16 : tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
    %18 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, (d2 + d4))>, affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%8, %14 : tensor<4x8x4xf32>, tensor<2x8x2xf32>) outs(%17 : tensor<4x2x3xf32>) {
    ^bb0(%19: f32, %20: f32, %21: f32):
      %22 = arith.mulf %19, %20 : f32
      %23 = arith.addf %21, %22 : f32
      linalg.yield %23 : f32
    } -> tensor<4x2x3xf32>
    func.return %18 : tensor<4x2x3xf32>
  }
}
