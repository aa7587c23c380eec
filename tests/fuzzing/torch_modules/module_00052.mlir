builtin.module {
  func.func @main(%0: tensor<2x?x5xf32>) -> tensor<2x5x?xf32> {
    %1 = arith.constant 1 : index
    %2 = tensor.dim %0, %1 : tensor<2x?x5xf32>
    %3 = tensor.empty(%2) : tensor<2x?x5xi1>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<2x?x5xf32>) outs(%3 : tensor<2x?x5xi1>) {
    ^bb0(%5: f32, %6: i1):
      %7 = arith.constant 0.000000e+00 : f32
      %8 = arith.cmpf ogt, %5, %7 : f32
      linalg.yield %8 : i1
    } -> tensor<2x?x5xi1>
    %9 = tensor.empty(%2) : tensor<2x?x5xi64>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<2x?x5xi1>) outs(%9 : tensor<2x?x5xi64>) {
    ^bb0(%11: i1, %12: i64):
      %13 = arith.extui %11 : i1 to i64
      linalg.yield %13 : i64
    } -> tensor<2x?x5xi64>
    %14 = tensor.empty(%2) : tensor<2x?x5xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<2x?x5xi64>) outs(%14 : tensor<2x?x5xf32>) {
    ^bb0(%16: i64, %17: f32):
      %18 = linalg.index 0 : index
      %19 = linalg.index 1 : index
      %20 = linalg.index 2 : index
      %21 = arith.index_cast %16 : i64 to index
      %22 = arith.constant 0 : index
      %23 = arith.cmpi slt, %21, %22 : index
      %24 = arith.constant 5 : index
      %25 = arith.addi %21, %24 : index
      %26 = arith.select %23, %25, %21 : index
      %27 = arith.constant 1 : index
      %28 = arith.subi %24, %27 : index
      %29 = arith.maxsi %26, %22 : index
      %30 = arith.minsi %29, %28 : index
      %31 = tensor.extract %0[%18, %19, %30] : tensor<2x?x5xf32>
      linalg.yield %31 : f32
    } -> tensor<2x?x5xf32>
    %32 = tensor.empty(%2) : tensor<2x?x5xf32>
    %33 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<2x?x5xf32>) outs(%32 : tensor<2x?x5xf32>) {
    ^bb0(%34: f32, %35: f32):
      %36 = arith.constant 5.000000e-01 : f32
      %37 = arith.mulf %34, %36 : f32
      %38 = arith.constant 0.707106769 : f32
      %39 = arith.mulf %34, %38 : f32
      %40 = math.erf %39 : f32
      %41 = arith.constant 1.000000e+00 : f32
      %42 = arith.addf %40, %41 : f32
      %43 = arith.mulf %37, %42 : f32
      linalg.yield %43 : f32
    } -> tensor<2x?x5xf32>
    %44 = tensor.empty(%2) : tensor<2x5x?xf32>
    %45 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%33 : tensor<2x?x5xf32>) outs(%44 : tensor<2x5x?xf32>) {
    ^bb0(%46: f32, %47: f32):
      linalg.yield %46 : f32
    } -> tensor<2x5x?xf32>
    func.return %45 : tensor<2x5x?xf32>
  }
}
