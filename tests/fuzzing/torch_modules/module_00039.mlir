builtin.module {
  func.func @main(%0: tensor<?x5xf32>) -> tensor<?x2xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x5xf32>
    %3 = tensor.empty(%2) : tensor<?x2xf32>
    %4 = tensor.empty(%2) : tensor<?x2xi64>
    %5, %6 = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%0 : tensor<?x5xf32>) outs(%3, %4 : tensor<?x2xf32>, tensor<?x2xi64>) {
    ^bb0(%7: f32, %8: f32):
      %9 = arith.cmpf ogt, %7, %8 : f32
      iree_linalg_ext.yield %9 : i1
    } -> tensor<?x2xf32>, tensor<?x2xi64>
    func.return %5 : tensor<?x2xf32>
  }
}
