"""
Folds reshapes into the loads and stores of dispatch bindings.

A binding is contiguous memory, so an adjacent reshape only changes the type of the same bytes:

    %t = subspan : writeonly tensor<?x32xf32>{%n}
    %c = tensor.collapse_shape %src [[0, 1]] : tensor<2x?xf32> into tensor<?xf32>
    store %c, %t, offsets = [0, 0], sizes = [%n, 1] : tensor<?xf32>     // column 0
  =>
    %h = arith.divsi %n, 2
    %t = subspan : writeonly tensor<2x?x32xf32>{%h}
    store %src, %t, offsets = [0, 0, 0], sizes = [2, %h, 1] : tensor<2x?xf32>

There are four patterns: collapse and expand, of loads and of stores. Slices may be partial and may
drop dims anywhere; `analysis/interface_slices.py` has the rules, indexed by the dims of the whole
tensor. New dims are computed before the binding, offsets and sizes at the load or store, which does
not move: the binding may have other stores nearby.

Left unchanged, with a remark: strides other than 1; a group with several dynamic dims, unless the
`output_shape` of an expand is available before the binding; a partial slice whose offset or tensor
dim is not provably a multiple of the group's inner dims; and a slice that must be full but whose
size is not *the same value* as the dim. IREE's `FoldCollapseShapeIntoInterfaceTensorStore` folds
some of the latter, see `@no_other_size` in the lit file. IREE:
`iree-codegen-fold-reshape-into-interface-tensor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from irees.analysis.interface_slices import Slice
from irees.dialects.hal import InterfaceBindingSubspanOp
from irees.dialects.iree_tensor_ext import DispatchTensorLoadOp, DispatchTensorStoreOp
from irees.remarks import remark
from irees.transforms.iree.utils.interface_slices import Reshaper
from irees.transforms.utils.greedy import rewrite_greedily
from irees.transforms.utils.reshapes import Groups, Refused
from irees.transforms.utils.shapes import mixed, reassociation

_DROPPABLE = (
    tensor.CollapseShapeOp,
    tensor.ExpandShapeOp,
    DispatchTensorLoadOp,
    InterfaceBindingSubspanOp,
)


def _erase_unused(value: SSAValue, rewriter: PatternRewriter) -> None:
    """Erases the op that defines a value if unused, and then its unused producers."""
    op = value.owner
    if not isinstance(op, _DROPPABLE) or any(result.uses for result in op.results):
        return
    operands = tuple(op.operands)
    rewriter.erase(op)
    for operand in operands:
        _erase_unused(operand, rewriter)


def _refused(op: Operation, error: Refused) -> None:
    remark("missed", FoldReshapeIntoInterfaceTensorPass.name, op, str(error))


class FoldIntoLoad(RewritePattern):
    """reshape(load binding) => load (binding with joined or split dims)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: tensor.CollapseShapeOp | tensor.ExpandShapeOp, rewriter: PatternRewriter
    ):
        load, groups = op.src.owner, reassociation(op)
        if not isinstance(load, DispatchTensorLoadOp) or (place := Slice.of(load)) is None:
            return
        if not groups or (isinstance(op, tensor.ExpandShapeOp) and _goes_to_a_full_store(op)):
            return
        assert isinstance(op.result.type, TensorType)
        reshaper = Reshaper(place)
        try:
            if isinstance(op, tensor.CollapseShapeOp):
                new = reshaper.collapsed(groups)
            else:
                given = mixed(op.static_output_shape.get_values(), op.dynamic_output_shape)
                sizes = _by_group(groups, op.result.type.get_shape())
                new = reshaper.expanded(sizes, _by_group(groups, given))
        except Refused as error:
            return _refused(op, error)
        rewriter.replace(op, [], [reshaper.load(new, op.result.type).result])
        _erase_unused(load.result, rewriter)


T = TypeVar("T")


def _by_group(groups: Groups, values: Sequence[T]) -> list[list[T]]:
    return [[values[i] for i in group] for group in groups]


def _goes_to_a_full_store(op: tensor.ExpandShapeOp) -> bool:
    """Whether the expand can fold into a full store instead, which leaves fewer dims."""
    use = op.result.get_user_of_unique_use()
    if not isinstance(use, DispatchTensorStoreOp) or (place := Slice.of(use)) is None:
        return False
    return all(place.full(dim) for dim in range(len(place.shape)))


class FoldIntoStore(RewritePattern):
    """store(reshape(x), binding) => store(x, binding with joined or split dims)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DispatchTensorStoreOp, rewriter: PatternRewriter):
        reshape = op.value.owner
        if not isinstance(reshape, tensor.CollapseShapeOp | tensor.ExpandShapeOp):
            return
        groups, place = reassociation(reshape), Slice.of(op)
        if not groups or place is None:
            return
        assert isinstance(reshape.src.type, TensorType)
        reshaper = Reshaper(place)
        try:
            if isinstance(reshape, tensor.ExpandShapeOp):
                new = reshaper.collapsed(groups)
            else:
                new = reshaper.expanded(_by_group(groups, reshape.src.type.get_shape()))
        except Refused as error:
            return _refused(op, error)
        reshaper.store(new, reshape.src)
        rewriter.erase(op)
        _erase_unused(reshape.result, rewriter)
        _erase_unused(place.subspan.result, rewriter)


PATTERNS: tuple[RewritePattern, ...] = (FoldIntoLoad(), FoldIntoStore())


@dataclass(frozen=True)
class FoldReshapeIntoInterfaceTensorPass(ModulePass):
    """Folds reshapes of loaded or stored tensors into the type of the binding."""

    name = "irees-fold-reshape-into-interface-tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_greedily(self.name, op, PATTERNS)
