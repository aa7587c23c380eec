"""
Decomposes exp_reduction into a maximum, two exponentials and a generic.

    %m, %s = iree_linalg_ext.exp_reduction {exp_reduced_operands = [1]} ins(%x) outs(%m0, %s0) {
    ^bb0(%p: f32, %max: f32, %sum: f32):
      %add = arith.addf %p, %sum
      iree_linalg_ext.yield %max, %add }
  =>
    %m = linalg.generic {maximumf} ins(%x) outs(%m0)
    %p = linalg.generic {exp2(x - m)} ins(%x, %m)
    %f = linalg.generic {exp2(m0 - m)} ins(%m0, %m)
    %t = linalg.generic {s0 * f} ins(%s0, %f)
    %s = linalg.generic {addf} ins(%p) outs(%t)

The first input is the score and the first out its running maximum. The outs listed in
`exp_reduced_operands` are sums of exp2(score - maximum); they are rescaled when the maximum grows.
The last generic omits the maximum if the body yields it unchanged, which is the normal case.
The pass keeps an op whose first out has loops that the score or a listed out lacks, and a body that
reads a loop index. IREE: `ExpReductionOp::decomposeOperation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.utils.hints import isa

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees import KeepOp
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import dims
from irees.transforms.utils.softmax import rescaling
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import ScalarBuilder, TensorBuilder, select_dims


def within(own: AffineMap, loops: Sequence[int]) -> AffineMap:
    """Returns the map restricted to `loops`."""
    return select_dims(len(loops), [loops.index(d) for d in loops_of(own)])


def loops_of(indexing: AffineMap) -> list[int]:
    """Returns the loops of a projected permutation, in the order of its results."""
    return [e.position for e in indexing.results if isinstance(e, AffineDimExpr)]


def applied(
    first: SSAValue, second: SSAValue, maps: tuple[AffineMap, AffineMap], kind: str,
    b: TensorBuilder,
) -> SSAValue:  # fmt: skip
    """Combines `first` elementwise with `second`, broadcast along loops that its map lacks."""

    def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
        second = s.cast(v[1], v[0].type)
        match kind:
            case "power":
                return [s.op(math.Exp2Op, s.op(arith.SubfOp, v[0], second))]
            case "factor":
                return [rescaling(v[0], second, s, math.Exp2Op)]
            case _:
                return [s.op(arith.MulfOp, v[0], second)]

    loops = loops_of(maps[0])
    own, other = (within(m, loops) for m in maps)
    init = b.empty(element_type(first), dims(first, b))
    return b.compute([first, second], [init], [own, other, own], body)[0]


def has_generics(op: ext.ExpReductionOp, scaled: Sequence[int]) -> bool:
    """
    Whether generics compute an exp_reduction: of floats, whose rows all have the loops of the
    maximum, by a region that reads no loop index. `scaled` numbers the results to scale.
    """
    maps, count = [m.data for m in op.indexing_maps], len(op.inputs)
    floats = [op.inputs[0], op.outputs[0], *(op.outputs[i] for i in scaled)]
    if not all(isa(element_type(v), AnyFloat) for v in floats):
        return False
    wanted = {*loops_of(maps[count])}
    if not all(wanted <= {*loops_of(m)} for m in (maps[0], *(maps[count + i] for i in scaled))):
        return False
    return not any(isinstance(o, ext.IndexOp) for o in op.walk())


class DecomposeExpReduction(RewritePattern):
    """exp_reduction(x, m, s)  =>  generic(exp2(x - M), s * exp2(m - M)), M = max(m, max(x))"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.ExpReductionOp, rewriter: PatternRewriter) -> None:
        count = len(op.inputs)
        maps = [m.data for m in op.indexing_maps]
        scaled = list(op.exp_reduced_operands.get_values())
        if not has_generics(op, scaled):
            return
        score, most = maps[0], maps[count]
        b, loops, wide = TensorBuilder(op), loops_of(score), element_type(op.outputs[0])
        (largest,) = b.compute(
            [op.inputs[0]],
            [op.outputs[0]],
            [within(score, loops), within(most, loops)],
            lambda s, v: [s.op(arith.MaximumfOp, s.cast(v[0], wide), v[1])],
        )
        powers = applied(op.inputs[0], largest, (score, most), "power", b)
        factor = applied(op.outputs[0], largest, (most, most), "factor", b)
        outs = [largest, *op.outputs[1:]]
        for number in scaled:
            pair = maps[count + number], most
            outs[number] = applied(op.outputs[number], factor, pair, "product", b)
        block = op.body.block
        last = block.last_op
        assert last is not None
        passes = last.operands[0] is block.args[count] and len(outs) > 1

        def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
            values = inline_region(block, v, s)
            for number, old in enumerate(v[count:]):
                # A row of nothing keeps the old value, also if the region leaves it out.
                if not block.args[count + number].uses:
                    values[number] = s.insert(KeepOp(values[number], old)).results[0]
            return values[1:] if passes else values

        inputs = [powers, *op.inputs[1:], *(outs[:1] if passes else [])]
        results = b.compute(inputs, outs[1:] if passes else outs, maps, body)
        rewriter.replace(op, [], [*([largest] if passes else []), *results])


@dataclass(frozen=True)
class DecomposeExpReductionPass(ModulePass):
    """Decomposes exp_reduction into generics."""

    name = "irees-decompose-exp-reduction"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(DecomposeExpReduction(), apply_recursively=False).rewrite_module(op)
