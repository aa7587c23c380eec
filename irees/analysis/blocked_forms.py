"""
Blocked forms of tensors: dims split into blocks, and a permutation of the parts.

    C x H x W  as  C/8 x H x W x 8  is  Form({0: 8}, (0, outer) (1, ..) (2, ..) (0, inner))

A form is data: it says how a value is stored, and whether that costs a copy.
`irees-propagate-blocked-layouts` chooses a form for each value and writes the conversions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, TensorType
from xdsl.ir import Attribute, SSAValue

from irees.analysis.paddings import is_background
from irees.dialects.sizes import Size
from irees.dialects.storage import is_undefined
from irees.targets.cpu import CPU

ELEMENT_BYTES: dict[type[Attribute], int] = {Float32Type: 4, Float64Type: 8}
"""Element types that can be blocked => their size in bytes."""


Part = tuple[int, bool]
"""A dim or loop, and whether this is the inner part of a blocked one."""


def block_of(size: int, element: Attribute, vector_bytes: int) -> int | None:
    """
    Returns the block size for `size` channels: the lanes of a vector or half of them, else None.

    It depends on nothing else, so values with equal channel counts have equal block sizes.
    """
    width = ELEMENT_BYTES.get(type(element))
    if width is None or size <= 0:
        return None
    lanes, block = vector_bytes // width, 1
    while 2 * block <= lanes and size % (2 * block) == 0:
        block *= 2
    return block if block > 1 and 2 * block >= lanes else None


@dataclass(frozen=True)
class Form:
    """The blocked dims with their block sizes, and the order of all parts."""

    blocks: tuple[tuple[int, int], ...]
    order: tuple[Part, ...]

    @staticmethod
    def of_channel(rank: int, dim: int, block: int) -> Form:
        """Returns a form with one blocked dim, whose inner part is the last dim."""
        return Form(((dim, block),), (*((d, False) for d in range(rank)), (dim, True)))

    @property
    def channel(self) -> int:
        """The only blocked dim."""
        ((dim, _),) = self.blocks
        return dim

    @property
    def block(self) -> int:
        """The block size of the only blocked dim."""
        ((_, size),) = self.blocks
        return size

    def parts(self) -> list[Part]:
        """Returns all parts in the order of the unblocked tensor's dims."""
        cut = dict(self.blocks)
        outer = [d for d, inner in self.order if not inner]
        return [p for d in sorted(outer) for p in ((d, False), (d, True)) if not p[1] or d in cut]

    def sizes(self, shape: Sequence[Size], parts: Sequence[Part]) -> list[Size]:
        """Returns the sizes of `parts` for a tensor of that shape; blocked dims are static."""
        cut, found = dict(self.blocks), list[Size]()
        for dim, inner in parts:
            size = shape[dim]
            if dim in cut:
                assert isinstance(size, int)
                size = cut[dim] if inner else size // cut[dim]
            found.append(size)
        return found

    def type_of(self, kind: Attribute) -> TensorType:
        """Returns the type in this form of a tensor of type `kind`."""
        assert isinstance(kind, TensorType)
        return TensorType(kind.get_element_type(), self.static(kind, self.order))

    def static(self, kind: TensorType, parts: Sequence[Part]) -> list[int]:
        """Returns the sizes of `parts` for a tensor of that type, -1 for dynamic ones."""
        return [s for s in self.sizes(kind.get_shape(), parts) if isinstance(s, int)]

    def is_free(self, kind: Attribute) -> bool:
        """Whether a tensor of that type has the same memory layout in this form."""
        assert isinstance(kind, TensorType)
        sizes = dict(zip(self.order, self.static(kind, self.order), strict=True))
        return [p for p in self.order if sizes[p] != 1] == [
            p for p in self.parts() if sizes[p] != 1
        ]

    def groups(self) -> list[list[int]]:
        """Returns the reassociation: for each dim, the positions of its parts in `parts()`."""
        found: list[list[int]] = []
        for position, (_, inner) in enumerate(self.parts()):
            if inner:
                found[-1].append(position)
            else:
                found.append([position])
        return found


def channel_form(value: SSAValue, dim: int, vector_bytes: int) -> Form | str:
    """Returns the form of a value blocked along a dim, or the reason why it has none."""
    assert isinstance(value.type, TensorType)
    element, size = value.type.get_element_type(), value.type.get_shape()[dim]
    block = block_of(size, element, vector_bytes)
    if block is None:
        count = "an unknown number of" if size < 0 else str(size)
        return f"{count} channels of {element} do not divide into blocks"
    return Form.of_channel(len(value.type.get_shape()), dim, block)


def costs_nothing(value: SSAValue, form: Form) -> bool:
    """Whether a value can be in a form without a copy at run time."""
    made_anywhere = isinstance(value.owner, arith.ConstantOp) or is_undefined(value.owner)
    return made_anywhere or is_background(value.owner) or form.is_free(value.type)


def elements(value: SSAValue) -> int:
    """Returns the number of elements; dynamic dims are assumed."""
    assert isinstance(value.type, TensorType)
    return prod(s if s >= 0 else CPU.assumed_dim for s in value.type.get_shape())
