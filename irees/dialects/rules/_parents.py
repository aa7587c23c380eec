"""Checks the parent op of a terminator. MLIR: the trait `HasParent`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.utils.exceptions import VerifyException


def ends_body_of(*parents: str) -> Callable[[Any], None]:
    """
    Returns a check that the parent op is one of these. A name that ends with a dot matches all ops
    of that dialect.
    """

    def check(op: Any) -> None:
        parent = op.parent_op()
        inside = parent is not None and any(
            parent.name.startswith(name) if name.endswith(".") else parent.name == name
            for name in parents
        )
        if not inside:
            wanted = ", ".join(f"'{name}{'*' * name.endswith('.')}'" for name in parents)
            raise VerifyException(f"'{op.name}' expects parent op to be one of {wanted}")

    return check
