"""
Expresses `linalg.softmax` in reductions and elementwise ops.

The four ops are over the same rows, so `irees-form-dispatch-regions` puts them into one
kernel again, and fuses it with what stands before and behind; a softmax that a model writes
out and one that it names are the same program.

    %r = linalg.softmax dimension(1) ins(%x : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>)
  =>
    %m = linalg.generic {maxnumf over d1} ins(%x) outs(NaN : tensor<4xf32>)
    %e = linalg.generic {exp(x - m)} ins(%x, %m) outs(tensor<4x8xf32>)
    %s = linalg.generic {addf over d1} ins(%e) outs(0 : tensor<4xf32>)
    %r = linalg.generic {e / s} ins(%e, %s) outs(%o)

That is `use-fusion=false`, which the pipeline takes, because a kernel keeps its row where it is
small. With `use-fusion` the powers are computed again where they are divided, so that nothing as
large as the row lies between the ops:

    %s = linalg.generic {addf(exp(x - m)) over d1} ins(%x, %m) outs(0 : tensor<4xf32>)
    %r = linalg.generic {exp(x - m) / s} ins(%x, %m, %s) outs(%o)

With `online` one pass over the row makes its maximum and its sum, which is rescaled as the maximum
grows, so that a row too large to keep is read twice, not three times; whatever `use-fusion` says:

    %m, %s = linalg.generic {M = maxnumf(x, m), s * exp(m - M) + exp(x - M), over d1} ins(%x)
                 outs(lowest, 0 : tensor<4xf32>)
    %r = linalg.generic {exp(x - m) / s} ins(%x, %m, %s) outs(%o)

It starts from the lowest number, for which a leading -infinity is a power of 0; a row of them is
0 / 0, NaN as without. A step takes two powers instead of one, rounds the sum once more where it
finds a larger number, and has no vector form, so the pipeline does not ask for it: compiled, rows
of half a megabyte take eight times as long.

The maximum starts from NaN, as IREE's does, or `from-infinity`, which the result does not show and
which makes a comparison out of each `maxnumf` (`expand-math`).

With `reciprocal` the last op is `e * (1 / s)`: one division per row instead of one per element, and
a rounding more. The pipeline asks for it unless `fp` is strict, as the sums of a softmax are in
another order then, too. ONNX Runtime does the same.

A producer of %x is not computed again, whatever it is: it may be a gather. f16 and bf16 are
computed in f32 and rounded once. A softmax of memrefs is left alone. MLIR:
`linalg::SoftmaxOp::decomposeOperation`; IREE: `iree-codegen-decompose-softmax`, which has no
`online`. Online: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
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
from irees.transforms.utils.softmax import LOWEST, online_softmax, softmax
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
            how = {"fused": self.use_fusion, "start": self.start, "reciprocal": self.reciprocal}
            result = softmax(op.input, over, sizes, op.output, builder, **how)
        rewriter.replace(op, [], [result])


@dataclass(frozen=True)
class DecomposeSoftmaxPass(ModulePass):
    """`linalg.softmax` becomes two reductions and two elementwise ops."""

    name = "irees-decompose-softmax"

    use_fusion: bool = True
    online: bool = False
    from_infinity: bool = False
    reciprocal: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        start = -float("inf") if self.from_infinity else -float("nan")
        pattern = DecomposeSoftmax(self.use_fusion, self.online, start, self.reciprocal)
        PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(op)
