"""
Lets contractions and attentions read the source of a transposed operand, by another map.

    %t = linalg.generic {(d0, d1) -> (d1, d0), (d0, d1) -> (d0, d1)} ins(%w) { yield }
    %r = linalg.generic {(m, n, k) -> (m, k), (m, n, k) -> (k, n), ..} ins(%x, %t) { multiply, add }
  =>
    %r = linalg.generic {(m, n, k) -> (m, k), (m, n, k) -> (n, k), ..} ins(%x, %w) { multiply, add }

These ops read operands of any layout equally well: code generation packs them. Arithmetic does not:
it is slow if it writes another layout than it reads. So the pass runs before reshapes sink and
elementwise ops fuse, which would merge the transpose with the arithmetic before it, such as the
dequantization of `x @ (w * scale).T`. IREE: `iree-global-opt-propagate-linalg-transpose`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.analysis.contractions import is_contraction
from irees.interfaces import domain_of, loops_model_of, outputs_of
from irees.rewrites import may_rewrite
from irees.transforms.utils.reshapes import permutes
from irees.transforms.utils.structured import copied_input, maps

NAME = "irees-fold-transposes"


def indexed(op: Operation) -> bool:
    """Whether the indexing maps that an op has are those of its loops."""
    attr, domain = op.properties.get("indexing_maps"), domain_of(op)
    if domain is None or not isinstance(attr, ArrayAttr):
        return False
    own = [m.data if isinstance(m, AffineMapAttr) else None for m in attr]
    return all(m is None or m == mine for m, mine in zip(domain.maps, own, strict=True))


def take_sources(op: Operation) -> None:
    """op(transpose(x))  =>  op(x) with another map"""
    for position in range(len(op.operands) - len(outputs_of(op))):
        producer = op.operands[position].owner
        if not isinstance(producer, linalg.GenericOp) or len(producer.results) != 1:
            continue
        if (copied := copied_input(producer)) is None:
            continue
        source, result = maps(producer)[copied], maps(producer)[-1]
        inverse = result.inverse_permutation()
        if inverse is None or not (permutes(source) and permutes(result)):
            continue
        if len(source.results) != len(result.results):
            continue
        if not may_rewrite(NAME, op, "source of a transposed operand"):
            continue
        attr = op.properties["indexing_maps"]
        assert isinstance(attr, ArrayAttr)
        found = [m.data for m in attr]
        found[position] = source.compose(inverse.compose(found[position]))
        op.properties["indexing_maps"] = ArrayAttr(AffineMapAttr(m) for m in found)
        op.operands[position] = producer.inputs[copied]
        if not producer.results[0].uses:
            Rewriter.erase_op(producer)


@dataclass(frozen=True)
class FoldTransposesPass(ModulePass):
    """Folds transposes into the contractions and attentions that read them."""

    name = "irees-fold-transposes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, linalg.GenericOp):
                reads_any_layout = is_contraction(inner)
            else:
                reads_any_layout = loops_model_of(inner) is not None and indexed(inner)
            if reads_any_layout:
                take_sources(inner)
