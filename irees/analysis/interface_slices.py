"""
The slice of a binding that a load or store accesses, indexed by the dims of the *whole* tensor.

A load or store moves a value of rank m from or to a tensor of rank n >= m. Each dim of the value is
one dim of the tensor; the other dims of the tensor have size 1 in the slice. `Slice.kept` is this
map, computed once from the sizes and the value's type. Sizes, offsets, tensor dims and their SSA
values are looked up at `kept[value_dim]`, never at the dim of the value.

A binding is contiguous and row-major, so any shape that splits or joins adjacent dims is a valid
type for it. The access must then still be a slice:

* A dim is split into a group. If the slice covers the dim, it covers all dims of the group.
  Otherwise the product of the inner dims must be static and divide the offset and the dim; the
  slice is then partial only in the first dim. The outermost dim of a tensor need not be divisible:
  no stride depends on it, and the remainder is less than one row.
* A group is joined into a dim. The slice must cover all dims of the group but the first, and
  dropped dims among them must have size 1 in the tensor too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr, TensorType
from xdsl.ir import SSAValue

from irees.analysis.affine_sums import Sum
from irees.dialects.hal import InterfaceBindingSubspanOp
from irees.dialects.iree_codegen import StoreToBufferOp
from irees.dialects.iree_tensor_ext import (
    DispatchTensorLoadOp,
    DispatchTensorStoreOp,
    DispatchTensorType,
)
from irees.dialects.sizes import Size, mixed


@dataclass
class Slice:
    """The slice of a binding that a load or store accesses."""

    op: DispatchTensorLoadOp | DispatchTensorStoreOp
    subspan: InterfaceBindingSubspanOp
    shape: list[Size]
    """Dims of the whole tensor."""
    offsets: list[Size]
    sizes: list[Size]
    kept: list[int]
    """Maps each dim of the value to its dim of the tensor."""

    @staticmethod
    def of(op: DispatchTensorLoadOp | DispatchTensorStoreOp) -> Slice | None:
        """Returns the slice of an op whose tensor is a binding, or None."""
        subspan = op.dispatch_tensor.owner
        if not isinstance(subspan, InterfaceBindingSubspanOp):
            return None
        bound = op.dispatch_tensor.type
        value = op.value if isinstance(op, DispatchTensorStoreOp) else op.result
        assert isinstance(bound, DispatchTensorType)
        assert isinstance(value.type, TensorType)
        sizes = mixed(op.static_sizes.get_values(), op.sizes)
        kept = kept_by(sizes, value.type.get_shape())
        if kept is None or any(s != 1 for s in op.static_strides.get_values()):
            return None
        return Slice(
            op,
            subspan,
            mixed(bound.bound_type.get_shape(), subspan.dynamic_dims),
            mixed(op.static_offsets.get_values(), op.offsets),
            sizes,
            kept,
        )

    def full(self, dim: int) -> bool:
        """Whether the slice covers a dim of the tensor entirely."""
        if Sum.of(self.offsets[dim]).constant() != 0:
            return False
        bound = self.op.dispatch_tensor.type
        assert isinstance(bound, DispatchTensorType)
        said = mixed(bound.bound_type.get_shape(), self.op.dims)[dim]
        size = Sum.of(self.sizes[dim])
        return size in (Sum.of(self.shape[dim]), Sum.of(said))

    def rank_reducing(self) -> bool:
        """Whether the value has fewer dims than the tensor."""
        return len(self.kept) < len(self.shape)

    def why_not_part_of(self, dim: int, group: Sequence[int]) -> str | None:
        """Returns why a part of a dim is no slice of the dims that it is split into, or None."""
        inner = prod(group[1:])
        if DYNAMIC_INDEX in group[1:] or inner <= 0:
            return f"dim {dim} is accessed in part, and its inner dims are dynamic"
        if not Sum.of(self.offsets[dim]).divisible(inner):
            return f"the offset of dim {dim} is not known to be a multiple of {inner}"
        outermost = all(d == 1 and isinstance(d, int) for d in self.shape[:dim])
        if not outermost and not Sum.of(self.shape[dim]).divisible(inner):
            return f"dim {dim} is not known to be a multiple of {inner}"
        return None

    def why_not_joined(self, dims: range) -> str | None:
        """Returns why the slice is none of the dim that adjacent dims are joined to, or None."""
        cut = next((dim for dim in dims[1:] if not self.full(dim)), None)
        if cut is None:
            return None
        return f"dim {cut} is inside a group, and the slice does not cover it"


def kept_by(sizes: Sequence[Size], value_shape: Sequence[int]) -> list[int] | None:
    """Maps value dims to tensor dims, or returns None; of several unit dims the last are kept."""
    kept: list[int] = []
    left = len(value_shape)
    for dim in reversed(range(len(sizes))):
        size = sizes[dim]
        unit = isinstance(size, int) and size == 1
        if left and (not unit or value_shape[left - 1] == 1):
            left -= 1
            kept.append(dim)
        elif not unit:
            return None
    return kept[::-1] if not left else None


def is_stored_whole(value: SSAValue) -> bool:
    """Whether a value is stored, and each store writes a whole binding or row-major buffer."""
    found = False
    for use in value.uses:
        op = use.operation
        if isinstance(op, DispatchTensorStoreOp):
            place = Slice.of(op)
            if place is None or not all(place.full(d) for d in range(len(place.shape))):
                return False
            found = True
        elif isinstance(op, StoreToBufferOp):
            assert isinstance(op.buffer.type, MemRefType)
            if not isinstance(op.buffer.type.layout, NoneAttr):
                return False
            found = True
    return found
