"""Bytes of one element in memory."""

from __future__ import annotations

from xdsl.dialects.builtin import ComplexType
from xdsl.ir import Attribute


def item_bytes(element: Attribute) -> int:
    """Bytes of an element: i1 takes one, a complex number two parts, an index eight."""
    if isinstance(element, ComplexType):
        return 2 * item_bytes(element.get_element_type())
    return max(1, -(-int(getattr(element, "bitwidth", 64)) // 8))
