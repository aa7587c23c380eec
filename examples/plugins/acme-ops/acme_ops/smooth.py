"""
`acme.smooth`: exponential smoothing along one dim, an op with loops of its own.

    y[0] = x[0]        y[i] = y[i-1] + factor * (x[i] - y[i-1])
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, MemRefType, TensorType, i64
from xdsl.irdl import (
    AnyOf,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    traits_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from irees.building import (
    DestinationStyleEffects,
    Domain,
    IndexBuilder,
    buffer_dim,
    for_loop,
    identity_map,
    if_else,
    load,
    other_dims,
    place,
    rank_of,
    rows,
    store,
)

FLOATS = AnyOf([TensorType.constr(AnyFloat), MemRefType.constr(AnyFloat)])


@irdl_op_definition
class SmoothOp(IRDLOperation):
    """%y = acme.smooth %x by %factor into %init along 1 : f32, tensor<?x4xf32> -> tensor<?x4xf32>"""

    name = "acme.smooth"
    x = operand_def(VarConstraint("X", FLOATS))
    factor = operand_def(AnyFloat)
    init = operand_def(FLOATS)
    result = var_result_def(TensorType)
    dimension = prop_def(IntegerAttr.constr(i64))
    traits = traits_def(DestinationStyleEffects())
    assembly_format = (
        "$x `by` $factor `into` $init `along` $dimension attr-dict `:` "
        "type($x) `,` type($factor) `,` type($init) (`->` type($result)^)?"
    )
    outputs = property(lambda self: (self.init,))

    def verify_(self) -> None:
        kinds = {self.x.type.element_type, self.init.type.element_type, self.factor.type}
        if len(kinds) > 1 or rank_of(self.x) != rank_of(self.init):
            raise VerifyException("input, factor and output must have one element type and rank")
        if not 0 <= self.dimension.value.data < rank_of(self.x):
            raise VerifyException("there is no such dimension")


class Smooth:
    """How the op is lowered, and what it means."""

    @staticmethod
    def domain(op: SmoothOp) -> Domain:
        along = op.dimension.value.data
        kinds = ("reduction" if d == along else "parallel" for d in range(rank_of(op.x)))
        return Domain(tuple(kinds), (identity_map(op.x), None, identity_map(op.init)))

    @staticmethod
    def to_loops(op: SmoothOp, builder: IndexBuilder) -> None:
        along = op.dimension.value.data

        def row(ivs: Any, b: IndexBuilder) -> None:
            size = buffer_dim(op.x, along, b)
            some = b.insert(arith.CmpiOp(b.value(0), b.value(size), "slt")).result
            close, c = if_else(b, some)
            first = load(op.x, place(ivs, along, 0), c)
            loop, i, d = for_loop(c, 0, size, 1, [first])
            last = loop.arguments[0]
            change = d.insert(arith.SubfOp(load(op.x, place(ivs, along, i), d), last)).result
            step = d.insert(arith.MulfOp(op.factor, change)).result
            value = d.insert(arith.AddfOp(last, step)).result
            store(value, op.init, place(ivs, along, i), d)
            loop([value])
            close()

        rows(op.x, other_dims(op.x, along), builder, row)

    @staticmethod
    def flops(op: SmoothOp, points: int) -> int:
        return 3 * points

    @staticmethod
    def evaluate(op: SmoothOp, x: Any, factor: Any, init: Any) -> Sequence[Any]:
        along = op.dimension.value.data
        y = np.moveaxis(x.copy(), along, 0)
        for i in range(1, len(y)):
            y[i] = y[i - 1] + factor * (y[i] - y[i - 1])
        return [np.moveaxis(y, 0, along)]
