builtin.module {
  func.func @main(%0: tensor<2x5x?x4xf32>) -> tensor<2x5x?x7xf32> {
    %1 = arith.constant 2 : index
    %2 = tensor.dim %0, %1 : tensor<2x5x?x4xf32>
    %3 = tensor.empty(%2) : tensor<2x5x?x4xi1>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%0 : tensor<2x5x?x4xf32>) outs(%3 : tensor<2x5x?x4xi1>) {
    ^bb0(%5: f32, %6: i1):
      %7 = arith.constant 0.000000e+00 : f32
      %8 = arith.cmpf ogt, %5, %7 : f32
      linalg.yield %8 : i1
    } -> tensor<2x5x?x4xi1>
    %9 = tensor.empty(%2) : tensor<2x5x?x4xi64>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<2x5x?x4xi1>) outs(%9 : tensor<2x5x?x4xi64>) {
    ^bb0(%11: i1, %12: i64):
      %13 = arith.extui %11 : i1 to i64
      linalg.yield %13 : i64
    } -> tensor<2x5x?x4xi64>
    %14 = tensor.empty(%2) : tensor<2x5x?x4xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10 : tensor<2x5x?x4xi64>) outs(%14 : tensor<2x5x?x4xf32>) {
    ^bb0(%16: i64, %17: f32):
      %18 = linalg.index 0 : index
      %19 = linalg.index 1 : index
      %20 = linalg.index 2 : index
      %21 = linalg.index 3 : index
      %22 = arith.index_cast %16 : i64 to index
      %23 = arith.constant 0 : index
      %24 = arith.cmpi slt, %22, %23 : index
      %25 = arith.constant 4 : index
      %26 = arith.addi %22, %25 : index
      %27 = arith.select %24, %26, %22 : index
      %28 = arith.constant 1 : index
      %29 = arith.subi %25, %28 : index
      %30 = arith.maxsi %27, %23 : index
      %31 = arith.minsi %30, %29 : index
      %32 = tensor.extract %0[%18, %19, %20, %31] : tensor<2x5x?x4xf32>
      linalg.yield %32 : f32
    } -> tensor<2x5x?x4xf32>
    %33 = arith.constant 1.000000e+00 : f32
    %34 = arith.constant 0 : index
    %35 = tensor.pad %15 low[0, 0, 0, 2] high[0, 0, 0, 1] {
    ^bb0(%36: index, %37: index, %38: index, %39: index):
      tensor.yield %33 : f32
    } : tensor<2x5x?x4xf32> to tensor<2x5x?x7xf32>
    %40 = tensor.empty(%2) : tensor<2x5x?x7xf32>
    %41 = linalg.softmax dimension(3) ins(%35 : tensor<2x5x?x7xf32>) outs(%40 : tensor<2x5x?x7xf32>) -> tensor<2x5x?x7xf32>
    %42 = tensor.empty(%2) : tensor<2x5x?x7xf32>
    %43 = arith.constant 6 : index
    %44 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%42 : tensor<2x5x?x7xf32>) {
    ^bb0(%45: f32):
      %46 = linalg.index 0 : index
      %47 = linalg.index 1 : index
      %48 = linalg.index 2 : index
      %49 = linalg.index 3 : index
      %50 = arith.subi %43, %49 : index
      %51 = tensor.extract %41[%46, %47, %48, %50] : tensor<2x5x?x7xf32>
      linalg.yield %51 : f32
    } -> tensor<2x5x?x7xf32>
    %52 = tensor.empty(%2) : tensor<2x5x?x7xf32>
    %53 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%44 : tensor<2x5x?x7xf32>) outs(%52 : tensor<2x5x?x7xf32>) {
    ^bb0(%54: f32, %55: f32):
      %56 = math.roundeven %54 : f32
      linalg.yield %56 : f32
    } -> tensor<2x5x?x7xf32>
    func.return %53 : tensor<2x5x?x7xf32>
  }
}
