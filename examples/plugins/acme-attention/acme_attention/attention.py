"""
`local.attention`: each query attends to a window of keys, with a bias per place in the window.

    score[b, m, w] = bias[w] + sum over d of q[b, m, d] * k[b, m + w, d]
    out[b, m, e] = sum over w of softmax(score)[b, m, w] * v[b, m + w, e]

The keys have as many rows more than the queries as the window has, less one: a caller pads them in
front, or behind, or both. A bias of minus infinity hides a key. The scale is a part of q.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, MemRefType, TensorType, f32
from xdsl.ir import Dialect, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    AnyOf,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    traits_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from irees.building import (
    DestinationStyleEffects,
    Domain,
    IndexBuilder,
    buffer_dim,
    constant,
    for_loop,
    load,
    rank_of,
    rows,
    store,
)

FLOATS = AnyOf([TensorType.constr(Float32Type()), MemRefType.constr(Float32Type())])


@irdl_op_definition
class AttentionOp(IRDLOperation):
    """%y = local.attention %q, %k, %v by %bias into %init : ... -> tensor<2x?x8xf32>"""

    name = "local.attention"
    q = operand_def(FLOATS)
    k = operand_def(FLOATS)
    v = operand_def(FLOATS)
    bias = operand_def(FLOATS)
    init = operand_def(FLOATS)
    result = var_result_def(TensorType)
    traits = traits_def(DestinationStyleEffects())
    assembly_format = (
        "$q `,` $k `,` $v `by` $bias `into` $init attr-dict `:` type($q) `,` type($k) `,` type($v) "
        "`,` type($bias) `,` type($init) (`->` type($result)^)?"
    )
    outputs = property(lambda self: (self.init,))

    def verify_(self) -> None:
        if [rank_of(x) for x in self.operands] != [3, 3, 3, 1, 3]:
            raise VerifyException("q, k, v and the output have three dims, the bias has one")


class Attention:
    """How the op is lowered, and what it means."""

    @staticmethod
    def domain(op: AttentionOp) -> Domain:
        kinds = ("parallel", "parallel", "reduction", "reduction", "parallel")
        maps = [
            lambda b, m, w, d, e: (b, m, d),
            lambda b, m, w, d, e: (b, m + w, d),
            lambda b, m, w, d, e: (b, m + w, e),
            lambda b, m, w, d, e: (w,),
            lambda b, m, w, d, e: (b, m, e),
        ]
        return Domain(kinds, tuple(map(AffineMap.from_callable, maps)))

    @staticmethod
    def to_loops(op: AttentionOp, builder: IndexBuilder) -> None:
        """Online softmax: the output is scaled down whenever a larger score comes."""

        def query(ivs: dict[int, Any], b: IndexBuilder) -> None:
            zero, lowest = (b.insert(constant(x, f32)).result for x in (0.0, -np.inf))
            at, m = ivs[0], ivs[1]
            columns = buffer_dim(op.init, 2, b)
            clear, e, c = for_loop(b, 0, columns, 1)
            store(zero, op.init, [at, m, e], c)
            clear([])
            loop, w, c = for_loop(b, 0, buffer_dim(op.bias, 0, b), 1, [lowest, zero])
            largest, total = loop.arguments
            key = c.add(m, w)
            score = _score(op, at, m, key, load(op.bias, [w], c), c)
            most = c.insert(arith.MaximumfOp(largest, score)).result
            # While all keys are hidden, the largest score is minus infinity.
            hidden = c.insert(arith.CmpfOp(most, lowest, "oeq")).result
            base = c.insert(arith.SelectOp(hidden, zero, most)).result
            shrink, weight = (
                c.insert(math.ExpOp(c.insert(arith.SubfOp(x, base)).result)).result
                for x in (largest, score)
            )
            add, e, d = for_loop(c, 0, columns, 1)
            old = d.insert(arith.MulfOp(load(op.init, [at, m, e], d), shrink)).result
            new = d.insert(arith.MulfOp(load(op.v, [at, key, e], d), weight)).result
            store(d.insert(arith.AddfOp(old, new)).result, op.init, [at, m, e], d)
            add([])
            kept = c.insert(arith.MulfOp(total, shrink)).result
            _, total = loop([most, c.insert(arith.AddfOp(kept, weight)).result])
            divide, e, d = for_loop(b, 0, columns, 1)
            value = d.insert(arith.DivfOp(load(op.init, [at, m, e], d), total)).result
            store(value, op.init, [at, m, e], d)
            divide([])

        rows(op.init, [0, 1], builder, query)

    @staticmethod
    def flops(op: AttentionOp, points: int) -> int:
        return 2 * points

    @staticmethod
    def evaluate(op: AttentionOp, q: Any, k: Any, v: Any, bias: Any, init: Any) -> Sequence[Any]:
        windows = [
            np.lib.stride_tricks.sliding_window_view(x, len(bias), axis=1)[:, : q.shape[1]]
            for x in (k, v)
        ]
        with np.errstate(invalid="ignore"):
            scores = np.einsum("bmd,bmdw->bmw", q, windows[0]) + bias
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            shares = weights / weights.sum(-1, keepdims=True)
        return [np.einsum("bmw,bmew->bme", shares, windows[1]).astype(q.dtype)]


def _score(
    op: AttentionOp, at: SSAValue, m: SSAValue, key: Any, bias: SSAValue, b: IndexBuilder
) -> SSAValue:
    """bias + sum over d of q[at, m, d] * k[at, key, d]"""
    loop, d, c = for_loop(b, 0, buffer_dim(op.q, 2, b), 1, [bias])
    product = arith.MulfOp(load(op.q, [at, m, d], c), load(op.k, [at, key, d], c))
    return loop([c.insert(arith.AddfOp(loop.arguments[0], c.insert(product).result)).result])[0]


Local = Dialect("local", [AttentionOp])
