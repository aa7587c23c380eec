"""Which ops irees-form-tile-regions computes in one kernel, where a lit case would be long."""

from __future__ import annotations

import pytest
from xdsl.parser import Parser

from irees.dialects import get_context
from irees.dialects.flow import DispatchRegionOp
from irees.transforms.dispatch_creation.form_tile_regions import FormTileRegionsPass

PADDING = """
func.func @f(%x: tensor<4x4xf32>) -> RESULTS {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%p: f32, %q: f32):
    %v = math.exp %p : f32
    linalg.yield %v : f32
  } -> tensor<4x4xf32>
  %g = tensor.empty() : tensor<6x6xf32>
  %f = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
      outs(%g : tensor<6x6xf32>) {
  ^bb0(%q: f32):
    linalg.yield %zero : f32
  } -> tensor<6x6xf32>
  %r = tensor.insert_slice %y into %f[1, 1] [4, 4] STEPS : tensor<4x4xf32> into tensor<6x6xf32>
  return RETURNED
}
"""


@pytest.mark.parametrize(
    ("returned", "steps", "kernels"),
    [
        ("%r : tensor<6x6xf32>", "[1, 1]", 1),
        ("%r, %y : tensor<6x6xf32>, tensor<4x4xf32>", "[1, 1]", 1),
        ("%r : tensor<6x6xf32>", "[1, 0]", 2),
    ],
)
def test_padding_joins_what_it_pads(returned, steps, kernels):
    """A value that somebody else reads, too, is stored twice by one kernel."""
    text = PADDING.replace("RESULTS", f"({returned.split(' : ')[1]})")
    text = text.replace("RETURNED", returned).replace("STEPS", steps)
    maps = "#id = affine_map<(d0, d1) -> (d0, d1)>\n"
    module = Parser(get_context(), maps + text).parse_module()
    FormTileRegionsPass().apply(get_context(), module)
    module.verify()
    assert sum(isinstance(op, DispatchRegionOp) for op in module.walk()) == kernels


SIBLINGS = """
#row = affine_map<(d0, d1) -> (d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0) -> (d0)>
!m = tensor<32x8xf32>
!v = tensor<32xf32>
func.func @f(%x: !m, %y: !m, %z: !v) -> (!v, !v) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !v
  %none = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%e : !v) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> !v
  %a = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : !m) outs(%none : !v) {
  ^bb0(%p: f32, %o: f32):
    %v = arith.addf %p, %o : f32
    linalg.yield %v : f32
  } -> !v
  %last = arith.constant 31 : index
  %back = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%e : !v) {
  ^bb0(%o: f32):
    %n = linalg.index 0 : index
    %m = arith.subi %last, %n : index
    %v = tensor.extract %a[%m] : !v
    linalg.yield %v : f32
  } -> !v
  %b = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(SECOND : !m) outs(%none : !v) {
  ^bb0(%p: f32, %o: f32):
    %n = linalg.index 0 : index
    %m = arith.subi %last, %n : index
    %q = tensor.extract CENTRE[%m] : !v
    %d = arith.subf %p, %q : f32
    %v = arith.addf %d, %o : f32
    linalg.yield %v : f32
  } -> !v
  %r = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]}
      ins(%a, %b : !v, !v) outs(%e : !v) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %v = arith.mulf %p, %q : f32
    linalg.yield %v : f32
  } -> !v
  return %r, %back : !v, !v
}
"""


@pytest.mark.parametrize(
    ("second", "centre", "kernels"),
    [
        # Two sums over one tensor that one op reads, beside what reads the first from elsewhere.
        ("%x", "%z", 2),
        # Sums over two tensors have nothing to share.
        ("%y", "%z", 3),
        # The second sum waits for the first through a third kernel.
        ("%x", "%back", 3),
    ],
)
def test_sums_over_one_tensor_that_one_op_reads_are_one_kernel(second, centre, kernels):
    text = SIBLINGS.replace("SECOND", second).replace("CENTRE", centre)
    module = Parser(get_context(), text).parse_module()
    FormTileRegionsPass().apply(get_context(), module)
    module.verify()
    assert sum(isinstance(op, DispatchRegionOp) for op in module.walk()) == kernels
