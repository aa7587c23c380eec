builtin.module {
  func.func @main(%0: tensor<8x5x5xf32>) -> tensor<8x5x2xf32> {
    %1 = tensor.empty() : tensor<8x5x5xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<8x5x5xf32>) outs(%1 : tensor<8x5x5xf32>) {
    ^bb0(%3: f32, %4: f32):
      %5 = math.erf %3 : f32
      linalg.yield %5 : f32
    } -> tensor<8x5x5xf32>
    %6 = tensor.empty() : tensor<8x5x2xf32>
    %7 = tensor.empty() : tensor<8x5x2xi64>
    %8, %9 = iree_linalg_ext.topk_v2 dimension(2) is_sorted ins(%2 : tensor<8x5x5xf32>) outs(%6, %7 : tensor<8x5x2xf32>, tensor<8x5x2xi64>) {
    ^bb0(%10: f32, %11: f32):
      %12 = arith.cmpf ogt, %10, %11 : f32
      iree_linalg_ext.yield %12 : i1
    } -> tensor<8x5x2xf32>, tensor<8x5x2xi64>
    %13 = tensor.empty() : tensor<8x5x2xi64>
    %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%13 : tensor<8x5x2xi64>) {
    ^bb0(%15: i64):
      %16 = linalg.index 0 : index
      %17 = linalg.index 1 : index
      %18 = linalg.index 2 : index
      %19 = arith.index_cast %18 : index to i64
      linalg.yield %19 : i64
    } -> tensor<8x5x2xi64>
    %20 = tensor.empty() : tensor<8x5x2xf32>
    %21 = tensor.empty() : tensor<8x5x2xi64>
    %22, %23 = iree_linalg_ext.sort dimension(2) ins(%8, %14 : tensor<8x5x2xf32>, tensor<8x5x2xi64>) outs(%20, %21 : tensor<8x5x2xf32>, tensor<8x5x2xi64>) {
    ^bb0(%24: f32, %25: f32, %26: i64, %27: i64):
      %28 = arith.cmpf olt, %24, %25 : f32
      iree_linalg_ext.yield %28 : i1
    } -> tensor<8x5x2xf32>, tensor<8x5x2xi64>
    %29 = tensor.empty() : tensor<8x5x2xf32>
    %30 = arith.constant 0 : index
    %31 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%22 : tensor<8x5x2xf32>) outs(%29 : tensor<8x5x2xf32>) {
    ^bb0(%32: f32, %33: f32):
      %34 = linalg.index 2 : index
      %35 = linalg.index 1 : index
      %36 = arith.subi %34, %35 : index
      %37 = arith.cmpi sle, %36, %30 : index
      %38 = arith.constant 0.000000e+00 : f32
      %39 = arith.select %37, %32, %38 : f32
      linalg.yield %39 : f32
    } -> tensor<8x5x2xf32>
    %40 = tensor.empty() : tensor<8x5x2xf32>
    %41 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%31 : tensor<8x5x2xf32>) outs(%40 : tensor<8x5x2xf32>) {
    ^bb0(%42: f32, %43: f32):
      %44 = arith.constant 1.000000e+00 : f32
      %45 = arith.subf %42, %44 : f32
      linalg.yield %45 : f32
    } -> tensor<8x5x2xf32>
    func.return %41 : tensor<8x5x2xf32>
  }
}
