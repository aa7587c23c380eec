builtin.module {
  func.func @main(%0: tensor<3x3x5x8xf32>) -> tensor<3x2x9x6xf32> {
    %1 = tensor.empty() : tensor<3x3x5x8xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%0 : tensor<3x3x5x8xf32>) outs(%1 : tensor<3x3x5x8xf32>) {
    ^bb0(%3: f32, %4: f32):
      %5 = arith.negf %3 : f32
      %6 = math.exp %5 : f32
      %7 = arith.constant 1.000000e+00 : f32
      %8 = arith.addf %6, %7 : f32
      %9 = arith.divf %7, %8 : f32
      %10 = arith.mulf %3, %9 : f32
      linalg.yield %10 : f32
    } -> tensor<3x3x5x8xf32>
    %11 = tensor.empty() : tensor<3x3x8x5xf32>
    %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<3x3x5x8xf32>) outs(%11 : tensor<3x3x8x5xf32>) {
    ^bb0(%13: f32, %14: f32):
      linalg.yield %13 : f32
    } -> tensor<3x3x8x5xf32>
    %15 = tensor.extract_slice %12[0, 0, 0, 0] [2, 3, 8, 5] [1, 1, 1, 1] : tensor<3x3x8x5xf32> to tensor<2x3x8x5xf32>
    %16 = tensor.extract_slice %15[0, 0, 0, 0] [2, 3, 2, 5] [1, 1, 1, 1] : tensor<2x3x8x5xf32> to tensor<2x3x2x5xf32>
    %17 = tensor.extract_slice %16[0, 0, 0, 0] [2, 3, 2, 2] [1, 1, 1, 1] : tensor<2x3x2x5xf32> to tensor<2x3x2x2xf32>
    %18 = arith.constant 0.000000e+00 : f32
    %19 = arith.constant 0 : index
    %20 = tensor.pad %12 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%21: index, %22: index, %23: index, %24: index):
      tensor.yield %18 : f32
    } : tensor<3x3x8x5xf32> to tensor<3x3x10x7xf32>
    %25 = tensor.empty() : tensor<3x2x9x6xf32>
    %26 = linalg.fill ins(%18 : f32) outs(%25 : tensor<3x2x9x6xf32>) -> tensor<3x2x9x6xf32>
    %27 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, (d2 + d5), (d3 + d6))>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%20, %17 : tensor<3x3x10x7xf32>, tensor<2x3x2x2xf32>) outs(%26 : tensor<3x2x9x6xf32>) {
    ^bb0(%28: f32, %29: f32, %30: f32):
      %31 = arith.mulf %28, %29 : f32
      %32 = arith.addf %30, %31 : f32
      linalg.yield %32 : f32
    } -> tensor<3x2x9x6xf32>
    %33 = tensor.empty() : tensor<3x2x9x6xf32>
    %34 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<3x2x9x6xf32>) outs(%33 : tensor<3x2x9x6xf32>) {
    ^bb0(%35: f32, %36: f32):
      %37 = arith.constant 5.000000e-01 : f32
      %38 = arith.mulf %35, %37 : f32
      %39 = arith.constant 0.707106769 : f32
      %40 = arith.mulf %35, %39 : f32
      %41 = math.erf %40 : f32
      %42 = arith.constant 1.000000e+00 : f32
      %43 = arith.addf %41, %42 : f32
      %44 = arith.mulf %38, %43 : f32
      linalg.yield %44 : f32
    } -> tensor<3x2x9x6xf32>
    %45 = tensor.empty() : tensor<3x2x9x6xf32>
    %46 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%34 : tensor<3x2x9x6xf32>) outs(%45 : tensor<3x2x9x6xf32>) {
    ^bb0(%47: f32, %48: f32):
      %49 = math.roundeven %47 : f32
      linalg.yield %49 : f32
    } -> tensor<3x2x9x6xf32>
    func.return %46 : tensor<3x2x9x6xf32>
  }
}
