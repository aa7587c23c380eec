builtin.module {
  func.func @main(%0: tensor<5x5x2x2xf32>) -> tensor<5x5x2x2xf32> {
    %1 = tensor.empty() : tensor<5x5x2x2xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%0 : tensor<5x5x2x2xf32>) outs(%1 : tensor<5x5x2x2xf32>) {
    ^bb0(%3: f32, %4: f32):
      %5 = arith.constant 1.000000e+00 : f32
      %6 = arith.addf %3, %5 : f32
      linalg.yield %6 : f32
    } -> tensor<5x5x2x2xf32>
    %7 = tensor.empty() : tensor<5x5x2x2xf32>
    %8 = arith.constant 1 : index
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%7 : tensor<5x5x2x2xf32>) {
    ^bb0(%10: f32):
      %11 = linalg.index 0 : index
      %12 = linalg.index 1 : index
      %13 = linalg.index 2 : index
      %14 = linalg.index 3 : index
      %15 = arith.subi %8, %14 : index
      %16 = tensor.extract %2[%11, %12, %13, %15] : tensor<5x5x2x2xf32>
      linalg.yield %16 : f32
    } -> tensor<5x5x2x2xf32>
    %17 = tensor.empty() : tensor<5x5x2x2xf32>
    %18 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9 : tensor<5x5x2x2xf32>) outs(%17 : tensor<5x5x2x2xf32>) {
    ^bb0(%19: f32, %20: f32):
      %21 = arith.constant 5.000000e-01 : f32
      %22 = arith.mulf %19, %21 : f32
      %23 = arith.constant 0.707106769 : f32
      %24 = arith.mulf %19, %23 : f32
      %25 = math.erf %24 : f32
      %26 = arith.constant 1.000000e+00 : f32
      %27 = arith.addf %25, %26 : f32
      %28 = arith.mulf %22, %27 : f32
      linalg.yield %28 : f32
    } -> tensor<5x5x2x2xf32>
    func.return %18 : tensor<5x5x2x2xf32>
  }
}
