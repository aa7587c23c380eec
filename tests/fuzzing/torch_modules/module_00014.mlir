builtin.module {
  func.func @main(%0: tensor<?x8xf32>) -> tensor<?xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x8xf32>
    %3 = arith.constant 8 : index
    %4 = arith.muli %3, %2 : index
    %5 = tensor.collapse_shape %0 [[0 : i64, 1 : i64]] : tensor<?x8xf32> into tensor<?xf32>
    %6 = arith.constant 16 : index
    %7 = arith.muli %6, %2 : index
    %8 = arith.addi %4, %4 : index
    %9 = tensor.concat dim(0) %5, %5 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    func.return %9 : tensor<?xf32>
  }
}
