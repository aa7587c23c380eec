builtin.module {
  func.func @main(%0: tensor<2x5x?xf32>) -> tensor<5x?xf32> {
    %1 = arith.constant 2 : index
    %2 = tensor.dim %0, %1 : tensor<2x5x?xf32>
    %3 = tensor.empty(%2) : tensor<2x5x?xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<2x5x?xf32>) outs(%3 : tensor<2x5x?xf32>) {
    ^bb0(%5: f32, %6: f32):
      %7 = arith.constant 4.000000e+00 : f32
      %8 = arith.mulf %5, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<2x5x?xf32>
    %9 = tensor.empty(%2) : tensor<2x5x?xi64>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<2x5x?xf32>) outs(%9 : tensor<2x5x?xi64>) {
    ^bb0(%11: f32, %12: i64):
      %13 = arith.constant 9.22337204e+18 : f32
      %14 = arith.cmpf olt, %11, %13 : f32
      %15 = arith.fptosi %11 : f32 to i64
      %16 = arith.constant -9223372036854775808 : i64
      %17 = arith.select %14, %15, %16 : i64
      linalg.yield %17 : i64
    } -> tensor<2x5x?xi64>
    %18 = tensor.empty(%2) : tensor<2x5x?xi64>
    %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<2x5x?xi64>) outs(%18 : tensor<2x5x?xi64>) {
    ^bb0(%20: i64, %21: i64):
      %22 = arith.constant 3 : i64
      %23 = arith.andi %20, %22 : i64
      linalg.yield %23 : i64
    } -> tensor<2x5x?xi64>
    %24 = tensor.empty(%2) : tensor<2x5x?xf32>
    %25 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19 : tensor<2x5x?xi64>) outs(%24 : tensor<2x5x?xf32>) {
    ^bb0(%26: i64, %27: f32):
      %28 = arith.sitofp %26 : i64 to f32
      linalg.yield %28 : f32
    } -> tensor<2x5x?xf32>
    %29 = arith.constant 0.000000e+00 : f32
    %30 = tensor.empty(%2) : tensor<5x?xf32>
    %31 = linalg.fill ins(%29 : f32) outs(%30 : tensor<5x?xf32>) -> tensor<5x?xf32>
    %32 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>], iterator_types = ["reduction", "parallel", "parallel"]} ins(%25 : tensor<2x5x?xf32>) outs(%31 : tensor<5x?xf32>) {
    ^bb0(%33: f32, %34: f32):
      %35 = arith.addf %34, %33 : f32
      linalg.yield %35 : f32
    } -> tensor<5x?xf32>
    %36 = tensor.empty(%2) : tensor<5x?xf32>
    %37 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%32 : tensor<5x?xf32>) outs(%36 : tensor<5x?xf32>) {
    ^bb0(%38: f32, %39: f32):
      %40 = arith.constant 2.000000e+00 : f32
      %41 = arith.divf %38, %40 : f32
      linalg.yield %41 : f32
    } -> tensor<5x?xf32>
    %42 = arith.muli %1, %2 : index
    %43 = arith.addi %2, %2 : index
    %44 = tensor.concat dim(1) %37, %37 : (tensor<5x?xf32>, tensor<5x?xf32>) -> tensor<5x?xf32>
    %45 = tensor.empty(%42) : tensor<5x?xf32>
    %46 = arith.constant 0 : index
    %47 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%44 : tensor<5x?xf32>) outs(%45 : tensor<5x?xf32>) {
    ^bb0(%48: f32, %49: f32):
      %50 = linalg.index 1 : index
      %51 = linalg.index 0 : index
      %52 = arith.subi %50, %51 : index
      %53 = arith.cmpi sle, %52, %46 : index
      %54 = arith.constant 0.000000e+00 : f32
      %55 = arith.select %53, %48, %54 : f32
      linalg.yield %55 : f32
    } -> tensor<5x?xf32>
    func.return %47 : tensor<5x?xf32>
  }
}
