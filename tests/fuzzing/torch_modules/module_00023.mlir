builtin.module {
  func.func @main(%0: tensor<2x2x?xf32>) -> tensor<2x1x2x?xf32> {
    %1 = arith.constant 2 : index
    %2 = tensor.dim %0, %1 : tensor<2x2x?xf32>
    %3 = arith.constant -1 : index
    %4 = arith.remsi %3, %2 : index
    %5 = arith.constant 0 : index
    %6 = arith.cmpi ne, %4, %5 : index
    %7 = arith.cmpi slt, %4, %5 : index
    %8 = arith.cmpi slt, %2, %5 : index
    %9 = arith.xori %7, %8 : i1
    %10 = arith.andi %6, %9 : i1
    %11 = arith.addi %4, %2 : index
    %12 = arith.select %10, %11, %4 : index
    %13 = arith.subi %2, %12 : index
    %14 = tensor.extract_slice %0[0, 0, %12] [2, 2, %13] [1, 1, 1] : tensor<2x2x?xf32> to tensor<2x2x?xf32>
    %15 = tensor.extract_slice %0[0, 0, 0] [2, 2, %12] [1, 1, 1] : tensor<2x2x?xf32> to tensor<2x2x?xf32>
    %16 = arith.addi %13, %12 : index
    %17 = tensor.concat dim(2) %14, %15 : (tensor<2x2x?xf32>, tensor<2x2x?xf32>) -> tensor<2x2x?xf32>
    %18 = arith.constant 1 : index
    %19 = tensor.expand_shape %17 [[0 : i64], [1 : i64, 2 : i64], [3 : i64]] output_shape [2, 1, 2, %2] : tensor<2x2x?xf32> into tensor<2x1x2x?xf32>
    %20 = tensor.empty(%2) : tensor<2x1x2x?xf32>
    %21 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<2x1x2x?xf32>) outs(%20 : tensor<2x1x2x?xf32>) {
    ^bb0(%22: f32, %23: f32):
      %24 = arith.constant 2.000000e+00 : f32
      %25 = arith.mulf %22, %24 : f32
      linalg.yield %25 : f32
    } -> tensor<2x1x2x?xf32>
    %26 = arith.constant 0.000000e+00 : f64
    %27 = tensor.empty() : tensor<2x1x2xf64>
    %28 = linalg.fill ins(%26 : f64) outs(%27 : tensor<2x1x2xf64>) -> tensor<2x1x2xf64>
    %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%21 : tensor<2x1x2x?xf32>) outs(%28 : tensor<2x1x2xf64>) {
    ^bb0(%30: f32, %31: f64):
      %32 = arith.extf %30 : f32 to f64
      %33 = arith.addf %31, %32 : f64
      linalg.yield %33 : f64
    } -> tensor<2x1x2xf64>
    %34 = tensor.expand_shape %29 [[0 : i64], [1 : i64], [2 : i64, 3 : i64]] output_shape [2, 1, 2, 1] : tensor<2x1x2xf64> into tensor<2x1x2x1xf64>
    %35 = tensor.empty() : tensor<2x1x2xf64>
    %36 = linalg.fill ins(%26 : f64) outs(%35 : tensor<2x1x2xf64>) -> tensor<2x1x2xf64>
    %37 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%21, %34 : tensor<2x1x2x?xf32>, tensor<2x1x2x1xf64>) outs(%36 : tensor<2x1x2xf64>) {
    ^bb0(%38: f32, %39: f64, %40: f64):
      %41 = arith.extf %38 : f32 to f64
      %42 = arith.index_cast %2 : index to i64
      %43 = arith.sitofp %42 : i64 to f64
      %44 = arith.divf %39, %43 : f64
      %45 = arith.subf %41, %44 : f64
      %46 = arith.mulf %45, %45 : f64
      %47 = arith.addf %40, %46 : f64
      linalg.yield %47 : f64
    } -> tensor<2x1x2xf64>
    %48 = tensor.empty() : tensor<2x1x2xf32>
    %49 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%37 : tensor<2x1x2xf64>) outs(%48 : tensor<2x1x2xf32>) {
    ^bb0(%50: f64, %51: f32):
      %52 = arith.index_cast %2 : index to i64
      %53 = arith.sitofp %52 : i64 to f64
      %54 = arith.constant 1.000000e+00 : f64
      %55 = arith.subf %53, %54 : f64
      %56 = arith.constant 0.000000e+00 : f64
      %57 = arith.maximumf %55, %56 : f64
      %58 = arith.divf %50, %57 : f64
      %59 = arith.truncf %58 : f64 to f32
      linalg.yield %59 : f32
    } -> tensor<2x1x2xf32>
    %60 = tensor.empty() : tensor<2x1x2xf32>
    %61 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%29 : tensor<2x1x2xf64>) outs(%60 : tensor<2x1x2xf32>) {
    ^bb0(%62: f64, %63: f32):
      %64 = arith.index_cast %2 : index to i64
      %65 = arith.sitofp %64 : i64 to f64
      %66 = arith.divf %62, %65 : f64
      %67 = arith.truncf %66 : f64 to f32
      linalg.yield %67 : f32
    } -> tensor<2x1x2xf32>
    %68 = tensor.expand_shape %49 [[0 : i64], [1 : i64], [2 : i64, 3 : i64]] output_shape [2, 1, 2, 1] : tensor<2x1x2xf32> into tensor<2x1x2x1xf32>
    %69 = tensor.empty(%2) : tensor<2x1x2x?xf32>
    %70 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%68, %21 : tensor<2x1x2x1xf32>, tensor<2x1x2x?xf32>) outs(%69 : tensor<2x1x2x?xf32>) {
    ^bb0(%71: f32, %72: f32, %73: f32):
      %74 = arith.subf %71, %72 : f32
      linalg.yield %74 : f32
    } -> tensor<2x1x2x?xf32>
    func.return %70 : tensor<2x1x2x?xf32>
  }
}
