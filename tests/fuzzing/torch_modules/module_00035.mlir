builtin.module {
  func.func @main(%0: tensor<4x3x?x3xf32>) -> tensor<4x3x?x6xf32> {
    %1 = arith.constant 2 : index
    %2 = tensor.dim %0, %1 : tensor<4x3x?x3xf32>
    %3 = tensor.extract_slice %0[0, 0, 0, 2] [4, 3, %2, 1] [1, 1, 1, 1] : tensor<4x3x?x3xf32> to tensor<4x3x?x1xf32>
    %4 = tensor.extract_slice %0[0, 0, 0, 0] [4, 3, %2, 2] [1, 1, 1, 1] : tensor<4x3x?x3xf32> to tensor<4x3x?x2xf32>
    %5 = tensor.concat dim(3) %3, %4 : (tensor<4x3x?x1xf32>, tensor<4x3x?x2xf32>) -> tensor<4x3x?x3xf32>
    %6 = tensor.concat dim(3) %5, %5 : (tensor<4x3x?x3xf32>, tensor<4x3x?x3xf32>) -> tensor<4x3x?x6xf32>
    %7 = tensor.empty(%2) : tensor<4x3x?x6xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6 : tensor<4x3x?x6xf32>) outs(%7 : tensor<4x3x?x6xf32>) {
    ^bb0(%9: f32, %10: f32):
      %11 = arith.constant 4.000000e+00 : f32
      %12 = arith.mulf %9, %11 : f32
      linalg.yield %12 : f32
    } -> tensor<4x3x?x6xf32>
    %13 = tensor.empty(%2) : tensor<4x3x?x6xi64>
    %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<4x3x?x6xf32>) outs(%13 : tensor<4x3x?x6xi64>) {
    ^bb0(%15: f32, %16: i64):
      %17 = arith.constant 9.22337204e+18 : f32
      %18 = arith.cmpf olt, %15, %17 : f32
      %19 = arith.fptosi %15 : f32 to i64
      %20 = arith.constant -9223372036854775808 : i64
      %21 = arith.select %18, %19, %20 : i64
      linalg.yield %21 : i64
    } -> tensor<4x3x?x6xi64>
    %22 = tensor.empty(%2) : tensor<4x3x?x6xi64>
    %23 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<4x3x?x6xi64>) outs(%22 : tensor<4x3x?x6xi64>) {
    ^bb0(%24: i64, %25: i64):
      %26 = arith.constant 3 : i64
      %27 = arith.andi %24, %26 : i64
      linalg.yield %27 : i64
    } -> tensor<4x3x?x6xi64>
    %28 = tensor.empty(%2) : tensor<4x3x?x6xf32>
    %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%23 : tensor<4x3x?x6xi64>) outs(%28 : tensor<4x3x?x6xf32>) {
    ^bb0(%30: i64, %31: f32):
      %32 = arith.sitofp %30 : i64 to f32
      linalg.yield %32 : f32
    } -> tensor<4x3x?x6xf32>
    func.return %29 : tensor<4x3x?x6xf32>
  }
}
