builtin.module {
  func.func @main(%0: tensor<2x8x2x8xf32>) -> tensor<2x8x8xf32> {
    %1 = tensor.empty() : tensor<2x8x2x8xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%0 : tensor<2x8x2x8xf32>) outs(%1 : tensor<2x8x2x8xf32>) {
    ^bb0(%3: f32, %4: f32):
      %5 = arith.constant 8.000000e+00 : f32
      %6 = arith.mulf %3, %5 : f32
      linalg.yield %6 : f32
    } -> tensor<2x8x2x8xf32>
    %7 = tensor.empty() : tensor<2x8x2x8xi32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<2x8x2x8xf32>) outs(%7 : tensor<2x8x2x8xi32>) {
    ^bb0(%9: f32, %10: i32):
      %11 = arith.constant 2.14748365e+09 : f32
      %12 = arith.cmpf olt, %9, %11 : f32
      %13 = arith.fptosi %9 : f32 to i32
      %14 = arith.constant -2147483648 : i32
      %15 = arith.select %12, %13, %14 : i32
      linalg.yield %15 : i32
    } -> tensor<2x8x2x8xi32>
    %16 = tensor.empty() : tensor<2x8x2x8xf32>
    %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<2x8x2x8xi32>) outs(%16 : tensor<2x8x2x8xf32>) {
    ^bb0(%18: i32, %19: f32):
      %20 = arith.sitofp %18 : i32 to f32
      linalg.yield %20 : f32
    } -> tensor<2x8x2x8xf32>
    %21 = arith.constant 0xff800000 : f32
    %22 = tensor.empty() : tensor<2x8x8xf32>
    %23 = linalg.fill ins(%21 : f32) outs(%22 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>], iterator_types = ["parallel", "parallel", "reduction", "parallel"]} ins(%17 : tensor<2x8x2x8xf32>) outs(%23 : tensor<2x8x8xf32>) {
    ^bb0(%25: f32, %26: f32):
      %27 = arith.maximumf %26, %25 : f32
      linalg.yield %27 : f32
    } -> tensor<2x8x8xf32>
    func.return %24 : tensor<2x8x8xf32>
  }
}
