builtin.module {
  func.func @main(%0: tensor<8x8xf32>) -> tensor<8x9xf32> {
    %1 = tensor.extract_slice %0[0, 1] [8, 7] [1, 1] : tensor<8x8xf32> to tensor<8x7xf32>
    %2 = arith.constant 1.000000e+00 : f32
    %3 = arith.constant 0 : index
    %4 = tensor.pad %1 low[0, 1] high[0, 1] {
    ^bb0(%5: index, %6: index):
      tensor.yield %2 : f32
    } : tensor<8x7xf32> to tensor<8x9xf32>
    func.return %4 : tensor<8x9xf32>
  }
}
