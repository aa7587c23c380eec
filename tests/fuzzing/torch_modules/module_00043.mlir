builtin.module {
  func.func @main(%0: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x3xf32>
    %3 = tensor.empty(%2) : tensor<?x3xf32>
    %4 = arith.constant 2 : index
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%3 : tensor<?x3xf32>) {
    ^bb0(%6: f32):
      %7 = linalg.index 0 : index
      %8 = linalg.index 1 : index
      %9 = arith.subi %4, %8 : index
      %10 = tensor.extract %0[%7, %9] : tensor<?x3xf32>
      linalg.yield %10 : f32
    } -> tensor<?x3xf32>
    %11 = tensor.empty(%2) : tensor<?x3xf32>
    %12 = linalg.softmax dimension(1) ins(%5 : tensor<?x3xf32>) outs(%11 : tensor<?x3xf32>) -> tensor<?x3xf32>
    %13 = tensor.empty(%2) : tensor<?x3xf32>
    %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%12 : tensor<?x3xf32>) outs(%13 : tensor<?x3xf32>) {
    ^bb0(%15: f32, %16: f32):
      %17 = arith.constant 1.000000e+00 : f32
      %18 = arith.addf %15, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<?x3xf32>
    %19 = tensor.empty(%2) : tensor<?x3xi1>
    %20 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%14 : tensor<?x3xf32>) outs(%19 : tensor<?x3xi1>) {
    ^bb0(%21: f32, %22: i1):
      %23 = arith.constant 0.000000e+00 : f32
      %24 = arith.cmpf ogt, %21, %23 : f32
      linalg.yield %24 : i1
    } -> tensor<?x3xi1>
    %25 = tensor.empty(%2) : tensor<?x3xi64>
    %26 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%20 : tensor<?x3xi1>) outs(%25 : tensor<?x3xi64>) {
    ^bb0(%27: i1, %28: i64):
      %29 = arith.extui %27 : i1 to i64
      linalg.yield %29 : i64
    } -> tensor<?x3xi64>
    %30 = tensor.empty(%2) : tensor<?x3x2xi64>
    %31 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%26 : tensor<?x3xi64>) outs(%30 : tensor<?x3x2xi64>) {
    ^bb0(%32: i64, %33: i64):
      %34 = linalg.index 2 : index
      %35 = arith.constant 0 : i64
      %36 = linalg.index 0 : index
      %37 = arith.constant 0 : index
      %38 = arith.cmpi eq, %34, %37 : index
      %39 = arith.index_cast %36 : index to i64
      %40 = arith.select %38, %39, %35 : i64
      %41 = arith.index_cast %32 : i64 to index
      %42 = arith.cmpi slt, %41, %37 : index
      %43 = arith.constant 3 : index
      %44 = arith.addi %41, %43 : index
      %45 = arith.select %42, %44, %41 : index
      %46 = arith.constant 1 : index
      %47 = arith.cmpi eq, %34, %46 : index
      %48 = arith.index_cast %45 : index to i64
      %49 = arith.select %47, %48, %40 : i64
      linalg.yield %49 : i64
    } -> tensor<?x3x2xi64>
    %50 = iree_linalg_ext.scatter dimension_map = [0, 1] unique_indices(false) ins(%14, %31 : tensor<?x3xf32>, tensor<?x3x2xi64>) outs(%14 : tensor<?x3xf32>) {
    ^bb0(%51: f32, %52: f32):
      %53 = arith.addf %52, %51 : f32
      iree_linalg_ext.yield %53 : f32
    } -> tensor<?x3xf32>
    func.return %50 : tensor<?x3xf32>
  }
}
