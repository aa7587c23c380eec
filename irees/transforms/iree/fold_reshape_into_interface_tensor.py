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
drop dims anywhere; `utils/interface_slices.py` has the rules, and explains why it indexes
everything by the dim of the whole tensor. New dims are computed before the binding, offsets and
sizes at the load or store, which does not move: the binding may have other stores nearby.

Left unchanged, with a remark: strides other than 1; a group with several dynamic dims, unless the
`output_shape` of an expand is available before the binding; a partial slice whose offset or tensor
dim is not provably a multiple of the group's inner dims; and a slice that must be full but whose
size is not *the same value* as the dim. IREE's `FoldCollapseShapeIntoInterfaceTensorStore` folds
some of the latter, see `@no_other_size` in the lit file. IREE:
`iree-codegen-fold-reshape-into-interface-tensor`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from irees.dialects.hal import InterfaceBindingSubspanOp
from irees.dialects.iree_tensor_ext import DispatchTensorLoadOp, DispatchTensorStoreOp
from irees.remarks import remark
from irees.transforms.iree.utils.interface_slices import Reshaper, Slice
from irees.transforms.utils.greedy import rewrite_greedily
from irees.transforms.utils.reshapes import Refused
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


class CollapseOfLoad(RewritePattern):
    """collapse(load binding) => load (binding with joined dims)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tensor.CollapseShapeOp, rewriter: PatternRewriter):
        load = op.src.owner
        if not isinstance(load, DispatchTensorLoadOp) or (place := Slice.of(load)) is None:
            return
        assert isinstance(op.result.type, TensorType)
        groups = reassociation(op)
        if not groups:
            return
        reshaper = Reshaper(place)
        try:
            new = reshaper.collapsed(groups)
        except Refused as error:
            return _refused(op, error)
        rewriter.replace(op, [], [reshaper.load(new, op.result.type).result])
        _erase_unused(load.result, rewriter)


class ExpandOfLoad(RewritePattern):
    """expand(load binding) => load (binding with split dims)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tensor.ExpandShapeOp, rewriter: PatternRewriter):
        load = op.src.owner
        if not isinstance(load, DispatchTensorLoadOp) or (place := Slice.of(load)) is None:
            return
        groups = reassociation(op)
        if not groups or _goes_to_a_full_store(op):
            return
        shape = op.result.type.get_shape()
        given = mixed(op.static_output_shape.get_values(), op.dynamic_output_shape)
        reshaper = Reshaper(place)
        try:
            new = reshaper.expanded(
                [[shape[i] for i in group] for group in groups],
                [[given[i] for i in group] for group in groups],
            )
        except Refused as error:
            return _refused(op, error)
        rewriter.replace(op, [], [reshaper.load(new, op.result.type).result])
        _erase_unused(load.result, rewriter)


def _goes_to_a_full_store(op: tensor.ExpandShapeOp) -> bool:
    """Whether the expand can fold into a full store instead, which leaves fewer dims."""
    use = op.result.get_user_of_unique_use()
    if not isinstance(use, DispatchTensorStoreOp) or (place := Slice.of(use)) is None:
        return False
    return all(place.full(dim) for dim in range(len(place.shape)))


class StoreOfExpand(RewritePattern):
    """store(expand(x), binding) => store(x, binding with joined dims)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DispatchTensorStoreOp, rewriter: PatternRewriter):
        expand = op.value.owner
        if not isinstance(expand, tensor.ExpandShapeOp) or (place := Slice.of(op)) is None:
            return
        groups = reassociation(expand)
        if not groups:
            return
        reshaper = Reshaper(place)
        try:
            new = reshaper.collapsed(groups)
        except Refused as error:
            return _refused(op, error)
        reshaper.store(new, expand.src)
        rewriter.erase(op)
        _erase_unused(expand.result, rewriter)
        _erase_unused(place.subspan.result, rewriter)


class StoreOfCollapse(RewritePattern):
    """store(collapse(x), binding) => store(x, binding with split dims)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DispatchTensorStoreOp, rewriter: PatternRewriter):
        collapse = op.value.owner
        if not isinstance(collapse, tensor.CollapseShapeOp) or (place := Slice.of(op)) is None:
            return
        groups = reassociation(collapse)
        if not groups:
            return
        assert isinstance(collapse.src.type, TensorType)
        shape = collapse.src.type.get_shape()
        reshaper = Reshaper(place)
        try:
            new = reshaper.expanded([[shape[i] for i in group] for group in groups])
        except Refused as error:
            return _refused(op, error)
        reshaper.store(new, collapse.src)
        rewriter.erase(op)
        _erase_unused(collapse.result, rewriter)
        _erase_unused(place.subspan.result, rewriter)


PATTERNS: tuple[RewritePattern, ...] = (
    CollapseOfLoad(),
    ExpandOfLoad(),
    StoreOfExpand(),
    StoreOfCollapse(),
)


@dataclass(frozen=True)
class FoldReshapeIntoInterfaceTensorPass(ModulePass):
    """Folds reshapes of loaded or stored tensors into the type of the binding."""

    name = "irees-fold-reshape-into-interface-tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_greedily(self.name, op, PATTERNS)
