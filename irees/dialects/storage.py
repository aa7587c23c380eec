"""
What ops show, update, read and write: one table per question, by op name.

Passes ask these functions and name no op. An op that belongs into an answer is a row here; the ops
of a plug-in answer by their interface (`irees.interfaces`). MLIR: `ViewLikeOpInterface`,
`SubsetInsertionOpInterface`, `ShapedDimOpInterface`, memory effects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from xdsl.dialects import memref, tensor
from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import MemoryAllocEffect

from irees.dialects.sizes import Size, kept_dims, mixed
from irees.interfaces import loops_model_of, outputs_of

Maker = Operation | Block
"""The owner of a value."""

VIEWS = frozenset(
    """
    irees.view_bytes irees.view_parts memref.cast memref.collapse_shape memref.expand_shape
    memref.extract_strided_metadata memref.memory_space_cast memref.reinterpret_cast memref.subview
    memref.transpose memref.view
    """.split()
)
"""Ops whose first result shows elements of the buffer that is their first operand."""

SLICES = frozenset("memref.subview tensor.extract_slice".split())
"""Ops whose result is a rectangular part of their first operand."""

RESHAPES = frozenset(
    """
    irees.view_parts tensor.cast tensor.collapse_shape tensor.expand_shape tensor.reshape
    """.split()
)
"""Ops whose result has all elements of their first operand, in row-major order."""

GROUPINGS = frozenset("tensor.collapse_shape tensor.expand_shape".split())
"""Reshapes that say which dims they join or split."""

DIMS = frozenset("memref.dim tensor.dim".split())
"""Ops whose result is a size of their first operand."""

UPDATES = frozenset("tensor.insert tensor.insert_slice".split())
"""Ops whose result is their second operand with some elements replaced by the first operand."""

ACCESSES = {
    "affine.load": ("memref", "indices"),
    "affine.store": ("memref", "indices"),
    "affine.vector_load": ("memref", "indices"),
    "affine.vector_store": ("memref", "indices"),
    "memref.atomic_rmw": ("memref", "indices"),
    "memref.load": ("memref", "indices"),
    "memref.store": ("memref", "indices"),
    "vector.gather": ("base", "offsets"),
    "vector.load": ("base", "indices"),
    "vector.maskedload": ("base", "indices"),
    "vector.maskedstore": ("base", "indices"),
    "vector.scatter": ("base", "offsets"),
    "vector.store": ("base", "indices"),
    "vector.transfer_read": ("source", "indices"),
    "vector.transfer_write": ("source", "indices"),
}
"""The operand names of each access to elements of a buffer: the buffer and the indices."""

STORES = frozenset(
    """
    affine.store affine.vector_store memref.store vector.maskedstore vector.scatter vector.store
    vector.transfer_write
    """.split()
)
"""Accesses that write and do not read."""

IN_A_ROW = frozenset("memref.atomic_rmw memref.load memref.store vector.load vector.store".split())
"""Accesses to one element, or to as many consecutive elements as the vector has."""

UPDATED = frozenset(("memref.atomic_rmw",))
"""Accesses that read and write."""


def is_allocation(op: Maker) -> TypeGuard[Operation]:
    """Whether an op allocates the buffer that is its result."""
    return isinstance(op, Operation) and op.has_trait(
        MemoryAllocEffect, value_if_unregistered=False
    )


def is_on_stack(op: Maker) -> TypeGuard[Operation]:
    """Whether an op allocates a buffer that lives as long as the block around it."""
    return isinstance(op, Operation) and op.name == "memref.alloca"


def is_view(op: Maker) -> TypeGuard[Operation]:
    """Whether the result of an op shows the buffer that is its first operand."""
    return isinstance(op, Operation) and op.name in VIEWS


def root(buffer: SSAValue) -> SSAValue:
    """Returns the allocation or argument at the base of a chain of views."""
    while isinstance(buffer, OpResult) and is_view(buffer.op):
        buffer = buffer.op.operands[0]
    return buffer


def users(buffer: SSAValue) -> Iterator[Operation]:
    """Yields the users of a buffer and of its views, without the views."""
    for use in buffer.uses:
        if is_view(use.operation):
            yield from users(use.operation.results[0])
        else:
            yield use.operation


@dataclass(frozen=True)
class Slice:
    """A rectangular part of a value; `kept` has the dim of `source` of each dim of the part."""

    source: SSAValue
    offsets: list[Size]
    sizes: list[Size]
    strides: list[Size]
    kept: Sequence[int]


def slice_of(op: Maker) -> Slice | None:
    """Returns the part that an op shows of its first operand, or None."""
    if not isinstance(op, Operation) or op.name not in SLICES:
        return None
    return _slice(op, op.operands[0], op.results[0])


def is_slice(op: Maker) -> TypeGuard[tensor.ExtractSliceOp]:
    """Whether an op shows a part of a tensor."""
    return isinstance(op, Operation) and op.name == "tensor.extract_slice"


def inserted(op: Maker) -> Slice | None:
    """Returns the part of its second operand that an op replaces by its first operand, or None."""
    if not isinstance(op, Operation) or op.name != "tensor.insert_slice":
        return None
    return _slice(op, op.operands[1], op.operands[0])


def _slice(op: Operation, source: SSAValue, part: SSAValue) -> Slice:
    kind = part.type
    assert isinstance(kind, ShapedType)
    offsets, sizes, strides = (
        mixed(op.properties[f"static_{name}"].get_values(), getattr(op, name))  # type: ignore
        for name in ("offsets", "sizes", "strides")
    )
    return Slice(source, offsets, sizes, strides, kept_dims(sizes, kind.get_shape()))


def is_slot(op: Maker) -> TypeGuard[memref.ViewOp]:
    """Whether an op shows bytes of an arena as a buffer."""
    return isinstance(op, Operation) and op.name == "memref.view"


def is_dim(op: Maker) -> TypeGuard[memref.DimOp | tensor.DimOp]:
    """Whether an op reads only the size of its operand."""
    return isinstance(op, Operation) and op.name in DIMS


def is_reshape(op: Maker) -> TypeGuard[Operation]:
    """Whether the result of an op has all elements of its tensor operand, in order."""
    return isinstance(op, Operation) and op.name in RESHAPES


def is_grouping(
    op: Maker,
) -> TypeGuard[tensor.CollapseShapeOp | tensor.ExpandShapeOp]:
    """Whether an op joins or splits dims of its tensor operand."""
    return isinstance(op, Operation) and op.name in GROUPINGS


def is_undefined(op: Maker) -> TypeGuard[tensor.EmptyOp]:
    """Whether an op makes a tensor whose elements are undefined."""
    return isinstance(op, Operation) and op.name == "tensor.empty"


def accessed(op: Operation) -> SSAValue | None:
    """Returns the buffer of which an op reads or writes elements at its indices, or None."""
    names = ACCESSES.get(op.name)
    return None if names is None else getattr(op, names[0])


def loaded(op: Operation) -> SSAValue | None:
    """Returns the buffer of which an op only reads elements, or None."""
    return None if op.name in STORES or op.name in UPDATED else accessed(op)


def stored(op: Operation) -> SSAValue | None:
    """Returns the buffer of which an op only writes elements, or None."""
    return accessed(op) if op.name in STORES else None


def updated(op: Operation, result: int | None = None) -> int | None:
    """
    Returns the number of the operand of which a result replaces some elements, or None. The result
    is the only one unless its number is given.
    """
    if op.name in UPDATES:
        return 1
    if not getattr(loops_model_of(op), "updates", False):
        return None
    count = len(outputs_of(op))
    if result is None and count != 1:
        return None
    return len(op.operands) - count + (result or 0)


NOT_EMPTY = "irees.not_empty"
"""Attribute of a `tensor.extract` of a tensor that has elements if the extract is run."""

IN_BOUNDS = "irees.in_bounds"
"""Attribute of a `tensor.extract` with the dims whose indices are in bounds."""


def is_extract(op: Maker) -> TypeGuard[tensor.ExtractOp]:
    """Whether an op reads one element of a tensor at its indices."""
    return isinstance(op, Operation) and op.name == "tensor.extract"
