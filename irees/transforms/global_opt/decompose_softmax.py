"""
Decomposes `linalg.softmax` into reductions and elementwise ops.

The four ops iterate over the same rows, so `irees-form-tile-regions` fuses them into one
kernel, together with producers and consumers. A named softmax and one that a model spells out
compile to the same program.

    %r = linalg.softmax dimension(1) ins(%x : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>)
  =>
    %m = linalg.generic {maxnumf over d1} ins(%x) outs(NaN : tensor<4xf32>)
    %e = linalg.generic {exp(x - m)} ins(%x, %m) outs(tensor<4x8xf32>)
    %s = linalg.generic {addf over d1} ins(%e) outs(0 : tensor<4xf32>)
    %r = linalg.generic {e / s} ins(%e, %s) outs(%o)

This is `use-fusion=false`, which the pipeline uses: a kernel keeps a row in cache. With
`use-fusion` the division recomputes the exponentials, so no intermediate is as large as the row:

    %s = linalg.generic {addf(exp(x - m)) over d1} ins(%x, %m) outs(0 : tensor<4xf32>)
    %r = linalg.generic {exp(x - m) / s} ins(%x, %m, %s) outs(%o)

With `online` a single pass over the row computes the maximum and the sum, and rescales the sum when
the maximum grows. A row that does not fit in cache is then read twice instead of three times.
`online` ignores `use-fusion`:

    %m, %s = linalg.generic {M = maxnumf(x, m), s * exp(m - M) + exp(x - M), over d1} ins(%x)
                 outs(lowest, 0 : tensor<4xf32>)
    %r = linalg.generic {exp(x - m) / s} ins(%x, %m, %s) outs(%o)

The maximum starts from the lowest finite number, so that a leading -infinity adds 0 to the sum; a
row of -infinity gives 0 / 0 = NaN, as without `online`. A step computes two exponentials instead of
one and rounds once more when the maximum grows. The loop does not vectorize, so the pipeline does
not use `online`.

Without `online` the maximum starts from NaN like IREE's, or from -infinity with `from-infinity`.
The result is the same, and -infinity lets `expand-math` lower `maxnumf` to a plain comparison.

With `reciprocal` the last op is `e * (1 / s)`: one division per row instead of one per element, and
one more rounding. The pipeline uses it unless `fp` is strict, because other modes reorder the sums
of a softmax anyway. ONNX Runtime does the same.

The producer of %x is never recomputed: it may be a gather. f16 and bf16 are computed in f32 and
rounded once. A softmax of memrefs stays. MLIR: `linalg::SoftmaxOp::decomposeOperation`; IREE:
`iree-codegen-decompose-softmax`, which has no `online`. Online: Milakov and Gimelshein, "Online
normalizer calculation for softmax" (2018).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp, TensorType
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.utils.hints import isa

from irees.dialects.upstream.linalg.packing import SoftmaxOp
from irees.transforms.utils.shapes import dims
from irees.transforms.utils.softmax import LOWEST, Form, online_softmax, softmax
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import TensorBuilder, accumulator_type


@dataclass
class DecomposeSoftmax(RewritePattern):
    """softmax(x)  =>  exp(x - max(x)) / sum(exp(x - max(x)))"""

    use_fusion: bool
    online: bool
    start: float
    reciprocal: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SoftmaxOp, rewriter: PatternRewriter) -> None:
        if not isinstance(op.output.type, TensorType):
            return
        if not (isa(element_type(op.input), AnyFloat) and isa(element_type(op.output), AnyFloat)):
            return
        builder = TensorBuilder(op)
        sizes = dims(op.input, builder)
        over = [op.dimension.value.data]
        if self.online and accumulator_type(element_type(op.input)) in LOWEST:
            result = online_softmax(op.input, over, sizes, op.output, builder)
        else:
            form = Form(self.use_fusion, self.start, self.reciprocal)
            result = softmax(op.input, over, sizes, op.output, builder, form)
        rewriter.replace(op, [], [result])


@dataclass(frozen=True)
class DecomposeSoftmaxPass(ModulePass):
    """Decomposes `linalg.softmax` into two reductions and two elementwise ops."""

    name = "irees-decompose-softmax"

    use_fusion: bool = True
    online: bool = False
    from_infinity: bool = False
    reciprocal: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        start = -float("inf") if self.from_infinity else -float("nan")
        pattern = DecomposeSoftmax(self.use_fusion, self.online, start, self.reciprocal)
        PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)
