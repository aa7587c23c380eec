builtin.module {
  func.func @main(%0: tensor<5x5xf32>) -> tensor<5x5xf32> {
    %1 = tensor.empty() : tensor<5x5xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<5x5xf32>) outs(%1 : tensor<5x5xf32>) {
    ^bb0(%3: f32, %4: f32):
      %5 = arith.constant 1.000000e+00 : f32
      %6 = arith.subf %3, %5 : f32
      linalg.yield %6 : f32
    } -> tensor<5x5xf32>
    %7 = tensor.extract_slice %2[0, 0] [5, 1] [1, 1] : tensor<5x5xf32> to tensor<5x1xf32>
    %8 = tensor.collapse_shape %7 [[0 : i64, 1 : i64]] : tensor<5x1xf32> into tensor<5xf32>
    %9 = arith.constant 0 : i64
    %10 = tensor.empty() : tensor<5xi64>
    %11 = linalg.fill ins(%9 : i64) outs(%10 : tensor<5xi64>) -> tensor<5xi64>
    %12 = tensor.extract_slice %2[0, 1] [5, 4] [1, 1] : tensor<5x5xf32> to tensor<5x4xf32>
    %13 = arith.constant 1 : index
    %14, %15 = iree_linalg_ext.arg_compare dimension(1) ins(%12 : tensor<5x4xf32>) outs(%8, %11 : tensor<5xf32>, tensor<5xi64>) index_base(%13 : index) {
    ^bb0(%16: f32, %17: f32):
      %18 = arith.cmpf ogt, %16, %17 : f32
      %19 = math.isnan %16 : f32
      %20 = math.isnan %17 : f32
      %21 = arith.constant true
      %22 = arith.xori %20, %21 : i1
      %23 = arith.andi %19, %22 : i1
      %24 = arith.ori %18, %23 : i1
      iree_linalg_ext.yield %24 : i1
    } -> tensor<5xf32>, tensor<5xi64>
    %25 = tensor.expand_shape %15 [[0 : i64, 1 : i64]] output_shape [5, 1] : tensor<5xi64> into tensor<5x1xi64>
    %26 = tensor.empty() : tensor<5x1xf32>
    %27 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%25 : tensor<5x1xi64>) outs(%26 : tensor<5x1xf32>) {
    ^bb0(%28: i64, %29: f32):
      %30 = arith.sitofp %28 : i64 to f32
      linalg.yield %30 : f32
    } -> tensor<5x1xf32>
    %31 = tensor.empty() : tensor<5x5xf32>
    %32 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%27, %2 : tensor<5x1xf32>, tensor<5x5xf32>) outs(%31 : tensor<5x5xf32>) {
    ^bb0(%33: f32, %34: f32, %35: f32):
      %36 = arith.addf %33, %34 : f32
      linalg.yield %36 : f32
    } -> tensor<5x5xf32>
    %37 = tensor.empty() : tensor<5x5xf32>
    %38 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%32 : tensor<5x5xf32>) outs(%37 : tensor<5x5xf32>) {
    ^bb0(%39: f32, %40: f32):
      %41 = arith.constant 1.000000e+00 : f32
      %42 = arith.subf %39, %41 : f32
      linalg.yield %42 : f32
    } -> tensor<5x5xf32>
    func.return %38 : tensor<5x5xf32>
  }
}
