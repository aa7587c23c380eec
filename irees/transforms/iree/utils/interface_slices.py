"""
Reshapes slices of dispatch tensors. `analysis/interface_slices.py` says which reshapes are legal.

New lists of sizes are built in one pass over the dims of the tensor. New dims are computed before
the binding, offsets and sizes at the load or store, which does not move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint

from irees.analysis.affine_sums import Sum
from irees.analysis.interface_slices import Slice, kept_by
from irees.dialects.iree_tensor_ext import (
    DispatchTensorLoadOp,
    DispatchTensorStoreOp,
    DispatchTensorType,
)
from irees.transforms.utils.affine_sums import build_sum
from irees.transforms.utils.reshapes import Refused, available
from irees.transforms.utils.shapes import IndexBuilder, Size


@dataclass
class Reshaped:
    """Shape, offsets and sizes of a slice of the reshaped binding."""

    shape: list[Size]
    offsets: list[Size]
    sizes: list[Size]


class Reshaper:
    """Computes a reshaped slice: its dims before the binding, offsets and sizes before the op."""

    def __init__(self, slice: Slice):
        self.slice = slice
        self.outside = IndexBuilder(InsertPoint.before(slice.subspan))
        self.inside = IndexBuilder(InsertPoint.before(slice.op))

    def expanded(
        self, groups: Sequence[Sequence[int]], given: Sequence[Sequence[Size]] | None = None
    ) -> Reshaped:
        """
        Returns the slice with each dim of the value split into the sizes of its group. `given` has
        the values of dynamic sizes, if available. Raises Refused.
        """
        s = self.slice
        plans = [
            None if len(group) == 1 else self._plan(dim, group, None if given is None else given[i])
            for i, (dim, group) in enumerate(zip(s.kept, groups, strict=True))
        ]
        by_dim = dict(zip(s.kept, plans, strict=True))
        result = Reshaped([], [], [])
        for dim in range(len(s.shape)):
            plan = by_dim.get(dim)
            if plan is None:
                parts = [s.shape[dim]], [s.offsets[dim]], [s.sizes[dim]]
            else:
                parts = plan()
            for mine, more in zip((result.shape, result.offsets, result.sizes), parts):
                mine += more
        return result

    def _plan(self, dim: int, group: Sequence[int], given: Sequence[Size] | None):
        """Returns a function that builds dims, offsets and sizes of a group. Raises Refused."""
        if self.slice.full(dim):
            return self._whole(dim, group, given)
        return self._part(dim, group)

    def _whole(self, dim: int, group: Sequence[int], given: Sequence[Size] | None):
        s, zeros = self.slice, list[Size]([0] * len(group))
        dynamic = [k for k, size in enumerate(group) if size == DYNAMIC_INDEX]
        known = prod(size for size in group if size != DYNAMIC_INDEX)
        if not dynamic or (len(dynamic) == 1 and known):

            def all_of_it():
                dims: list[Size] = list(group)
                if dynamic:
                    dims[dynamic[0]] = self._quotient(s.shape[dim], known)
                return dims, zeros, list(dims)

            return all_of_it
        if given is None or not available(given, s.subspan):
            raise Refused(f"dim {dim}: several dims of its group are dynamic")
        return lambda: (list(given), zeros, list(given))

    def _part(self, dim: int, group: Sequence[int]):
        s, inner = self.slice, prod(group[1:])
        if (why := s.why_not_part_of(dim, group)) is not None:
            raise Refused(why)

        def part_of_it():
            first = build_sum(Sum.of(s.shape[dim]).floordiv(inner), self.outside)
            offset = build_sum(Sum.of(s.offsets[dim]).floordiv(inner), self.inside)
            size: Size = group[0]
            if size == DYNAMIC_INDEX:
                size = build_sum(Sum.of(s.sizes[dim]).floordiv(inner), self.inside)
            zeros = [0] * (len(group) - 1)
            return [first, *group[1:]], [offset, *zeros], [size, *group[1:]]

        return part_of_it

    def _quotient(self, dim: Size, divisor: int) -> Size:
        """Returns dim / divisor, which is exact; IREE's two patterns emit different ops for it."""
        if isinstance(self.slice.op, DispatchTensorStoreOp) and not self.slice.rank_reducing():
            return build_sum(Sum.of(dim).ceildiv(divisor), self.outside)
        if isinstance(dim, int) or divisor == 1:
            return dim if isinstance(dim, SSAValue) else dim // divisor
        assert self.slice.subspan.parent is not None
        by = IndexBuilder(InsertPoint.at_start(self.slice.subspan.parent)).value(divisor)
        return self.outside.insert(arith.DivSIOp(dim, by)).results[0]

    def collapsed(self, groups: Sequence[Sequence[int]]) -> Reshaped:
        """Returns the slice with the value dims of each group joined. Raises Refused."""
        s = self.slice
        spans = [range(s.kept[group[0]], s.kept[group[-1]] + 1) for group in groups]
        for span in spans:
            if (why := s.why_not_joined(span)) is not None:
                raise Refused(why)
        first = {span[0]: span for span in spans}
        covered = {dim for span in spans for dim in span[1:]}
        result = Reshaped([], [], [])
        for dim in range(len(s.shape)):
            if dim in covered:
                continue
            span = first.get(dim, range(dim, dim + 1))
            if len(span) == 1:
                parts = s.shape[dim], s.offsets[dim], s.sizes[dim]
            else:
                parts = self._joined(span)
            for mine, one in zip((result.shape, result.offsets, result.sizes), parts, strict=True):
                mine.append(one)
        return result

    def _joined(self, span: range) -> tuple[Size, Size, Size]:
        s = self.slice
        inner = Sum.of(1)
        for dim in span[1:]:
            inner = inner * s.shape[dim]
        whole = build_sum(Sum.of(s.shape[span[0]]) * inner, self.outside)
        if s.full(span[0]):
            return whole, 0, whole
        offset = build_sum(Sum.of(s.offsets[span[0]]) * inner, self.inside)
        return whole, offset, build_sum(Sum.of(s.sizes[span[0]]) * inner, self.inside)

    def load(self, new: Reshaped, type: TensorType) -> DispatchTensorLoadOp:
        """Emits a load of a type before the old one."""
        operands, properties = self._slice(new, type)
        op = DispatchTensorLoadOp(operands=operands, properties=properties, result_types=[type])
        self.inside.insert(op)
        return op

    def store(self, new: Reshaped, value: SSAValue) -> DispatchTensorStoreOp:
        """Emits a store of a value before the old one."""
        assert isinstance(value.type, TensorType)
        operands, properties = self._slice(new, value.type)
        op = DispatchTensorStoreOp(operands=[value, *operands], properties=properties)
        self.inside.insert(op)
        return op

    def _slice(self, new: Reshaped, type: TensorType):
        bound = self.slice.subspan.result.type
        assert isinstance(bound, DispatchTensorType)
        static = [d if isinstance(d, int) else DYNAMIC_INDEX for d in new.shape]
        dims = [d for d in new.shape if isinstance(d, SSAValue)]
        whole = TensorType(bound.bound_type.element_type, static)
        subspan = self.slice.subspan.with_type(DispatchTensorType(bound.access, whole), dims)
        self.outside.insert(subspan)
        # Dynamic dims of the value type need an SSA size, even if it is a known constant.
        sizes = list(new.sizes)
        for value_dim, dim in enumerate(kept_by(new.sizes, type.get_shape()) or ()):
            if type.get_shape()[value_dim] == DYNAMIC_INDEX:
                sizes[dim] = self.inside.value(sizes[dim])
        lists = [new.offsets, sizes, [1] * len(sizes)]
        operands = [
            subspan.result,
            dims,
            *([v for v in x if isinstance(v, SSAValue)] for x in lists),
        ]
        properties: dict[str, Attribute] = {
            f"static_{name}": DenseArrayBase.from_list(
                i64, [v if isinstance(v, int) else DYNAMIC_INDEX for v in values]
            )
            for name, values in zip(("offsets", "sizes", "strides"), lists, strict=True)
        }
        return operands, properties
