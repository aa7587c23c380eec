"""Verification rules for util."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ShapedType
from xdsl.utils.exceptions import VerifyException

from ._symbols import check_call, check_load, check_store
from ._types import element
from .func import check_updates

UNTIED = -1
"""Tied-operand index of a result that is tied to no operand."""


def check_assumptions(op: Any) -> None:
    """Checks that all operands have the same number of assumptions, or one."""
    counts = [len(row.data) for row in op.assumptions.data]
    most = max(counts, default=1)
    for number, count in enumerate(counts):
        if count not in (1, most):
            raise VerifyException(
                f"expected operand #{number} to have {most} assumptions but it has {count}"
            )


def check_ties(op: Any) -> None:
    """Checks that results are tied to existing arguments."""
    tied = op.properties.get("tied_operands")
    if not isinstance(tied, ArrayAttr):
        return
    count = len(op.function_type.inputs)
    for number, attr in enumerate(tied.data):
        at = attr.value.data if isinstance(attr, IntegerAttr) else UNTIED
        if not UNTIED <= at < count:
            raise VerifyException(f"result #{number} tied to invalid operand index {at}")


def _bits(kind: Any) -> Any:
    """Returns the shape of a type and the bit width of its elements."""
    shape = tuple(kind.get_shape()) if isinstance(kind, ShapedType) else ()
    return shape, getattr(element(kind), "bitwidth", kind)


def check_global(op: Any) -> None:
    """Checks an initial value's shape and bit width; as in IREE, element types may differ."""
    value, kind = op.properties.get("initial_value"), op.properties["type"]
    own = value.get_type() if hasattr(value, "get_type") else getattr(value, "type", None)
    if own is not None and own != kind and _bits(own) != _bits(kind):
        raise VerifyException(f"initial value of type {own} for a global of type {kind}")


def check_return(op: Any) -> None:
    """Checks that the parent of a return is a function or an initializer."""
    parent = op.parent_op()
    if parent is None or parent.name not in ("util.func", "util.initializer"):
        raise VerifyException("expects parent op to be 'util.func' or 'util.initializer'")


GLOBAL = "util.global"
RULES = {
    GLOBAL: (check_global,),
    "util.global.load": (check_load(GLOBAL),),
    "util.global.store": (check_store(GLOBAL),),
    "util.call": (check_call("util.func"),),
    "util.assume.int": (check_assumptions,),
    "util.func": (check_ties, check_updates),
    "util.return": (check_return,),
}
