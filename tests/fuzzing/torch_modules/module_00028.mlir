builtin.module {
  func.func @main(%0: tensor<?x8xf32>) -> tensor<10x?xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x8xf32>
    %3 = tensor.empty(%2) : tensor<?x8xi64>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%3 : tensor<?x8xi64>) {
    ^bb0(%5: i64):
      %6 = linalg.index 0 : index
      %7 = linalg.index 1 : index
      %8 = arith.index_cast %7 : index to i64
      linalg.yield %8 : i64
    } -> tensor<?x8xi64>
    %9 = tensor.empty(%2) : tensor<?x8xf32>
    %10 = tensor.empty(%2) : tensor<?x8xi64>
    %11, %12 = iree_linalg_ext.sort dimension(1) ins(%0, %4 : tensor<?x8xf32>, tensor<?x8xi64>) outs(%9, %10 : tensor<?x8xf32>, tensor<?x8xi64>) {
    ^bb0(%13: f32, %14: f32, %15: i64, %16: i64):
      %17 = arith.cmpf olt, %13, %14 : f32
      iree_linalg_ext.yield %17 : i1
    } -> tensor<?x8xf32>, tensor<?x8xi64>
    %18 = arith.constant 1.000000e+00 : f32
    %19 = tensor.pad %11 low[0, 1] high[0, 1] {
    ^bb0(%20: index, %21: index):
      tensor.yield %18 : f32
    } : tensor<?x8xf32> to tensor<?x10xf32>
    %22 = tensor.empty(%2) : tensor<10x?xf32>
    %23 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%19 : tensor<?x10xf32>) outs(%22 : tensor<10x?xf32>) {
    ^bb0(%24: f32, %25: f32):
      linalg.yield %24 : f32
    } -> tensor<10x?xf32>
    %26 = tensor.empty(%2) : tensor<10x?xf32>
    %27 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%23 : tensor<10x?xf32>) outs(%26 : tensor<10x?xf32>) {
    ^bb0(%28: f32, %29: f32):
      %30 = arith.constant 1.000000e+00 : f32
      %31 = arith.addf %28, %30 : f32
      linalg.yield %31 : f32
    } -> tensor<10x?xf32>
    %32 = tensor.empty(%2) : tensor<10x?xi1>
    %33 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%27 : tensor<10x?xf32>) outs(%32 : tensor<10x?xi1>) {
    ^bb0(%34: f32, %35: i1):
      %36 = arith.constant 0.000000e+00 : f32
      %37 = arith.cmpf ogt, %34, %36 : f32
      linalg.yield %37 : i1
    } -> tensor<10x?xi1>
    %38 = tensor.empty(%2) : tensor<10x?xi64>
    %39 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%33 : tensor<10x?xi1>) outs(%38 : tensor<10x?xi64>) {
    ^bb0(%40: i1, %41: i64):
      %42 = arith.extui %40 : i1 to i64
      linalg.yield %42 : i64
    } -> tensor<10x?xi64>
    %43 = tensor.empty(%2) : tensor<10x?xf32>
    %44 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%39 : tensor<10x?xi64>) outs(%43 : tensor<10x?xf32>) {
    ^bb0(%45: i64, %46: f32):
      %47 = linalg.index 0 : index
      %48 = linalg.index 1 : index
      %49 = arith.index_cast %45 : i64 to index
      %50 = arith.constant 0 : index
      %51 = arith.cmpi slt, %49, %50 : index
      %52 = arith.addi %49, %2 : index
      %53 = arith.select %51, %52, %49 : index
      %54 = arith.constant 1 : index
      %55 = arith.subi %2, %54 : index
      %56 = arith.maxsi %53, %50 : index
      %57 = arith.minsi %56, %55 : index
      %58 = tensor.extract %27[%47, %57] : tensor<10x?xf32>
      linalg.yield %58 : f32
    } -> tensor<10x?xf32>
    func.return %44 : tensor<10x?xf32>
  }
}
