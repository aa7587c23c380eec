"""
Converts f16 and bf16 arithmetic to f32 arithmetic with explicit widening and rounding.

Few CPUs have f16 arithmetic, and none has bf16 arithmetic: they widen, compute, and round. With
these casts in the IR, the arithmetic vectorizes like any other, and redundant roundings can be
removed.

    linalg.generic ins(%x, %y : bf16) outs(%e : bf16) {
      %0 = arith.addf %a, %b : bf16
      %1 = math.exp %0 : bf16
    }
  =>
      %0 = arith.addf (extf %a), (extf %b) : f32
      %1 = math.exp (extf (truncf %0)) : f32
      linalg.yield (truncf %1) : bf16

With `elide`, a value that is rounded to half and immediately widened again is not rounded, as in
other compilers for PyTorch; the pipeline sets it unless `fp` is strict. Without `elide`, results
are bit-identical: sums, products, quotients and square roots of halves, computed in f32 and rounded
to half, equal the half results (Figueroa, 1995), and functions of halves are defined this way.

The pass skips reductions into halves, whose sequence of roundings is part of their semantics
(`irees-widen-accumulators` changes it). MLIR: `arith-emulate-unsupported-floats`; IREE:
`ConvertBf16ArithToF32`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.irees_target import is_strict, target_of
from irees.rewrites import may_rewrite
from irees.transforms.utils.halves import HALVES, computes_halves, widen
from irees.transforms.utils.structured import element_type, is_parallel

NAME = "irees-widen-half-arith"


def elide_roundings(op: linalg.GenericOp) -> None:
    """extf(truncf(%x : f32))  =>  %x"""
    for inner in list(op.body.block.ops):
        if not isinstance(inner, arith.ExtFOp):
            continue
        rounded = inner.input.owner
        if isinstance(rounded, arith.TruncFOp) and rounded.input.type == inner.result.type:
            inner.result.replace_all_uses_with(rounded.input)
            Rewriter.erase_op(inner)
            if not rounded.result.uses:
                Rewriter.erase_op(rounded)


def reduces_halves(op: linalg.GenericOp) -> bool:
    """Whether an op is a reduction with f16 or bf16 accumulators."""
    return not is_parallel(op) and any(isinstance(element_type(o), HALVES) for o in op.outputs)


@dataclass(frozen=True)
class WidenHalfArithPass(ModulePass):
    """Converts f16 and bf16 arithmetic in bodies of structured ops to f32."""

    name = "irees-widen-half-arith"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None:
            return
        for generic in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            found = [inner for inner in generic.body.block.ops if computes_halves(inner)]
            if reduces_halves(generic) or not found:
                continue
            if not may_rewrite(NAME, generic, "arithmetic on halves"):
                continue
            for inner in found:
                widen(inner)
            if not is_strict(op):
                elide_roundings(generic)
