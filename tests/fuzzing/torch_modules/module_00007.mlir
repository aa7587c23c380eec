builtin.module {
  func.func @main(%0: tensor<3x5x?xf32>) -> tensor<3x5x2xf32> {
    %1 = arith.constant 2 : index
    %2 = tensor.dim %0, %1 : tensor<3x5x?xf32>
    %3 = arith.constant dense_resource<lifted_tensor_0> : tensor<2xi64>
    %4 = tensor.empty() : tensor<3x5x2xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<2xi64>) outs(%4 : tensor<3x5x2xf32>) {
    ^bb0(%6: i64, %7: f32):
      %8 = arith.index_cast %6 : i64 to index
      %9 = arith.constant 0 : index
      %10 = arith.cmpi slt, %8, %9 : index
      %11 = arith.addi %8, %2 : index
      %12 = arith.select %10, %11, %8 : index
      %13 = arith.constant 1 : index
      %14 = arith.subi %2, %13 : index
      %15 = arith.maxsi %12, %9 : index
      %16 = arith.minsi %15, %14 : index
      %17 = linalg.index 0 : index
      %18 = linalg.index 1 : index
      %19 = tensor.extract %0[%17, %18, %16] : tensor<3x5x?xf32>
      linalg.yield %19 : f32
    } -> tensor<3x5x2xf32>
    func.return %5 : tensor<3x5x2xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      lifted_tensor_0: "0x4000000001000000000000000000000000000000"
    }
  }
#-}
