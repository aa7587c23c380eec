"""
Lowering of odd-width integers to the wider integers that store them. Part of
`irees-store-narrow-types`.

A stored integer is sign-extended. Signed ops, all comparisons and selects need no change: sign
extension also preserves the unsigned order. Ops that read an unsigned operand mask it first. Ops
that may overflow the width wrap their result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from irees.transforms.utils.copies import same_op
from irees.transforms.utils.narrow_floats import stored
from irees.transforms.utils.tensors import ScalarBuilder, ValueBuilder


@dataclass(frozen=True)
class Narrow:
    """An odd-width integer type and the type that stores it."""

    width: int
    storage: IntegerType

    @staticmethod
    def of(kind: Attribute) -> Narrow | None:
        """Returns the width and storage of a type, None for a type that is stored unchanged."""
        storage = stored(kind) if isinstance(kind, IntegerType) else None
        if storage is None:
            return None
        assert isinstance(kind, IntegerType)
        return Narrow(kind.width.data, storage)

    @property
    def mask(self) -> int:
        """Mask of the low `width` bits."""
        return (1 << self.width) - 1

    def unsigned(self, value: SSAValue, s: ValueBuilder) -> SSAValue:
        """Returns a stored value zero-extended from `width` bits."""
        return s.op(arith.AndIOp, value, s.number(self.mask, self.storage))

    def wrapped(self, value: SSAValue, s: ValueBuilder) -> SSAValue:
        """Returns a value sign-extended from its low `width` bits."""
        shift = s.number(self.storage.width.data - self.width, self.storage)
        return s.op(arith.ShRSIOp, s.op(arith.ShLIOp, value, shift), shift)


Rule = Callable[[Operation, ScalarBuilder, "Narrow | None", "Narrow | None"], SSAValue]
"""Rewrites an op on stored operands; takes the original types of operand 0 and the result."""

AS_THEY_ARE = frozenset(
    """
    arith.andi arith.ori arith.xori arith.maxsi arith.minsi arith.maxui arith.minui
    arith.cmpi arith.select arith.sitofp math.fpowi
    """.split()
)
"""Ops that are correct on sign-extended operands without change."""

WRAPS = frozenset(
    """
    arith.addi arith.subi arith.muli arith.divsi arith.floordivsi arith.ceildivsi arith.remsi
    math.absi math.ipowi
    """.split()
)
"""Signed ops whose result may overflow the width."""

UNSIGNED = frozenset("arith.divui arith.ceildivui arith.remui math.ctpop".split())
"""Ops on unsigned numbers."""


def _same(op: Operation, operands: list[SSAValue], s: ScalarBuilder) -> SSAValue:
    return s.insert(same_op(op, operands, [r.type for r in op.results])).results[0]


def _shift(op: Operation, s: ScalarBuilder, source: Narrow | None, _: Narrow | None) -> SSAValue:
    """a << b, a >> b; the shift amount is unsigned"""
    assert source is not None
    value, amount = op.operands
    if op.name == "arith.shrui":
        value = source.unsigned(value, s)
    result = _same(op, [value, source.unsigned(amount, s)], s)
    return result if op.name == "arith.shrsi" else source.wrapped(result, s)


def _resized(value: SSAValue, kind: IntegerType, signed: bool, s: ScalarBuilder) -> SSAValue:
    """Extends or truncates a stored value to another storage type."""
    assert isinstance(value.type, IntegerType)
    before, after = value.type.width.data, kind.width.data
    if before == after:
        return value
    if after < before:
        return s.op(arith.TruncIOp, value, kind)
    return s.op(arith.ExtSIOp if signed else arith.ExtUIOp, value, kind)


def _resize(
    op: Operation, s: ScalarBuilder, source: Narrow | None, target: Narrow | None
) -> SSAValue:
    """extsi, extui, trunci"""
    value, kind = op.operands[0], op.results[0].type
    assert isinstance(kind, IntegerType)
    signed = op.name != "arith.extui"
    if not signed and source is not None:
        value = source.unsigned(value, s)
    result = _resized(value, kind, signed, s)
    return target.wrapped(result, s) if op.name == "arith.trunci" and target else result


def _from_unsigned(
    op: Operation, s: ScalarBuilder, source: Narrow | None, target: Narrow | None
) -> SSAValue:
    """uitofp, and index_castui in both directions"""
    value = op.operands[0] if source is None else source.unsigned(op.operands[0], s)
    result = _same(op, [value], s)
    return result if target is None else target.wrapped(result, s)


def _index_cast(
    op: Operation, s: ScalarBuilder, source: Narrow | None, target: Narrow | None
) -> SSAValue:
    result = _same(op, list(op.operands), s)
    return result if target is None else target.wrapped(result, s)


def _from_float(
    op: Operation, s: ScalarBuilder, source: Narrow | None, target: Narrow | None
) -> SSAValue:
    """fptosi, fptoui; saturates out-of-range values"""
    result = _same(op, list(op.operands), s)
    if target is None:
        return result
    if op.name == "arith.fptoui":
        least = s.op(arith.MinUIOp, result, s.number(target.mask, target.storage))
        return target.wrapped(least, s)
    highest = target.mask >> 1
    result = s.op(arith.MinSIOp, result, s.number(highest, target.storage))
    return s.op(arith.MaxSIOp, result, s.number(-highest - 1, target.storage))


def _zeros(op: Operation, s: ScalarBuilder, source: Narrow | None, _: Narrow | None) -> SSAValue:
    """ctlz, cttz; the count of zero is the width"""
    assert source is not None
    count = _same(op, [source.unsigned(op.operands[0], s)], s)
    if op.name == "math.ctlz":
        missing = source.storage.width.data - source.width
        count = s.op(arith.SubiOp, count, s.number(missing, source.storage))
    else:
        count = s.op(arith.MinUIOp, count, s.number(source.width, source.storage))
    return source.wrapped(count, s)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("arith.shli", "arith.shrsi", "arith.shrui"), _shift),
    **dict.fromkeys(("arith.extsi", "arith.extui", "arith.trunci"), _resize),
    **dict.fromkeys(("arith.uitofp", "arith.index_castui"), _from_unsigned),
    "arith.index_cast": _index_cast,
    **dict.fromkeys(("arith.fptosi", "arith.fptoui"), _from_float),
    **dict.fromkeys(("math.ctlz", "math.cttz"), _zeros),
}


def integer_op(
    op: Operation, s: ScalarBuilder, source: Narrow | None, target: Narrow | None
) -> SSAValue | None:
    """
    Lowers an op on odd-width integers, whose operands and result types are storage types already.
    Returns the new value, None for an op that is correct unchanged.
    """
    if (rule := RULES.get(op.name)) is not None:
        return rule(op, s, source, target)
    if op.name in AS_THEY_ARE:
        return None
    if source is None or isinstance(op.results[0].type, IndexType):
        return None
    if op.name in UNSIGNED:
        return source.wrapped(_same(op, [source.unsigned(v, s) for v in op.operands], s), s)
    if op.name in WRAPS:
        return source.wrapped(_same(op, list(op.operands), s), s)
    return None
