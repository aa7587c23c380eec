// A bias, a ReLU and the sum of each row, with any number of rows. docs/tour.md follows it through the compiler.
#all = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<?x64xf32>, %bias: tensor<64xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x64xf32>
  %matrix = tensor.empty(%rows) : tensor<?x64xf32>
  %wide = linalg.broadcast ins(%bias : tensor<64xf32>) outs(%matrix : tensor<?x64xf32>) dimensions = [0]
  %sum = linalg.add ins(%x, %wide : tensor<?x64xf32>, tensor<?x64xf32>) outs(%matrix : tensor<?x64xf32>) -> tensor<?x64xf32>
  %relu = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<?x64xf32>) outs(%matrix : tensor<?x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.maximumf %in, %zero : f32
    linalg.yield %0 : f32
  } -> tensor<?x64xf32>
  %column = tensor.empty(%rows) : tensor<?xf32>
  %start = linalg.fill ins(%zero : f32) outs(%column : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%relu : tensor<?x64xf32>) outs(%start : tensor<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
