builtin.module {
  func.func @main(%0: tensor<?x4x4x4xf32>) -> tensor<?x4x8xf32> {
    %1 = arith.constant 0 : index
    %2 = tensor.dim %0, %1 : tensor<?x4x4x4xf32>
    %3 = arith.constant dense_resource<lifted_tensor_0> : tensor<2xi64>
    %4 = tensor.empty(%2) : tensor<?x4x4x2xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<2xi64>) outs(%4 : tensor<?x4x4x2xf32>) {
    ^bb0(%6: i64, %7: f32):
      %8 = arith.index_cast %6 : i64 to index
      %9 = arith.constant 0 : index
      %10 = arith.cmpi slt, %8, %9 : index
      %11 = arith.constant 4 : index
      %12 = arith.addi %8, %11 : index
      %13 = arith.select %10, %12, %8 : index
      %14 = arith.constant 1 : index
      %15 = arith.subi %11, %14 : index
      %16 = arith.maxsi %13, %9 : index
      %17 = arith.minsi %16, %15 : index
      %18 = linalg.index 0 : index
      %19 = linalg.index 1 : index
      %20 = linalg.index 2 : index
      %21 = tensor.extract %0[%18, %19, %20, %17] : tensor<?x4x4x4xf32>
      linalg.yield %21 : f32
    } -> tensor<?x4x4x2xf32>
    %22 = tensor.collapse_shape %5 [[0 : i64], [1 : i64], [2 : i64, 3 : i64]] : tensor<?x4x4x2xf32> into tensor<?x4x8xf32>
    func.return %22 : tensor<?x4x8xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      lifted_tensor_0: "0x4000000001000000000000000000000000000000"
    }
  }
#-}
