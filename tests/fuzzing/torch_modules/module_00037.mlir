builtin.module {
  func.func @main(%0: tensor<?x2x8x8xf32>) -> tensor<?x2x8x8xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x2x8x8xf32>
    %3 = tensor.empty(%2) : tensor<?x2x8x8xf32>
    %4 = arith.constant 7 : index
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%3 : tensor<?x2x8x8xf32>) {
    ^bb0(%6: f32):
      %7 = linalg.index 0 : index
      %8 = linalg.index 1 : index
      %9 = linalg.index 2 : index
      %10 = linalg.index 3 : index
      %11 = arith.subi %4, %10 : index
      %12 = tensor.extract %0[%7, %8, %9, %11] : tensor<?x2x8x8xf32>
      linalg.yield %12 : f32
    } -> tensor<?x2x8x8xf32>
    func.return %5 : tensor<?x2x8x8xf32>
  }
}
