"""
Converts values to and from blocked forms. Part of `irees-propagate-blocked-layouts`.

Packing a value is an expand_shape, which is free, and a transpose; unpacking is the inverse. If
only unit dims would move, the transpose is omitted. Constants are packed at compile time; fills and
empty tensors are created in the form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from irees.analysis.blocked_forms import Form
from irees.analysis.paddings import is_background
from irees.dialects.resources import is_splat
from irees.dialects.storage import is_undefined
from irees.transforms.utils.constants import derived_constant
from irees.transforms.utils.shapes import IndexBuilder, dims, reassociation_attr
from irees.transforms.utils.structured import copy_region, element_type, generic
from irees.transforms.utils.tensors import empty, select_dims
from irees.transforms.utils.unit_dims import collapse, expand


def pack(form: Form, value: SSAValue, b: IndexBuilder) -> SSAValue:
    """x  =>  transpose(expand_shape(x))"""
    kind = value.type
    assert isinstance(kind, TensorType)
    parts = form.parts()
    cut_type = TensorType(kind.get_element_type(), form.static(kind, parts))
    static = cut_type.get_shape()
    sizes = zip(form.sizes(dims(value, b), parts), static, strict=True)
    dynamic = [b.value(size) for size, known in sizes if known < 0]
    cut = b.insert(
        tensor.ExpandShapeOp.build(
            operands=[value, dynamic],
            properties={
                "reassociation": reassociation_attr(form.groups()),
                "static_output_shape": DenseArrayBase.from_list(i64, static),
            },
            result_types=[cut_type],
        )
    ).results[0]
    places = [parts.index(p) for p in form.order]
    return _moved(cut, places, form.type_of(kind), form.is_free(kind), b)


def unpack(form: Form, value: SSAValue, kind: Attribute, b: IndexBuilder) -> SSAValue:
    """x  =>  collapse_shape(transpose(x)), of type `kind`"""
    assert isinstance(kind, TensorType)
    parts = form.parts()
    cut_type = TensorType(kind.get_element_type(), form.static(kind, parts))
    places = [form.order.index(p) for p in parts]
    cut = _moved(value, places, cut_type, form.is_free(kind), b)
    return b.insert(
        tensor.CollapseShapeOp.build(
            operands=[cut],
            properties={"reassociation": reassociation_attr(form.groups())},
            result_types=[kind],
        )
    ).results[0]


def packed_constant(form: Form, op: arith.ConstantOp) -> arith.ConstantOp:
    """Returns a tensor constant packed in this form."""
    kind, value = op.result.type, op.value
    assert isinstance(kind, TensorType)
    new_type = form.type_of(kind)
    if is_splat(value):
        return arith.ConstantOp(DenseIntOrFPElementsAttr(new_type, value.data))
    if isinstance(value, DenseResourceAttr) and form.is_free(kind):
        return arith.ConstantOp(DenseResourceAttr(value.resource_handle, new_type))
    parts = form.parts()
    sizes, order = form.static(kind, parts), [parts.index(p) for p in form.order]

    def make(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
        np.copyto(out, np.transpose(arrays[0].reshape(sizes), order))

    letters = "".join(f"{d}{'i' if inner else ''}" for d, inner in form.order)
    blocks = "x".join(str(size) for _, size in form.blocks)
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


def after(value: SSAValue) -> IndexBuilder:
    """Returns a builder that inserts after the definition of a value."""
    owner = value.owner
    at = InsertPoint.at_start(owner) if isinstance(owner, Block) else InsertPoint.after(owner)
    return IndexBuilder(at)


def in_form(value: SSAValue, form: Form) -> SSAValue:
    """Returns a value in a form; inserts the conversion after the value's definition."""
    b, owner = after(value), value.owner
    if isinstance(owner, arith.ConstantOp):
        new = packed_constant(form, owner)
        new.location = owner.location
        return b.insert(new).results[0]
    if is_undefined(owner):
        sizes = list(owner.dynamic_sizes)
        return b.insert(tensor.EmptyOp(sizes, form.type_of(value.type))).results[0]
    if not is_background(owner):
        return pack(form, value, b)
    assert isinstance(owner, linalg.GenericOp)
    rank = len(form.order)
    indexing = [select_dims(rank, [])] * len(owner.inputs) + [AffineMap.identity(rank)]
    init = in_form(owner.outputs[0], form)
    new = generic(owner.inputs, [init], indexing, ["parallel"] * rank, owner.body.clone())
    new.location = owner.location
    return b.insert(new).results[0]
