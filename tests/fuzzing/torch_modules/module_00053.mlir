builtin.module {
  func.func @main(%0: tensor<3x5x8x5xf32>) -> tensor<3x5x8x8xf32> {
    %1 = tensor.empty() : tensor<3x5x8x5xf32>
    %2 = arith.constant 4 : index
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%1 : tensor<3x5x8x5xf32>) {
    ^bb0(%4: f32):
      %5 = linalg.index 0 : index
      %6 = linalg.index 1 : index
      %7 = linalg.index 2 : index
      %8 = linalg.index 3 : index
      %9 = arith.subi %2, %8 : index
      %10 = tensor.extract %0[%5, %6, %7, %9] : tensor<3x5x8x5xf32>
      linalg.yield %10 : f32
    } -> tensor<3x5x8x5xf32>
    %11 = tensor.empty() : tensor<3x5x8x5xf32>
    %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<3x5x8x5xf32>) outs(%11 : tensor<3x5x8x5xf32>) {
    ^bb0(%13: f32, %14: f32):
      %15 = arith.constant 1.000000e+00 : f32
      %16 = arith.addf %13, %15 : f32
      linalg.yield %16 : f32
    } -> tensor<3x5x8x5xf32>
    %17 = tensor.empty() : tensor<3x5x8x5xf32>
    %18 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12 : tensor<3x5x8x5xf32>) outs(%17 : tensor<3x5x8x5xf32>) {
    ^bb0(%19: f32, %20: f32):
      %21 = arith.negf %19 : f32
      %22 = math.exp %21 : f32
      %23 = arith.constant 1.000000e+00 : f32
      %24 = arith.addf %22, %23 : f32
      %25 = arith.divf %23, %24 : f32
      linalg.yield %25 : f32
    } -> tensor<3x5x8x5xf32>
    %26 = tensor.empty() : tensor<3x5x8x5xf32>
    %27 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<3x5x8x5xf32>) outs(%26 : tensor<3x5x8x5xf32>) {
    ^bb0(%28: f32, %29: f32):
      %30 = arith.constant 5.000000e-01 : f32
      %31 = arith.mulf %28, %30 : f32
      %32 = arith.constant 0.707106769 : f32
      %33 = arith.mulf %28, %32 : f32
      %34 = math.erf %33 : f32
      %35 = arith.constant 1.000000e+00 : f32
      %36 = arith.addf %34, %35 : f32
      %37 = arith.mulf %31, %36 : f32
      linalg.yield %37 : f32
    } -> tensor<3x5x8x5xf32>
    %38 = tensor.empty() : tensor<3x5x5x8xf32>
    %39 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<3x5x8x5xf32>) outs(%38 : tensor<3x5x5x8xf32>) {
    ^bb0(%40: f32, %41: f32):
      linalg.yield %40 : f32
    } -> tensor<3x5x5x8xf32>
    %42 = arith.constant 0.000000e+00 : f32
    %43 = tensor.empty() : tensor<3x5x8x8xf32>
    %44 = linalg.fill ins(%42 : f32) outs(%43 : tensor<3x5x8x8xf32>) -> tensor<3x5x8x8xf32>
    %45 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%27, %39 : tensor<3x5x8x5xf32>, tensor<3x5x5x8xf32>) outs(%44 : tensor<3x5x8x8xf32>) {
    ^bb0(%46: f32, %47: f32, %48: f32):
      %49 = arith.mulf %46, %47 : f32
      %50 = arith.addf %48, %49 : f32
      linalg.yield %50 : f32
    } -> tensor<3x5x8x8xf32>
    func.return %45 : tensor<3x5x8x8xf32>
  }
}
