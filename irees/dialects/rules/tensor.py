"""Verification rules for tensor."""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.utils.exceptions import VerifyException

from irees.dialects.rules._parents import ends_body_of


def check_from_elements(op: Any) -> None:
    """Checks that there is one operand per element."""
    kind = op.results[0].type
    if isinstance(kind, TensorType) and kind.has_static_shape():
        count = prod(kind.get_shape())
        if count != len(op.operands):
            raise VerifyException(
                f"number of operands and types do not match: got {len(op.operands)} operands and "
                f"{count} types"
            )


def check_concat(op: Any) -> None:
    """Checks that the concatenation dim is within the result's rank."""
    rank, axis = op.results[0].type.get_num_dims(), op.properties["dim"].value.data
    if not 0 <= axis < rank:
        raise VerifyException(f"concatenation dim must be in [0, {rank}), but is {axis}")


def check_gather(op: Any) -> None:
    """Checks that the result has batch dims, then source dims with gathered ones 1 or dropped."""
    source, indices = (v.type for v in op.operands[:2])
    result = op.results[0].type
    gathered = op.properties["gather_dims"].get_values()
    batch = list(indices.get_shape())[:-1]
    whole = [*batch, *(1 if d in gathered else n for d, n in enumerate(source.get_shape()))]
    reduced = [*batch, *(n for d, n in enumerate(source.get_shape()) if d not in gathered)]
    found = list(result.get_shape())

    def fits(wanted: list[int]) -> bool:
        pairs = zip(found, wanted)
        return len(found) == len(wanted) and all(
            a == b or DYNAMIC_INDEX in (a, b) for a, b in pairs
        )

    if not fits(whole) and not fits(reduced):
        raise VerifyException(
            f"result type mismatch: expected {whole} or its rank-reduced variant {reduced}, got "
            f"{found}"
        )


RULES = {
    "tensor.concat": (check_concat,),
    "tensor.from_elements": (check_from_elements,),
    "tensor.gather": (check_gather,),
    "tensor.yield": (ends_body_of("tensor.pad", "tensor.generate"),),
}
