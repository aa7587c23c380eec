"""Rules of util."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ShapedType
from xdsl.utils.exceptions import VerifyException

from ._symbols import check_call, check_load, check_store
from ._types import element
from .func import check_updates

UNTIED = -1
"""What stands for a result that is tied to no operand."""


def check_assumptions(op: Any) -> None:
    """Operands have as many assumptions as each other, or one."""
    counts = [len(row.data) for row in op.assumptions.data]
    most = max(counts, default=1)
    for number, count in enumerate(counts):
        if count not in (1, most):
            raise VerifyException(
                f"expected operand #{number} to have {most} assumptions but it has {count}"
            )


def check_ties(op: Any) -> None:
    """Results are tied to arguments that there are."""
    tied = op.properties.get("tied_operands")
    if not isinstance(tied, ArrayAttr):
        return
    count = len(op.function_type.inputs)
    for number, attr in enumerate(tied.data):
        at = attr.value.data if isinstance(attr, IntegerAttr) else UNTIED
        if not UNTIED <= at < count:
            raise VerifyException(f"result #{number} tied to invalid operand index {at}")


def _bits(kind: Any) -> Any:
    """The shape of a type, and the bits of its elements."""
    shape = tuple(kind.get_shape()) if isinstance(kind, ShapedType) else ()
    return shape, getattr(element(kind), "bitwidth", kind)


def check_global(op: Any) -> None:
    """An initial value has as many bits as the global; IREE lets its elements be others."""
    value, kind = op.properties.get("initial_value"), op.properties["type"]
    own = value.get_type() if hasattr(value, "get_type") else getattr(value, "type", None)
    if own is not None and own != kind and _bits(own) != _bits(kind):
        raise VerifyException(f"initial value of type {own} for a global of type {kind}")


def check_return(op: Any) -> None:
    """A function or an initializer returns."""
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
