"""
Blocked forms of tensors: dims split into blocks, and a permutation of the parts.

    C x H x W  as  C/8 x H x W x 8  is  Form({0: 8}, (0, outer) (1, ..) (2, ..) (0, inner))

Packing a value is an expand_shape, which is free, and a transpose; unpacking is the inverse. If
only unit dims would move, the transpose is omitted. Constants are packed at compile time; fills and
empty tensors are created in the form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    Float32Type,
    Float64Type,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from irees.dialects.resources import is_splat
from irees.targets.cpu import CPU
from irees.transforms.utils.constants import derived_constant
from irees.transforms.utils.shapes import IndexBuilder, Size, dims, reassociation_attr
from irees.transforms.utils.structured import copy_region, element_type, generic, is_background
from irees.transforms.utils.tensors import empty, select_dims
from irees.transforms.utils.unit_dims import collapse, expand

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
        return TensorType(kind.get_element_type(), self._static(kind, self.order))

    def _static(self, kind: TensorType, parts: Sequence[Part]) -> list[int]:
        return [s for s in self.sizes(kind.get_shape(), parts) if isinstance(s, int)]

    def is_free(self, kind: Attribute) -> bool:
        """Whether a tensor of that type has the same memory layout in this form."""
        assert isinstance(kind, TensorType)
        sizes = dict(zip(self.order, self._static(kind, self.order), strict=True))
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

    def pack(self, value: SSAValue, b: IndexBuilder) -> SSAValue:
        """x  =>  transpose(expand_shape(x))"""
        kind = value.type
        assert isinstance(kind, TensorType)
        parts = self.parts()
        cut_type = TensorType(kind.get_element_type(), self._static(kind, parts))
        static = cut_type.get_shape()
        sizes = zip(self.sizes(dims(value, b), parts), static, strict=True)
        dynamic = [b.value(size) for size, known in sizes if known < 0]
        cut = b.insert(
            tensor.ExpandShapeOp.build(
                operands=[value, dynamic],
                properties={
                    "reassociation": reassociation_attr(self.groups()),
                    "static_output_shape": DenseArrayBase.from_list(i64, static),
                },
                result_types=[cut_type],
            )
        ).results[0]
        places = [parts.index(p) for p in self.order]
        return _moved(cut, places, self.type_of(kind), self.is_free(kind), b)

    def unpack(self, value: SSAValue, kind: Attribute, b: IndexBuilder) -> SSAValue:
        """x  =>  collapse_shape(transpose(x)), of type `kind`"""
        assert isinstance(kind, TensorType)
        parts = self.parts()
        cut_type = TensorType(kind.get_element_type(), self._static(kind, parts))
        places = [self.order.index(p) for p in parts]
        cut = _moved(value, places, cut_type, self.is_free(kind), b)
        return b.insert(
            tensor.CollapseShapeOp.build(
                operands=[cut],
                properties={"reassociation": reassociation_attr(self.groups())},
                result_types=[kind],
            )
        ).results[0]

    def constant(self, op: arith.ConstantOp) -> arith.ConstantOp:
        """Returns a tensor constant packed in this form."""
        kind, value = op.result.type, op.value
        assert isinstance(kind, TensorType)
        new_type = self.type_of(kind)
        if is_splat(value):
            return arith.ConstantOp(DenseIntOrFPElementsAttr(new_type, value.data))
        if isinstance(value, DenseResourceAttr) and self.is_free(kind):
            return arith.ConstantOp(DenseResourceAttr(value.resource_handle, new_type))
        parts = self.parts()
        sizes, order = self._static(kind, parts), [parts.index(p) for p in self.order]

        def make(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
            np.copyto(out, np.transpose(arrays[0].reshape(sizes), order))

        letters = "".join(f"{d}{'i' if inner else ''}" for d, inner in self.order)
        blocks = "x".join(str(size) for _, size in self.blocks)
        return derived_constant([op], make, new_type, f"blocked{blocks}_{letters}")


def _moved(
    value: SSAValue, places: Sequence[int], kind: TensorType, free: bool, b: IndexBuilder
) -> SSAValue:
    """Transposes a value; dim i of the result is dim `places[i]` of the value."""
    assert isinstance(value.type, TensorType)
    if list(places) == list(range(len(places))):
        return value
    if free:
        source, result = value.type.get_shape(), kind.get_shape()
        bare = collapse(value, [d for d, s in enumerate(source) if s != 1], b)
        return expand(bare, kind, [d for d, s in enumerate(result) if s != 1], b)
    sizes = dims(value, b)
    init = empty(kind, [sizes[p] for p in places], b)
    inverse = [places.index(d) for d in range(len(places))]
    indexing = [select_dims(len(places), inverse), AffineMap.identity(len(places))]
    element = element_type(value)
    body = copy_region([element, element], 0, element)
    kinds = ["parallel"] * len(places)
    return b.insert(generic([value], [init], indexing, kinds, body)).results[0]


def costs_nothing(value: SSAValue, form: Form) -> bool:
    """Whether a value can be in a form without a copy at run time."""
    made_anywhere = isinstance(value.owner, arith.ConstantOp | tensor.EmptyOp)
    return made_anywhere or is_background(value.owner) or form.is_free(value.type)


def elements(value: SSAValue) -> int:
    """Returns the number of elements; dynamic dims are assumed."""
    assert isinstance(value.type, TensorType)
    return prod(s if s >= 0 else CPU.assumed_dim for s in value.type.get_shape())


def after(value: SSAValue) -> IndexBuilder:
    """Returns a builder that inserts after the definition of a value."""
    owner = value.owner
    at = InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner)
    return IndexBuilder(at)


def in_form(value: SSAValue, form: Form) -> SSAValue:
    """Returns a value in a form; inserts the conversion after the value's definition."""
    b, owner = after(value), value.owner
    if isinstance(owner, arith.ConstantOp):
        new = form.constant(owner)
        new.location = owner.location
        return b.insert(new).results[0]
    if isinstance(owner, tensor.EmptyOp):
        sizes = list(owner.dynamic_sizes)
        return b.insert(tensor.EmptyOp(sizes, form.type_of(value.type))).results[0]
    if not is_background(owner):
        return form.pack(value, b)
    assert isinstance(owner, linalg.GenericOp)
    rank = len(form.order)
    indexing = [select_dims(rank, [])] * len(owner.inputs) + [AffineMap.identity(rank)]
    init = in_form(owner.outputs[0], form)
    new = generic(owner.inputs, [init], indexing, ["parallel"] * rank, owner.body.clone())
    new.location = owner.location
    return b.insert(new).results[0]
