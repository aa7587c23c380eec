"""Sizes of element types in memory."""

from __future__ import annotations

from xdsl.dialects.builtin import ComplexType
from xdsl.ir import Attribute


def item_bytes(element: Attribute) -> int:
    """Returns the bytes of an element: 1 for i1, two parts for complex, 8 for index."""
    if isinstance(element, ComplexType):
        return 2 * item_bytes(element.get_element_type())
    return max(1, -(-int(getattr(element, "bitwidth", 64)) // 8))
