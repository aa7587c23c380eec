"""Verification rules for builtin."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException


def check_cast(op: Operation) -> None:
    """Checks that a cast has a result."""
    if not op.results:
        raise VerifyException("expected at least one result for cast operation")


RULES = {"builtin.unrealized_conversion_cast": (check_cast,)}
