"""What a kernel reads that nothing has written."""

import numpy as np

import irees

EXTRACT_OF_EMPTY = """
func.func @main() -> tensor<0xf32> {
  %e = tensor.empty() : tensor<1x0xf32>
  %f = tensor.empty() : tensor<0xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } outs(%f : tensor<0xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %c = arith.constant 0 : index
    %v = tensor.extract %e[%c, %i] : tensor<1x0xf32>
    linalg.yield %v : f32
  } -> tensor<0xf32>
  return %r : tensor<0xf32>
}
"""


def test_elements_of_a_tensor_without_any():
    """The diagonal of an empty matrix: the body reads a `tensor.empty` that has no buffer."""
    assert np.asarray(irees.compile(EXTRACT_OF_EMPTY)()).shape == (0,)
