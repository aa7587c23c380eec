builtin.module {
  func.func @main(%0: tensor<?x4x8x8xf32>) -> tensor<?x4x8xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x4x8x8xf32>
    %3 = tensor.empty(%2) : tensor<?x4x8x8xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%0 : tensor<?x4x8x8xf32>) outs(%3 : tensor<?x4x8x8xf32>) {
    ^bb0(%5: f32, %6: f32):
      %7 = math.exp %5 : f32
      linalg.yield %7 : f32
    } -> tensor<?x4x8x8xf32>
    %8 = tensor.empty(%2) : tensor<?x4x8x8xf32>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<?x4x8x8xf32>) outs(%8 : tensor<?x4x8x8xf32>) {
    ^bb0(%10: f32, %11: f32):
      %12 = linalg.index 3 : index
      %13 = linalg.index 2 : index
      %14 = arith.subi %12, %13 : index
      %15 = arith.cmpi sle, %14, %1 : index
      %16 = arith.constant 0.000000e+00 : f32
      %17 = arith.select %15, %10, %16 : f32
      linalg.yield %17 : f32
    } -> tensor<?x4x8x8xf32>
    %18 = arith.constant 0xff800000 : f32
    %19 = tensor.empty(%2) : tensor<?x4x8xf32>
    %20 = linalg.fill ins(%18 : f32) outs(%19 : tensor<?x4x8xf32>) -> tensor<?x4x8xf32>
    %21 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>], iterator_types = ["parallel", "parallel", "reduction", "parallel"]} ins(%9 : tensor<?x4x8x8xf32>) outs(%20 : tensor<?x4x8xf32>) {
    ^bb0(%22: f32, %23: f32):
      %24 = arith.maximumf %23, %22 : f32
      linalg.yield %24 : f32
    } -> tensor<?x4x8xf32>
    func.return %21 : tensor<?x4x8xf32>
  }
}
