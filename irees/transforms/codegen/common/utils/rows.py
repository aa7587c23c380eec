"""
Helpers to load, store and iterate over rows of buffers. Part of `irees-lower-linalg-ext-to-loops`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim


def load(buffer: SSAValue, indices: Sequence[Size], b: IndexBuilder) -> SSAValue:
    """buffer[indices]"""
    return b.insert(memref.LoadOp.get(buffer, [b.value(i) for i in indices])).results[0]


def store(value: SSAValue, buffer: SSAValue, indices: Sequence[Size], b: IndexBuilder) -> None:
    """buffer[indices] = value"""
    b.insert(memref.StoreOp.get(value, buffer, [b.value(i) for i in indices]))


def select(condition: SSAValue, yes: Size, no: Size, b: IndexBuilder) -> SSAValue:
    """condition ? yes : no"""
    return b.insert(arith.SelectOp(condition, b.value(yes), b.value(no))).results[0]


def compare(lhs: Size, rhs: Size, predicate: str, b: IndexBuilder) -> SSAValue:
    """Returns an index comparison."""
    return b.insert(arith.CmpiOp(b.value(lhs), b.value(rhs), predicate)).results[0]


def below(index: SSAValue, size: Size, b: IndexBuilder) -> SSAValue:
    """
    Returns an index, at most size - 1. Used for an index that comes from memory and is in bounds:
    no proof of an access follows how it came into the memory.
    """
    return b.insert(arith.MinUIOp(index, b.value(b.sub(size, 1)))).results[0]


def rows(
    buffer: SSAValue, dims: Sequence[int], at: IndexBuilder,
    inside: Callable[[dict[int, Size], IndexBuilder], None],
) -> None:  # fmt: skip
    """Emits loops over some dims of a buffer."""
    if not dims:
        inside({}, at)
        return
    close, iv, b = for_loop(at, 0, buffer_dim(buffer, dims[0], at), 1)
    rows(buffer, dims[1:], b, lambda ivs, c: inside({dims[0]: iv, **ivs}, c))
    close()


def place(ivs: dict[int, Size], dim: int, index: Size) -> list[Size]:
    """Returns the indices of element `index` along `dim` of the row at `ivs`."""
    return [index if d == dim else ivs[d] for d in range(len(ivs) + 1)]


def other_dims(buffer: SSAValue, dim: int) -> list[int]:
    """Returns all dims of a buffer except one."""
    assert isinstance(buffer.type, MemRefType)
    return [d for d in range(buffer.type.get_num_dims()) if d != dim]


def scratch(element: Attribute, size: Size, at: IndexBuilder) -> SSAValue:
    """Allocates a 1-D scratch buffer."""
    static = size if isinstance(size, int) else DYNAMIC_INDEX
    dynamic = [] if isinstance(size, int) else [size]
    return at.insert(memref.AllocOp(dynamic, [], MemRefType(element, [static]))).results[0]


def outside(op: Operation) -> IndexBuilder:
    """Returns a builder before the tile loop around an op, where scratch sizes must be known."""
    parent = op.parent_op()
    inside = parent is not None and parent.name == "scf.forall"
    return IndexBuilder(InsertPoint.before(parent if inside else op))


def load_or_position(
    source: SSAValue | None, kind: Attribute, ivs: dict[int, Size], dim: int, index: Size,
    b: IndexBuilder,
) -> SSAValue:  # fmt: skip
    """Loads an element of a row; None stands for the positions along `dim`, as integers."""
    if source is None:
        return as_type(b.value(index), kind, b)
    return load(source, place(ivs, dim, index), b)


def as_type(value: SSAValue, kind: Attribute, b: IndexBuilder) -> SSAValue:
    """Casts an index to an integer type, or the reverse."""
    if value.type == kind:
        return value
    return b.insert(arith.IndexCastOp(value, kind)).results[0]
