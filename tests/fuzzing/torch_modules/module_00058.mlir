builtin.module {
  func.func @main(%0: tensor<3x3x?x2xf32>) -> tensor<3x3x1x1xf32> {
    %1 = arith.constant 2 : index
    %2 = tensor.dim %0, %1 : tensor<3x3x?x2xf32>
    %3 = arith.floordivsi %2, %1 : index
    %4 = arith.constant 1 : index
    %5 = arith.subi %3, %4 : index
    %6 = arith.muli %5, %1 : index
    %7 = arith.addi %6, %1 : index
    %8 = arith.subi %7, %2 : index
    %9 = arith.constant 0 : index
    %10 = arith.maxsi %8, %9 : index
    %11 = arith.addi %2, %10 : index
    %12 = arith.constant 0xff800000 : f32
    %13 = tensor.pad %0 low[0, 0, 0, 0] high[0, 0, %10, 0] {
    ^bb0(%14: index, %15: index, %16: index, %17: index):
      tensor.yield %12 : f32
    } : tensor<3x3x?x2xf32> to tensor<3x3x?x2xf32>
    %18 = tensor.empty() : tensor<2x2xf32>
    %19 = tensor.empty(%3) : tensor<3x3x?x1xf32>
    %20 = linalg.fill ins(%12 : f32) outs(%19 : tensor<3x3x?x1xf32>) -> tensor<3x3x?x1xf32>
    %21 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, ((d2 * 2) + d4), ((d3 * 2) + d5))>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%13, %18 : tensor<3x3x?x2xf32>, tensor<2x2xf32>) outs(%20 : tensor<3x3x?x1xf32>) {
    ^bb0(%22: f32, %23: f32, %24: f32):
      %25 = arith.maximumf %24, %22 : f32
      linalg.yield %25 : f32
    } -> tensor<3x3x?x1xf32>
    %26 = tensor.empty(%3) : tensor<3x3x?x1xf32>
    %27 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21 : tensor<3x3x?x1xf32>) outs(%26 : tensor<3x3x?x1xf32>) {
    ^bb0(%28: f32, %29: f32):
      %30 = arith.constant 8.000000e+00 : f32
      %31 = arith.mulf %28, %30 : f32
      linalg.yield %31 : f32
    } -> tensor<3x3x?x1xf32>
    %32 = tensor.cast %27 : tensor<3x3x?x1xf32> to tensor<3x3x1x1xf32>
    %33 = tensor.empty() : tensor<3x3x1x1xi32>
    %34 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<3x3x1x1xf32>) outs(%33 : tensor<3x3x1x1xi32>) {
    ^bb0(%35: f32, %36: i32):
      %37 = arith.constant 2.14748365e+09 : f32
      %38 = arith.cmpf olt, %35, %37 : f32
      %39 = arith.fptosi %35 : f32 to i32
      %40 = arith.constant -2147483648 : i32
      %41 = arith.select %38, %39, %40 : i32
      linalg.yield %41 : i32
    } -> tensor<3x3x1x1xi32>
    %42 = tensor.empty() : tensor<3x3x1x1xf32>
    %43 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%34 : tensor<3x3x1x1xi32>) outs(%42 : tensor<3x3x1x1xf32>) {
    ^bb0(%44: i32, %45: f32):
      %46 = arith.sitofp %44 : i32 to f32
      linalg.yield %46 : f32
    } -> tensor<3x3x1x1xf32>
    func.return %43 : tensor<3x3x1x1xf32>
  }
}
