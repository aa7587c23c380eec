"""Verification rules for ml_program."""

from __future__ import annotations

from typing import Any

from xdsl.utils.exceptions import VerifyException

from ._symbols import check_load, check_store

GLOBAL = "ml_program.global"


def check_global(op: Any) -> None:
    """Checks that an immutable global has a value, and that a value has the global's type."""
    value = op.value
    if value is None and op.is_mutable is None:
        raise VerifyException("immutable global must have an initial value")
    own = getattr(value, "type", None)
    own = value.get_type() if hasattr(value, "get_type") else own
    if own is not None and own != op.properties["type"]:
        raise VerifyException(
            f"initial value of type {own} for a global of {op.properties['type']}"
        )


RULES = {
    GLOBAL: (check_global,),
    "ml_program.global_load": (check_load(GLOBAL),),
    "ml_program.global_load_const": (check_load(GLOBAL),),
    "ml_program.global_store": (check_store(GLOBAL),),
}
