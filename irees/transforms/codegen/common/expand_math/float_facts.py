"""
Facts about floats, from the ops that compute them: bounds, and whether they are whole numbers or
NaN.

`irees-expand-math` leaves out the parts of a formula that treat what cannot occur.
"""

from __future__ import annotations

import math as python_math

from xdsl.dialects import arith, math, scf, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Block, SSAValue

from irees.transforms.utils.constants import constant_number

DEEPEST = 8
"""Maximum length of a chain of ops that is followed."""

ROUNDING = (math.RoundEvenOp, math.RoundOp, math.FloorOp, math.CeilOp, math.TruncOp)
CLAMPING = (arith.MaximumfOp, arith.MinimumfOp)
"""The result is NaN if an operand is."""
EVERYTHING = -python_math.inf, python_math.inf


def bounds(value: SSAValue, depth: int = DEEPEST) -> tuple[float, float]:
    """Returns the least and the largest number that a float may be, where it is not NaN."""
    known, owner = constant_number(value), value.owner
    if known is not None:
        return EVERYTHING if known != known else (known, known)
    if depth == 0:
        return EVERYTHING
    if isinstance(owner, CLAMPING):
        choose = max if isinstance(owner, arith.MaximumfOp) else min
        (a, b), (c, d) = (bounds(x, depth - 1) for x in owner.operands)
        return choose(a, c), choose(b, d)
    if isinstance(owner, ROUNDING):
        low, high = bounds(owner.operands[0], depth - 1)
        whole = -python_math.inf < low and high < python_math.inf
        return (python_math.floor(low), python_math.ceil(high)) if whole else (low, high)
    return EVERYTHING


def is_whole(value: SSAValue, depth: int = DEEPEST) -> bool:
    """Whether a float is known to be a whole number, infinite or NaN."""
    known, owner = constant_number(value), value.owner
    if known is not None:
        return known != known or float(known).is_integer()
    if isinstance(owner, CLAMPING):
        return depth > 0 and all(is_whole(x, depth - 1) for x in owner.operands)
    return isinstance(owner, ROUNDING)


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
