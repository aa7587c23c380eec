"""
Turns named linalg ops into `linalg.generic`.

Everything after this pass knows one structured op. What a named op promised is still
there to be read: a matmul is a generic with two parallel loops, one reduction loop and
a multiply-add body, and that is what strategy selection looks for. IREE does this late
and only for some ops (`GeneralizeLinalgNamedOps`); doing it once, early and for all
means that a strategy is never tied to a name.

    %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x16xf32>)
                       outs(%c : tensor<4x16xf32>) -> tensor<4x16xf32>
  =>
    %r = linalg.generic {indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (k, n),
                         (m, n, k) -> (m, n)],
                         iterator_types = ["parallel", "parallel", "reduction"]} ...

Ops that are not structured (softmax, pack, winograd, ...) are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.transforms.utils.structured import Structured, generic, iterators, maps


def generalize(op: Structured) -> linalg.GenericOp:
    """linalg.<named>(ins, outs)  =>  linalg.generic with the op's own maps and body"""
    kinds = ["reduction" if kind == "window" else kind for kind in iterators(op)]
    result = generic(op.inputs, op.outputs, maps(op), kinds, op.body.clone())
    result.location = op.location
    return result


@dataclass(frozen=True)
class GeneralizeLinalgNamedOpsPass(ModulePass):
    """Named structured ops become `linalg.generic`."""

    name = "irees-generalize-linalg-named-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, Structured) and not isinstance(inner, linalg.GenericOp):
                new = generalize(inner)
                Rewriter.insert_op(new, InsertPoint.before(inner))
                Rewriter.replace_op(inner, [], new.results)
