builtin.module {
  func.func @main(%0: tensor<5x5x4xf32>) -> tensor<5x5x3xf32> {
    %1 = arith.constant 1.000000e+00 : f32
    %2 = arith.constant 0 : index
    %3 = tensor.pad %0 low[0, 0, 2] high[0, 0, 1] {
    ^bb0(%4: index, %5: index, %6: index):
      tensor.yield %1 : f32
    } : tensor<5x5x4xf32> to tensor<5x5x7xf32>
    %7 = tensor.empty() : tensor<2xf32>
    %8 = arith.constant 0xff800000 : f32
    %9 = tensor.empty() : tensor<5x5x3xf32>
    %10 = linalg.fill ins(%8 : f32) outs(%9 : tensor<5x5x3xf32>) -> tensor<5x5x3xf32>
    %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, ((d2 * 2) + d3))>, affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%3, %7 : tensor<5x5x7xf32>, tensor<2xf32>) outs(%10 : tensor<5x5x3xf32>) {
    ^bb0(%12: f32, %13: f32, %14: f32):
      %15 = arith.maximumf %14, %12 : f32
      linalg.yield %15 : f32
    } -> tensor<5x5x3xf32>
    %16 = tensor.empty() : tensor<5x5x3xf32>
    %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<5x5x3xf32>) outs(%16 : tensor<5x5x3xf32>) {
    ^bb0(%18: f32, %19: f32):
      %20 = arith.constant 0.000000e+00 : f32
      %21 = arith.maximumf %18, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<5x5x3xf32>
    %22 = tensor.empty() : tensor<5x5x3xi1>
    %23 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17 : tensor<5x5x3xf32>) outs(%22 : tensor<5x5x3xi1>) {
    ^bb0(%24: f32, %25: i1):
      %26 = arith.constant 0.000000e+00 : f32
      %27 = arith.cmpf ogt, %24, %26 : f32
      linalg.yield %27 : i1
    } -> tensor<5x5x3xi1>
    %28 = tensor.empty() : tensor<5x5x3xi64>
    %29 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%23 : tensor<5x5x3xi1>) outs(%28 : tensor<5x5x3xi64>) {
    ^bb0(%30: i1, %31: i64):
      %32 = arith.extui %30 : i1 to i64
      linalg.yield %32 : i64
    } -> tensor<5x5x3xi64>
    %33 = tensor.empty() : tensor<5x5x3xf32>
    %34 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%29 : tensor<5x5x3xi64>) outs(%33 : tensor<5x5x3xf32>) {
    ^bb0(%35: i64, %36: f32):
      %37 = linalg.index 0 : index
      %38 = linalg.index 1 : index
      %39 = linalg.index 2 : index
      %40 = arith.index_cast %35 : i64 to index
      %41 = arith.constant 0 : index
      %42 = arith.cmpi slt, %40, %41 : index
      %43 = arith.constant 3 : index
      %44 = arith.addi %40, %43 : index
      %45 = arith.select %42, %44, %40 : index
      %46 = arith.constant 1 : index
      %47 = arith.subi %43, %46 : index
      %48 = arith.maxsi %45, %41 : index
      %49 = arith.minsi %48, %47 : index
      %50 = tensor.extract %17[%37, %38, %49] : tensor<5x5x3xf32>
      linalg.yield %50 : f32
    } -> tensor<5x5x3xf32>
    func.return %34 : tensor<5x5x3xf32>
  }
}
