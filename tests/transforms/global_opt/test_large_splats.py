"""A splat is one number, however many places there are: passes make no array of its size."""

from irees.dialects import get_context
from irees.frontends.mlir.importer import import_mlir
from irees.transforms.global_opt.fold_constants import FoldConstantsPass
from irees.transforms.global_opt.store_narrow_types import StoreNarrowTypesPass


def test_a_product_of_zeros_and_a_large_splat_is_folded():
    module = import_mlir("""
func.func @main() -> tensor<2x1000000xf32> {
  %zero = arith.constant 0.0 : f32
  %x = arith.constant dense<0.0> : tensor<2x1000000xf32>
  %w = arith.constant dense<0.5> : tensor<1000000x1000000xf32>
  %e = tensor.empty() : tensor<2x1000000xf32>
  %f = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%zero : f32) outs(%e : tensor<2x1000000xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x1000000xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
                       affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x1000000xf32>, tensor<1000000x1000000xf32>)
      outs(%f : tensor<2x1000000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x1000000xf32>
  return %r : tensor<2x1000000xf32>
}
""")
    FoldConstantsPass().apply(get_context(), module)
    assert "arith.mulf" not in str(module)


def test_a_large_splat_of_a_narrow_type_stays_one_number():
    module = import_mlir("""
func.func private @f() -> tensor<1000000x1000000xi4> {
  %c = arith.constant dense<-3> : tensor<1000000x1000000xi4>
  return %c : tensor<1000000x1000000xi4>
}
""")
    StoreNarrowTypesPass().apply(get_context(), module)
    assert "arith.constant dense<-3> : tensor<1000000x1000000xi8>" in str(module)
