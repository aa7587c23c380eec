"""
Which contractions of narrow elements can be done by dot-product instructions.

    C[m, n] += A[m, 4k : 4k + 4] . B[4k : 4k + 4, n]

Such an instruction multiplies the narrow lanes as they are and adds up neighbours among them
into each wide lane, so that K goes in groups: four i8 into an i32 (`irees.dot`), two bf16 into
an f32 (`x86vector.avx512.dot`). What the target has is named in the words of /proc/cpuinfo.

The instruction for i8 takes unsigned times signed. Where both operands are signed the broadcast
one is made unsigned by 128 more than it is, and 128 times the sum of a column of B is taken off:
exact, since i32 wraps. Two unsigned operands have no such form here.
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
"""Word of /proc/cpuinfo => the element that it multiplies, the bytes of its vectors."""


@dataclass(frozen=True)
class DotProduct:
    """How a contraction uses such an instruction; A is broadcast, B is read by vectors."""

    element: Attribute
    group: int
    """Neighbours along K that one wide lane adds up."""
    biased: bool
    """A is signed, and made unsigned by adding 128 to it."""
    swapped: bool
    """B is the unsigned operand, and A the signed one."""

    @property
    def bytes(self) -> int:
        """Bytes of a narrow element."""
        return 4 // self.group


def sign(casts: tuple[Operation, ...]) -> str | None:
    """`extsi`, `extui` or `extf`: what widens an operand, None where it is nothing or a mixture."""
    names = {cast.name.removeprefix("arith.") for cast in casts}
    return names.pop() if len(names) == 1 else None


def dot_product(
    op: linalg.GenericOp,
    parts: MultiplyAdd,
    side: int,
    instructions: tuple[str, ...],
    vector_bytes: int,
) -> DotProduct | None:
    """The dot product of a contraction that reads operand `side` by vectors, None without."""
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
