"""
Matches contractions of narrow elements to dot-product instructions.

    C[m, n] += A[m, 4k : 4k + 4] . B[4k : 4k + 4, n]

A dot-product instruction multiplies narrow lanes without widening and accumulates groups of
adjacent products into wide lanes, so K is processed in groups: four i8 per i32 (`irees.dot`), two
bf16 per f32 (`x86vector.avx512.dot`). The target's instructions are named as in /proc/cpuinfo.

The i8 instruction multiplies unsigned by signed. If both operands are signed, the broadcast one is
biased by 128 to be unsigned, and 128 times the column sum of B is subtracted; this is exact, since
i32 wraps. Two unsigned operands are not supported.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, Float32Type, i8, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation

from irees.analysis.contractions import MultiplyAdd, element_kinds, packed_depth

INSTRUCTIONS = {
    "avx512_vnni": ("i8", 64),
    "avx_vnni": ("i8", 32),
    "avx512_bf16": ("bf16", 64),
}
"""Flag of /proc/cpuinfo => element type and vector bytes of the instruction."""


@dataclass(frozen=True)
class DotProduct:
    """How a contraction uses a dot-product instruction; A is broadcast, B is read by vectors."""

    element: Attribute
    group: int
    """Elements along K that one wide lane accumulates."""
    biased: bool
    """Whether A is signed and biased by 128."""
    swapped: bool
    """Whether B is unsigned and A signed."""

    @property
    def bytes(self) -> int:
        """Size of a narrow element in bytes."""
        return 4 // self.group


def sign(casts: tuple[Operation, ...]) -> str | None:
    """Returns the op that widens an operand: `extsi`, `extui` or `extf`; None if none or mixed."""
    names = {cast.name.removeprefix("arith.") for cast in casts}
    return names.pop() if len(names) == 1 else None


def dot_product(
    op: linalg.GenericOp,
    parts: MultiplyAdd,
    side: int,
    instructions: tuple[str, ...],
    vector_bytes: int,
) -> DotProduct | None:
    """Matches a contraction that reads operand `side` by vectors; returns None on failure."""
    lhs, rhs, wide = element_kinds(op, parts)
    if lhs != rhs:
        return None
    have = {INSTRUCTIONS[word] for word in instructions}
    a, b = sign(parts.widen_lhs), sign(parts.widen_rhs)
    if side == parts.lhs:
        a, b = b, a
    found = None
    if lhs == i8 and wide == i32 and ("i8", vector_bytes) in have:
        if "extsi" in (a, b) and None not in (a, b):
            found = DotProduct(lhs, 4, a == b, b == "extui")
    elif isinstance(lhs, BFloat16Type) and isinstance(wide, Float32Type):
        if ("bf16", vector_bytes) in have and a == b == "extf":
            found = DotProduct(lhs, 2, False, False)
    packed = packed_depth(op.indexing_maps.data[side].data)
    return found if found is None or packed in (None, found.group) else None
