builtin.module {
  func.func @main(%0: tensor<?x8xf32>) -> tensor<?x8xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x8xf32>
    %3 = tensor.empty(%2) : tensor<?x8xf32>
    %4 = arith.constant 7 : index
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%3 : tensor<?x8xf32>) {
    ^bb0(%6: f32):
      %7 = linalg.index 0 : index
      %8 = linalg.index 1 : index
      %9 = arith.subi %4, %8 : index
      %10 = tensor.extract %0[%7, %9] : tensor<?x8xf32>
      linalg.yield %10 : f32
    } -> tensor<?x8xf32>
    %11 = tensor.empty(%2) : tensor<?x8xi1>
    %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<?x8xf32>) outs(%11 : tensor<?x8xi1>) {
    ^bb0(%13: f32, %14: i1):
      %15 = arith.constant 0.000000e+00 : f32
      %16 = arith.cmpf ogt, %13, %15 : f32
      linalg.yield %16 : i1
    } -> tensor<?x8xi1>
    %17 = tensor.empty(%2) : tensor<?x8xi64>
    %18 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%12 : tensor<?x8xi1>) outs(%17 : tensor<?x8xi64>) {
    ^bb0(%19: i1, %20: i64):
      %21 = arith.extui %19 : i1 to i64
      linalg.yield %21 : i64
    } -> tensor<?x8xi64>
    %22 = tensor.empty(%2) : tensor<?x8x2xi64>
    %23 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18 : tensor<?x8xi64>) outs(%22 : tensor<?x8x2xi64>) {
    ^bb0(%24: i64, %25: i64):
      %26 = linalg.index 2 : index
      %27 = arith.constant 0 : i64
      %28 = linalg.index 0 : index
      %29 = arith.constant 0 : index
      %30 = arith.cmpi eq, %26, %29 : index
      %31 = arith.index_cast %28 : index to i64
      %32 = arith.select %30, %31, %27 : i64
      %33 = arith.index_cast %24 : i64 to index
      %34 = arith.cmpi slt, %33, %29 : index
      %35 = arith.constant 8 : index
      %36 = arith.addi %33, %35 : index
      %37 = arith.select %34, %36, %33 : index
      %38 = arith.constant 1 : index
      %39 = arith.cmpi eq, %26, %38 : index
      %40 = arith.index_cast %37 : index to i64
      %41 = arith.select %39, %40, %32 : i64
      linalg.yield %41 : i64
    } -> tensor<?x8x2xi64>
    %42 = iree_linalg_ext.scatter dimension_map = [0, 1] unique_indices(false) ins(%5, %23 : tensor<?x8xf32>, tensor<?x8x2xi64>) outs(%5 : tensor<?x8xf32>) {
    ^bb0(%43: f32, %44: f32):
      %45 = arith.addf %44, %43 : f32
      iree_linalg_ext.yield %45 : f32
    } -> tensor<?x8xf32>
    func.return %42 : tensor<?x8xf32>
  }
}
