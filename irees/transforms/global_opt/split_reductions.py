"""
Splits a long reduction into slices that run in parallel, and reduces their partial results.

A GPU needs hundreds of workgroups for full occupancy. An op with few results and a long reduction
(the sum of an image, a tall-skinny matrix product) has one or two. After the split, each slice has
a partial result, and a second op reduces the partial results. The pass runs before dispatches are
formed, because both ops become kernels.

    %s = linalg.generic ins(%x : tensor<1048576xf32>) outs(%o : tensor<f32>) { addf }
  =>
    %y = tensor.expand_shape %x [[0, 1]] : tensor<64x16384xf32>
    %p = linalg.generic ins(%y) outs(%zeros : tensor<64xf32>) { addf }    // reduces the second loop
    %s = linalg.generic ins(%p) outs(%o : tensor<f32>) { addf }

The order of the sum changes, so the pass does not run with `fp=strict`. It skips ops with enough
workgroups, short or dynamic reductions, operands that are not indexed by the plain loop (a window),
and bodies that read a loop index or whose combiner is unknown. IREE:
`iree-dispatch-creation-split-reduction-ops`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.analysis.contractions import is_contraction
from irees.dialects.irees_target import is_strict, target_of
from irees.rewrites import may_rewrite
from irees.targets.nvidia import NVIDIA
from irees.transforms.global_opt.utils.slices import cut
from irees.transforms.utils.combiners import combine, combiners, neutral_element
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.structured import element_type, iterators, maps, static_ranges
from irees.transforms.utils.tensors import TensorBuilder, is_static


def slices_of(op: linalg.GenericOp, workgroups: int) -> tuple[int, int] | None:
    """Returns the loop to split and the number of slices, or None."""
    kinds, sizes = iterators(op), static_ranges(op)
    reductions = [i for i, kind in enumerate(kinds) if kind == "reduction"]
    if not reductions or not all(is_static(v) for v in op.operands):
        return None
    results = prod(s for s, k in zip(sizes, kinds, strict=True) if k != "reduction")
    length = prod(sizes[i] for i in reductions)
    have = -(-results // (NVIDIA.block_results if is_contraction(op) else 1))
    most = min(workgroups // max(1, have), length // NVIDIA.least_slice)
    if most < NVIDIA.least_slices:
        return None
    for loop in reductions:
        for count in range(min(most, sizes[loop]), NVIDIA.least_slices - 1, -1):
            if sizes[loop] % count == 0:
                return loop, count
    return None


def is_plain(op: linalg.GenericOp, loop: int) -> bool:
    """Whether every input indexes at most one dim by the loop, as a plain index."""
    for indexing in maps(op)[: len(op.inputs)]:
        moving = [e for e in indexing.results if loop in e.used_dims()]
        if len(moving) > 1 or not all(isinstance(e, AffineDimExpr) for e in moving):
            return False
    return not any(isinstance(inner, linalg.IndexOp) for inner in op.walk())


def split(op: linalg.GenericOp, loop: int, count: int, folds: list[Operation]) -> None:
    """reduce(x)  =>  reduce(reduce of each slice of x)"""
    b, block = TensorBuilder(op), op.body.block

    def moved(expr: AffineExpr) -> list[AffineExpr]:
        if isinstance(expr, AffineDimExpr) and expr.position == loop:
            return [AffineDimExpr(0), AffineDimExpr(loop + 1)]
        loops = [AffineDimExpr(d + 1) for d in range(len(op.iterator_types))]
        return [expr.replace_dims_and_symbols(loops, [])]

    rank = len(op.iterator_types) + 1
    inputs: list[SSAValue] = []
    indexing: list[AffineMap] = []
    for value, own in zip(op.operands, maps(op), strict=True):
        exprs = tuple(e for r in own.results for e in moved(r))
        if len(inputs) < len(op.inputs):
            axes = [i for i, e in enumerate(own.results) if loop in e.used_dims()]
            inputs.append(cut(value, axes[0], count, b) if axes else value)
            indexing.append(AffineMap(rank, 0, exprs))
        else:
            indexing.append(AffineMap(rank, 0, (AffineDimExpr(0), *exprs)))
    inits: list[SSAValue] = []
    for output, fold in zip(op.outputs, folds, strict=True):
        assert isinstance(output.type, TensorType)
        init = b.empty(element_type(output), [count, *output.type.get_shape()])
        identity = AffineMap.identity(output.type.get_num_dims() + 1)
        neutral = neutral_element(fold)
        inits += b.compute([], [init], [identity], lambda s, v, n=neutral: [s.insert(n).results[0]])
    partial = b.compute(inputs, inits, indexing, lambda s, v: inline_region(block, v, s))
    results: list[SSAValue] = []
    for part, output, fold in zip(partial, op.outputs, folds, strict=True):
        assert isinstance(output.type, TensorType)
        own = output.type.get_num_dims()
        plain = [AffineDimExpr(d) for d in range(own)]
        sides = (AffineDimExpr(own), *plain), tuple(plain)
        results += b.compute(
            [part],
            [output],
            [AffineMap(own + 1, 0, side) for side in sides],
            lambda s, v, f=fold: [s.insert(combine(f, v[1], v[0])).results[0]],
        )
    Rewriter.replace_op(op, [], results)


@dataclass(frozen=True)
class SplitReductionsPass(ModulePass):
    """Splits long reductions with few results into parallel slices."""

    name = "irees-split-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = target_of(op).gpu
        if gpu is None or is_strict(op):
            return
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            found = slices_of(inner, gpu.multiprocessors)
            folds = combiners(inner)
            if found is None or folds is None or not is_plain(inner, found[0]):
                continue
            if not may_rewrite(self.name, inner, f"in {found[1]} slices"):
                return
            split(inner, *found, folds)
