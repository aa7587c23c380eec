builtin.module {
  func.func @main(%0: tensor<?x2x3x5xf32>) -> tensor<?x2x2xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x2x3x5xf32>
    %3 = arith.constant 0xff800000 : f32
    %4 = tensor.empty(%2) : tensor<?x2x5xf32>
    %5 = linalg.fill ins(%3 : f32) outs(%4 : tensor<?x2x5xf32>) -> tensor<?x2x5xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>], iterator_types = ["parallel", "parallel", "reduction", "parallel"]} ins(%0 : tensor<?x2x3x5xf32>) outs(%5 : tensor<?x2x5xf32>) {
    ^bb0(%7: f32, %8: f32):
      %9 = arith.maximumf %8, %7 : f32
      linalg.yield %9 : f32
    } -> tensor<?x2x5xf32>
    %10 = tensor.empty(%2) : tensor<?x5x2xf32>
    %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<?x2x5xf32>) outs(%10 : tensor<?x5x2xf32>) {
    ^bb0(%12: f32, %13: f32):
      linalg.yield %12 : f32
    } -> tensor<?x5x2xf32>
    %14 = arith.constant 0.000000e+00 : f32
    %15 = tensor.empty(%2) : tensor<?x2x2xf32>
    %16 = linalg.fill ins(%14 : f32) outs(%15 : tensor<?x2x2xf32>) -> tensor<?x2x2xf32>
    %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%6, %11 : tensor<?x2x5xf32>, tensor<?x5x2xf32>) outs(%16 : tensor<?x2x2xf32>) {
    ^bb0(%18: f32, %19: f32, %20: f32):
      %21 = arith.mulf %18, %19 : f32
      %22 = arith.addf %20, %21 : f32
      linalg.yield %22 : f32
    } -> tensor<?x2x2xf32>
    %23 = tensor.empty(%2) : tensor<?x2x2xf32>
    %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17 : tensor<?x2x2xf32>) outs(%23 : tensor<?x2x2xf32>) {
    ^bb0(%25: f32, %26: f32):
      %27 = linalg.index 2 : index
      %28 = linalg.index 1 : index
      %29 = arith.subi %27, %28 : index
      %30 = arith.cmpi sle, %29, %1 : index
      %31 = arith.constant 0.000000e+00 : f32
      %32 = arith.select %30, %25, %31 : f32
      linalg.yield %32 : f32
    } -> tensor<?x2x2xf32>
    func.return %24 : tensor<?x2x2xf32>
  }
}
