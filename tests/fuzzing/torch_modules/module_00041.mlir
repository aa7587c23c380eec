builtin.module {
  func.func @main(%0: tensor<4x3x?xf32>) -> tensor<4x?xf32> {
    %1 = arith.constant 2 : index
    %2 = tensor.dim %0, %1 : tensor<4x3x?xf32>
    %3 = tensor.empty(%2) : tensor<4x3x?xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<4x3x?xf32>) outs(%3 : tensor<4x3x?xf32>) {
    ^bb0(%5: f32, %6: f32):
      %7 = arith.constant 4.000000e+00 : f32
      %8 = arith.mulf %5, %7 : f32
      linalg.yield %8 : f32
    } -> tensor<4x3x?xf32>
    %9 = tensor.empty(%2) : tensor<4x3x?xi64>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<4x3x?xf32>) outs(%9 : tensor<4x3x?xi64>) {
    ^bb0(%11: f32, %12: i64):
      %13 = arith.constant 9.22337204e+18 : f32
      %14 = arith.cmpf olt, %11, %13 : f32
      %15 = arith.fptosi %11 : f32 to i64
      %16 = arith.constant -9223372036854775808 : i64
      %17 = arith.select %14, %15, %16 : i64
      linalg.yield %17 : i64
    } -> tensor<4x3x?xi64>
    %18 = tensor.empty(%2) : tensor<4x3x?xi64>
    %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<4x3x?xi64>) outs(%18 : tensor<4x3x?xi64>) {
    ^bb0(%20: i64, %21: i64):
      %22 = arith.constant 3 : i64
      %23 = arith.andi %20, %22 : i64
      linalg.yield %23 : i64
    } -> tensor<4x3x?xi64>
    %24 = tensor.empty(%2) : tensor<4x3x?xf32>
    %25 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19 : tensor<4x3x?xi64>) outs(%24 : tensor<4x3x?xf32>) {
    ^bb0(%26: i64, %27: f32):
      %28 = arith.sitofp %26 : i64 to f32
      linalg.yield %28 : f32
    } -> tensor<4x3x?xf32>
    %29 = tensor.empty(%2) : tensor<4x3x?xi1>
    %30 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25 : tensor<4x3x?xf32>) outs(%29 : tensor<4x3x?xi1>) {
    ^bb0(%31: f32, %32: i1):
      %33 = arith.constant 0.000000e+00 : f32
      %34 = arith.cmpf ogt, %31, %33 : f32
      linalg.yield %34 : i1
    } -> tensor<4x3x?xi1>
    %35 = tensor.empty(%2) : tensor<4x3x?xf32>
    %36 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25 : tensor<4x3x?xf32>) outs(%35 : tensor<4x3x?xf32>) {
    ^bb0(%37: f32, %38: f32):
      %39 = arith.negf %37 : f32
      linalg.yield %39 : f32
    } -> tensor<4x3x?xf32>
    %40 = tensor.empty(%2) : tensor<4x3x?xf32>
    %41 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%30, %25, %36 : tensor<4x3x?xi1>, tensor<4x3x?xf32>, tensor<4x3x?xf32>) outs(%40 : tensor<4x3x?xf32>) {
    ^bb0(%42: i1, %43: f32, %44: f32, %45: f32):
      %46 = arith.select %42, %43, %44 : f32
      linalg.yield %46 : f32
    } -> tensor<4x3x?xf32>
    %47 = tensor.empty(%2) : tensor<4x3x?xf32>
    %48 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%41 : tensor<4x3x?xf32>) outs(%47 : tensor<4x3x?xf32>) {
    ^bb0(%49: f32, %50: f32):
      %51 = arith.constant 2.000000e+00 : f32
      %52 = arith.remf %49, %51 : f32
      %53 = arith.subf %49, %52 : f32
      %54 = arith.divf %53, %51 : f32
      %55 = arith.constant 0.000000e+00 : f32
      %56 = arith.cmpf une, %52, %55 : f32
      %57 = arith.cmpf olt, %52, %55 : f32
      %58 = arith.cmpf olt, %51, %55 : f32
      %59 = arith.xori %57, %58 : i1
      %60 = arith.andi %56, %59 : i1
      %61 = arith.constant 1.000000e+00 : f32
      %62 = arith.subf %54, %61 : f32
      %63 = arith.select %60, %62, %54 : f32
      %64 = math.floor %63 : f32
      %65 = arith.subf %63, %64 : f32
      %66 = arith.constant 5.000000e-01 : f32
      %67 = arith.cmpf ogt, %65, %66 : f32
      %68 = arith.addf %64, %61 : f32
      %69 = arith.select %67, %68, %64 : f32
      %70 = arith.divf %49, %51 : f32
      %71 = arith.cmpf une, %63, %55 : f32
      %72 = arith.constant 0.000000e+00 : f32
      %73 = math.copysign %72, %70 : f32
      %74 = arith.select %71, %69, %73 : f32
      %75 = arith.cmpf oeq, %51, %55 : f32
      %76 = arith.select %75, %70, %74 : f32
      linalg.yield %76 : f32
    } -> tensor<4x3x?xf32>
    %77 = arith.constant 3 : index
    %78 = arith.muli %77, %2 : index
    %79 = tensor.collapse_shape %48 [[0 : i64], [1 : i64, 2 : i64]] : tensor<4x3x?xf32> into tensor<4x?xf32>
    func.return %79 : tensor<4x?xf32>
  }
}
