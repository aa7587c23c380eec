"""Verification rules for arith."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ..resources import is_splat
from ._types import check_signless, check_widths, encoding, is_index, scalable

CASTS = (
    "extf", "truncf", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui",
    "bitcast", "index_cast", "index_castui",
)  # fmt: skip


def check_cast(op: Operation) -> None:
    """Checks that operand and result have the same scalable dims and the same encoding."""
    source, result = op.operands[0].type, op.results[0].type
    if scalable(source) != scalable(result):
        raise VerifyException("requires the same shape for all operands and results")
    if encoding(source) != encoding(result):
        raise VerifyException(
            f"operand type {source} and result type {result} are cast incompatible"
        )


def check_bitcast(op: Operation) -> None:
    """Rejects bitcasts of index, whose width is unknown."""
    for value in (op.operands[0], op.results[0]):
        if is_index(value.type):
            raise VerifyException(f"the width of {value.type} is unknown: use arith.index_cast")


def check_constant(op: arith.ConstantOp) -> None:
    """Checks that the value is signless, of the result's type, and a splat if it is scalable."""
    kind, value = op.result.type, op.value
    check_signless(kind, "integer return type")
    if not isinstance(value, IntegerAttr | FloatAttr) and not hasattr(value, "get_type"):
        known = getattr(value, "type", None)
        if known is None or known != kind:
            raise VerifyException("all of {value, result} must have the same type")
    if any(scalable(kind)) and not is_splat(value):
        raise VerifyException("a scalable vector can only be initialized by a splat")


RULES = {
    "*": (check_widths,),
    **{f"arith.{name}": (check_cast,) for name in CASTS},
    "arith.bitcast": (check_cast, check_bitcast),
    "arith.constant": (check_constant,),
}
