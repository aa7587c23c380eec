"""
Proves that floats are not NaN, from the ops that compute them.

`irees-expand-math` leaves out the parts of a formula that treat what cannot occur.
"""

from __future__ import annotations

import math as python_math

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Block, SSAValue


def _is_number_in_loop(value: SSAValue, body: Block, assumed: frozenset[SSAValue]) -> bool:
    """Whether the argument of a block is a value carried by a loop that is never NaN."""
    loop = body.parent_op()
    if not isinstance(loop, scf.ForOp) or value is body.args[0]:
        return False
    position = body.args.index(value) - 1
    if not is_number(loop.iter_args[position], assumed):
        return False
    return is_number(body.last_op.operands[position], assumed | {value})


def is_number(value: SSAValue, assumed: frozenset[SSAValue] = frozenset()) -> bool:
    """Whether a float is provably not NaN; `assumed` holds the induction hypotheses of loops."""
    if value in assumed:
        return True
    owner = value.owner
    if isinstance(owner, Block):
        return _is_number_in_loop(value, owner, assumed)
    if isinstance(owner, scf.ForOp):
        return is_number(owner.body.block.args[1 + owner.results.index(value)], assumed)
    if isinstance(owner, arith.ConstantOp):
        number = owner.value
        values = (
            number.get_values()
            if isinstance(number, DenseIntOrFPElementsAttr)
            else [number.value.data]
        )
        return not any(python_math.isnan(v) for v in values)
    if isinstance(owner, vector.BroadcastOp):
        return is_number(owner.operands[0], assumed)
    if isinstance(owner, arith.MaxnumfOp | arith.MinnumfOp):
        return any(is_number(o, assumed) for o in owner.operands)
    if isinstance(owner, arith.SelectOp):
        # The operands of a true ordered comparison are not NaN.
        condition, chosen, other = owner.operands
        compare = condition.owner
        ordered = isinstance(compare, arith.CmpfOp) and 1 <= compare.predicate.value.data <= 6
        return ordered and chosen in compare.operands and is_number(other, assumed)
    return False
