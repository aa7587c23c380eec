builtin.module {
  func.func @main(%0: tensor<4x?x8x2xf32>) -> tensor<4x?x8x8xf32> {
    %1 = arith.constant 1 : index
    %2 = tensor.dim %0, %1 : tensor<4x?x8x2xf32>
    %3 = tensor.extract_slice %0[0, 0, 0, 1] [4, %2, 8, 1] [1, 1, 1, 1] : tensor<4x?x8x2xf32> to tensor<4x?x8x1xf32>
    %4 = tensor.empty(%2) : tensor<4x?x8x1xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<4x?x8x1xf32>) outs(%4 : tensor<4x?x8x1xf32>) {
    ^bb0(%6: f32, %7: f32):
      %8 = arith.negf %6 : f32
      %9 = math.exp %8 : f32
      %10 = arith.constant 1.000000e+00 : f32
      %11 = arith.addf %9, %10 : f32
      %12 = arith.divf %10, %11 : f32
      %13 = arith.mulf %6, %12 : f32
      linalg.yield %13 : f32
    } -> tensor<4x?x8x1xf32>
    %14 = tensor.empty(%2) : tensor<4x?x1x8xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<4x?x8x1xf32>) outs(%14 : tensor<4x?x1x8xf32>) {
    ^bb0(%16: f32, %17: f32):
      linalg.yield %16 : f32
    } -> tensor<4x?x1x8xf32>
    %18 = arith.constant 0.000000e+00 : f32
    %19 = tensor.empty(%2) : tensor<4x?x8x8xf32>
    %20 = linalg.fill ins(%18 : f32) outs(%19 : tensor<4x?x8x8xf32>) -> tensor<4x?x8x8xf32>
    %21 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%5, %15 : tensor<4x?x8x1xf32>, tensor<4x?x1x8xf32>) outs(%20 : tensor<4x?x8x8xf32>) {
    ^bb0(%22: f32, %23: f32, %24: f32):
      %25 = arith.mulf %22, %23 : f32
      %26 = arith.addf %24, %25 : f32
      linalg.yield %26 : f32
    } -> tensor<4x?x8x8xf32>
    %27 = tensor.empty(%2) : tensor<4x?x8xf32>
    %28 = linalg.fill ins(%18 : f32) outs(%27 : tensor<4x?x8xf32>) -> tensor<4x?x8xf32>
    %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%21 : tensor<4x?x8x8xf32>) outs(%28 : tensor<4x?x8xf32>) {
    ^bb0(%30: f32, %31: f32):
      %32 = arith.addf %31, %30 : f32
      linalg.yield %32 : f32
    } -> tensor<4x?x8xf32>
    %33 = tensor.expand_shape %29 [[0 : i64], [1 : i64], [2 : i64, 3 : i64]] output_shape [4, %2, 8, 1] : tensor<4x?x8xf32> into tensor<4x?x8x1xf32>
    %34 = tensor.empty(%2) : tensor<4x?x8x8xf32>
    %35 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%33, %21 : tensor<4x?x8x1xf32>, tensor<4x?x8x8xf32>) outs(%34 : tensor<4x?x8x8xf32>) {
    ^bb0(%36: f32, %37: f32, %38: f32):
      %39 = arith.addf %36, %37 : f32
      linalg.yield %39 : f32
    } -> tensor<4x?x8x8xf32>
    func.return %35 : tensor<4x?x8x8xf32>
  }
}
