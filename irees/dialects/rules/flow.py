"""Verification rules for flow."""

from __future__ import annotations

from typing import Any

from xdsl.utils.exceptions import VerifyException


def check_return(op: Any) -> None:
    """Checks that a dispatch region returns values of its op's result types."""
    parent = op.parent_op()
    if parent is None or parent.name != "flow.dispatch.region":
        return
    if op.parent_region() is not parent.regions[0]:
        # The other region returns the workgroup count.
        return
    given, wanted = [v.type for v in op.operands], [r.type for r in parent.results]
    if len(given) != len(wanted):
        raise VerifyException(
            f"number of results ({len(wanted)}) does not match number of returned values "
            f"({len(given)})"
        )
    if given != wanted:
        raise VerifyException("operand types do not match with parent results")


RULES = {"flow.return": (check_return,)}
