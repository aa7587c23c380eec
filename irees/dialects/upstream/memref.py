"""
What xDSL's memref lacks: constant globals whose data is a resource or any elements attribute.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.irdl import AnyAttr

OPS: tuple[type, ...] = ()


def patch() -> None:
    """Lets `memref.global` hold a `dense_resource`. Idempotent."""
    memref.GlobalOp.get_irdl_definition().properties["initial_value"].constr = AnyAttr()


patch()
