builtin.module {
  func.func @main(%0: tensor<5x2x4xf32>) -> tensor<5x4xf32> {
    %1 = tensor.empty() : tensor<5x4x2xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<5x2x4xf32>) outs(%1 : tensor<5x4x2xf32>) {
    ^bb0(%3: f32, %4: f32):
      linalg.yield %3 : f32
    } -> tensor<5x4x2xf32>
    %5 = arith.constant 0.000000e+00 : f32
    %6 = tensor.empty() : tensor<5x2x2xf32>
    %7 = linalg.fill ins(%5 : f32) outs(%6 : tensor<5x2x2xf32>) -> tensor<5x2x2xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%0, %2 : tensor<5x2x4xf32>, tensor<5x4x2xf32>) outs(%7 : tensor<5x2x2xf32>) {
    ^bb0(%9: f32, %10: f32, %11: f32):
      %12 = arith.mulf %9, %10 : f32
      %13 = arith.addf %11, %12 : f32
      linalg.yield %13 : f32
    } -> tensor<5x2x2xf32>
    %14 = tensor.empty() : tensor<5x2x2xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<5x2x2xf32>) outs(%14 : tensor<5x2x2xf32>) {
    ^bb0(%16: f32, %17: f32):
      %18 = arith.constant 5.000000e-01 : f32
      %19 = arith.mulf %16, %18 : f32
      linalg.yield %19 : f32
    } -> tensor<5x2x2xf32>
    %20 = tensor.empty() : tensor<5x2x2xf32>
    %21 = linalg.softmax dimension(2) ins(%15 : tensor<5x2x2xf32>) outs(%20 : tensor<5x2x2xf32>) -> tensor<5x2x2xf32>
    %22 = tensor.empty() : tensor<5x2x4xf32>
    %23 = linalg.fill ins(%5 : f32) outs(%22 : tensor<5x2x4xf32>) -> tensor<5x2x4xf32>
    %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%21, %0 : tensor<5x2x2xf32>, tensor<5x2x4xf32>) outs(%23 : tensor<5x2x4xf32>) {
    ^bb0(%25: f32, %26: f32, %27: f32):
      %28 = arith.mulf %25, %26 : f32
      %29 = arith.addf %27, %28 : f32
      linalg.yield %29 : f32
    } -> tensor<5x2x4xf32>
    %30 = tensor.empty() : tensor<5x2x4xf32>
    %31 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%24 : tensor<5x2x4xf32>) outs(%30 : tensor<5x2x4xf32>) {
    ^bb0(%32: f32, %33: f32):
      %34 = arith.constant 8.000000e+00 : f32
      %35 = arith.mulf %32, %34 : f32
      linalg.yield %35 : f32
    } -> tensor<5x2x4xf32>
    %36 = tensor.empty() : tensor<5x2x4xi32>
    %37 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%31 : tensor<5x2x4xf32>) outs(%36 : tensor<5x2x4xi32>) {
    ^bb0(%38: f32, %39: i32):
      %40 = arith.constant 2.14748365e+09 : f32
      %41 = arith.cmpf olt, %38, %40 : f32
      %42 = arith.fptosi %38 : f32 to i32
      %43 = arith.constant -2147483648 : i32
      %44 = arith.select %41, %42, %43 : i32
      linalg.yield %44 : i32
    } -> tensor<5x2x4xi32>
    %45 = tensor.empty() : tensor<5x2x4xf32>
    %46 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%37 : tensor<5x2x4xi32>) outs(%45 : tensor<5x2x4xf32>) {
    ^bb0(%47: i32, %48: f32):
      %49 = arith.sitofp %47 : i32 to f32
      linalg.yield %49 : f32
    } -> tensor<5x2x4xf32>
    %50 = tensor.empty() : tensor<5x2x4xf16>
    %51 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%46 : tensor<5x2x4xf32>) outs(%50 : tensor<5x2x4xf16>) {
    ^bb0(%52: f32, %53: f16):
      %54 = arith.truncf %52 : f32 to f16
      linalg.yield %54 : f16
    } -> tensor<5x2x4xf16>
    %55 = tensor.empty() : tensor<5x2x4xf32>
    %56 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%51 : tensor<5x2x4xf16>) outs(%55 : tensor<5x2x4xf32>) {
    ^bb0(%57: f16, %58: f32):
      %59 = arith.extf %57 : f16 to f32
      linalg.yield %59 : f32
    } -> tensor<5x2x4xf32>
    %60 = tensor.empty() : tensor<5x2x4xf32>
    %61 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%56 : tensor<5x2x4xf32>) outs(%60 : tensor<5x2x4xf32>) {
    ^bb0(%62: f32, %63: f32):
      %64 = arith.constant 1.000000e+00 : f32
      %65 = arith.subf %62, %64 : f32
      linalg.yield %65 : f32
    } -> tensor<5x2x4xf32>
    %66 = arith.constant 0xff800000 : f32
    %67 = tensor.empty() : tensor<5x4xf32>
    %68 = linalg.fill ins(%66 : f32) outs(%67 : tensor<5x4xf32>) -> tensor<5x4xf32>
    %69 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>], iterator_types = ["parallel", "reduction", "parallel"]} ins(%61 : tensor<5x2x4xf32>) outs(%68 : tensor<5x4xf32>) {
    ^bb0(%70: f32, %71: f32):
      %72 = arith.maximumf %71, %70 : f32
      linalg.yield %72 : f32
    } -> tensor<5x4xf32>
    func.return %69 : tensor<5x4xf32>
  }
}
