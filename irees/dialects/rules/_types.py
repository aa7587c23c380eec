"""Type queries and checks shared by the rules of several dialects."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    IndexType,
    IntegerType,
    NoneAttr,
    ShapedType,
    Signedness,
    TensorType,
    UnrankedTensorType,
    VectorType,
)
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException


def element(kind: Attribute) -> Attribute:
    """Returns the element type of a shaped type, or the type itself."""
    if isinstance(kind, UnrankedTensorType):
        return kind.element_type
    return kind.get_element_type() if isinstance(kind, ShapedType) else kind  # pyright: ignore


def scalable(kind: Attribute) -> tuple[bool, ...]:
    """Returns a flag per vector dim, true if it is scalable; empty for other types."""
    if not isinstance(kind, VectorType):
        return ()
    return tuple(bool(flag.value.data) for flag in kind.scalable_dims)


def encoding(kind: Attribute) -> Attribute:
    """Returns the encoding of a tensor, or NoneAttr."""
    return kind.encoding if isinstance(kind, TensorType) else NoneAttr()


def check_widths(op: Operation) -> None:
    """Rejects integers of width 0."""
    for value in (*op.operands, *op.results):
        kind = element(value.type)
        if isinstance(kind, IntegerType) and kind.width.data == 0:
            raise VerifyException(
                f"integers must have a non-zero width, but a value is {value.type}"
            )


def check_signless(kind: Attribute, what: str) -> None:
    """Checks that an integer type is signless."""
    number = element(kind)
    if isinstance(number, IntegerType) and number.signedness.data != Signedness.SIGNLESS:
        raise VerifyException(f"{what} must be signless, but is {kind}")


def is_index(kind: Attribute) -> bool:
    """Whether a type or its element type is index."""
    return isinstance(element(kind), IndexType)
