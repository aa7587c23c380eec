"""Combiners of reductions, and their neutral elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue

from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.shapes import IndexBuilder
from irees.transforms.utils.structured import writes_along_reduction

COMBINERS = {
    "arith.addf": "add",
    "arith.mulf": "mul",
    "arith.maximumf": "maximumf",
    "arith.minimumf": "minimumf",
    "arith.maxnumf": "maxnumf",
    "arith.minnumf": "minnumf",
    "arith.addi": "add",
    "arith.muli": "mul",
    "arith.maxsi": "maxsi",
    "arith.minsi": "minsi",
    "arith.maxui": "maxui",
    "arith.minui": "minui",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
}
"""Associative, commutative combiners => their `vector.reduction` kind."""


FLOATS = (
    arith.AddfOp,
    arith.MulfOp,
    arith.MaximumfOp,
    arith.MinimumfOp,
    arith.MaxnumfOp,
    arith.MinnumfOp,
)
INTEGERS = (
    arith.AddiOp,
    arith.MuliOp,
    arith.MaxSIOp,
    arith.MinSIOp,
    arith.MaxUIOp,
    arith.MinUIOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
)

IDEMPOTENT = frozenset(
    """
    arith.maximumf arith.minimumf arith.maxnumf arith.minnumf arith.maxsi arith.minsi arith.maxui
    arith.minui arith.andi arith.ori
    """.split()
)
"""Idempotent combiners: combining the same value twice does not change the result."""


def combiners(op: linalg.GenericOp) -> list[Operation] | None:
    """
    Returns the op that combines an element with the accumulator of each output. None for any other
    body, or if a reduction loop indexes an output: then its accumulator is not loop-invariant.
    """
    if writes_along_reduction(op):
        return None
    found: list[Operation] = []
    block = op.body.block
    terminator = block.last_op
    assert terminator is not None
    for argument, value in zip(block.args[len(op.inputs) :], terminator.operands, strict=True):
        fold = value.owner
        if (
            not isinstance(fold, Operation)
            or fold.name not in COMBINERS
            or len(list(argument.uses)) != 1
            or argument not in fold.operands
            or len(list(value.uses)) != 1
        ):
            return None
        found.append(fold)
    return found


def combine(combiner: Operation, lhs: SSAValue, rhs: SSAValue) -> Operation:
    """Returns the combiner applied to two accumulators, not inserted."""
    return type(combiner).create(
        operands=[lhs, rhs],
        result_types=[lhs.type],
        properties=dict(combiner.properties),
        attributes=dict(combiner.attributes),
    )


def of_kind(kind: str, lhs: SSAValue, rhs: SSAValue) -> Operation:
    """Returns the combiner of a `vector.reduction` kind on two scalars or vectors, not inserted."""
    element = lhs.type.element_type if isinstance(lhs.type, VectorType) else lhs.type
    group = FLOATS if isinstance(element, AnyFloat) else INTEGERS
    found = next(each for each in group if COMBINERS[each.name] == kind)
    return found(lhs, rhs)


def neutral_element(combiner: Operation) -> arith.ConstantOp:
    """Returns the neutral element of a combiner."""
    return neutral_of(combiner.name, combiner.results[0].type)


def neutral_of(combiner: str, element: Attribute) -> arith.ConstantOp:
    """Returns the neutral element, of an element type, of the combiner with an op name."""
    name = COMBINERS[combiner]
    if isinstance(element, IntegerType | IndexType):
        width = element.width.data if isinstance(element, IntegerType) else 64
        values = {
            "add": 0,
            "mul": 1,
            "or": 0,
            "xor": 0,
            "and": -1,
            "maxui": 0,
            "minui": -1,
            "maxsi": -(1 << (width - 1)),
            "minsi": (1 << (width - 1)) - 1,
        }
        value = values[name]
        if width == 1:
            value = value & 1
        return arith.ConstantOp(IntegerAttr(value, element))
    inf = float("inf")
    floats = {
        "add": -0.0,
        "mul": 1.0,
        "maximumf": -inf,
        "minimumf": inf,
        "maxnumf": float("nan"),
        "minnumf": float("nan"),
    }
    return arith.ConstantOp(FloatAttr(floats[name], element))


def further_accumulators(
    combiners: Sequence[Operation], accs: Sequence[SSAValue], lanes: int, at: IndexBuilder
) -> list[SSAValue]:
    """
    Returns the initial values of further accumulators of each result, as vectors if there are
    several lanes. Idempotent combiners start from the value of the first accumulator, which may be
    known not to be NaN.
    """
    starts = [
        acc if c.name in IDEMPOTENT else at.insert(neutral_element(c)).results[0]
        for c, acc in zip(combiners, accs, strict=True)
    ]
    return [
        s
        if lanes == 1 or isinstance(s.type, VectorType)
        else at.insert(vector.BroadcastOp(s, vector_of(s.type, lanes))).results[0]
        for s in starts
    ]


def combined(combiner: Operation, accs: Sequence[SSAValue], at: IndexBuilder) -> SSAValue:
    """Combines the accumulators of one result."""
    total = accs[0]
    for acc in accs[1:]:
        total = at.insert(combine(combiner, total, acc)).results[0]
    return total
