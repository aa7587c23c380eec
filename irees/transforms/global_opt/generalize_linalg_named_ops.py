"""
Converts named linalg ops to `linalg.generic`.

Later passes handle one structured op only. The generic form keeps the properties of the named op: a
matmul is a generic with two parallel loops, one reduction loop and a multiply-add body, and
strategy selection matches that. IREE generalizes late and only some ops
(`GeneralizeLinalgNamedOps`). irees generalizes all ops early, so no strategy depends on an op name.

    %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x16xf32>)
                       outs(%c : tensor<4x16xf32>) -> tensor<4x16xf32>
  =>
    %r = linalg.generic {indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (k, n),
                         (m, n, k) -> (m, n)],
                         iterator_types = ["parallel", "parallel", "reduction"]} ...

Ops that are not structured (softmax, pack, winograd, ...) stay.
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
    """Converts named structured ops to `linalg.generic`."""

    name = "irees-generalize-linalg-named-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, Structured) and not isinstance(inner, linalg.GenericOp):
                new = generalize(inner)
                Rewriter.insert_op(new, InsertPoint.before(inner))
                Rewriter.replace_op(inner, [], new.results)
