"""Formulas that hold in a range only; libm computes the rest."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from irees.transforms.utils.formula import Formula


def where_all(op: Operation, inside: SSAValue, formula: Callable[[Formula], SSAValue]) -> SSAValue:
    """f(x)  =>  if all lanes are `inside` { formula } else { f(x) }"""
    f = Formula(op)
    if f.lanes:
        inside = f.insert(
            # The constructor of ReductionOp would make the result a vector.
            vector.ReductionOp.create(
                operands=[inside],
                result_types=[i1],
                properties={
                    "kind": vector.CombiningKindAttr(vector.CombiningKindFlag.AND),
                    "fastmath": arith.FastMathFlagsAttr("none"),
                },
            )
        )
    near, far = Block(), Block()
    within = Formula(op)
    within.point = InsertPoint.at_end(near)
    near.add_op(scf.YieldOp(formula(within)))
    call = op.clone()
    far.add_ops([call, scf.YieldOp(call.results[0])])
    return f.insert(scf.IfOp(inside, [op.results[0].type], Region(near), Region(far)))
