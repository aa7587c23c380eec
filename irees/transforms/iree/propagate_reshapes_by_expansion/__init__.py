"""
Propagates reshapes through the ops of a dispatch until they fold into a load or store.

    %c = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xf16> into tensor<12xf16>
    %y = linalg.copy ins(%c) outs(%d)
    iree_codegen.store_to_buffer %y, %m : tensor<12xf16> into memref<12xf16>
  =>
    %e = tensor.expand_shape %d [[0, 1]] output_shape [3, 4]
    %y = linalg.copy ins(%x) outs(%e)
    %n = memref.expand_shape %m [[0, 1]] output_shape [3, 4]
    iree_codegen.store_to_buffer %y, %n : tensor<3x4xf16> into memref<3x4xf16>

Dims are only split, never joined. A collapse moves down through an op, which gets more loops; an
expand moves up. They cancel where they meet, become an empty tensor, or fold into a binding
(`irees-fold-reshape-into-interface-tensor`) or a buffer. Destinations of workgroup loops and values
carried by `scf.for` take the shape that the loop body uses. A bitcast of the last dim moves up
through a slice of other dims.

An op with a `lowering_config` keeps its loops, since the config refers to them. The destination of
a loop is kept if a slice offset is not provably a multiple of the inner dims; IREE rounds it down,
see `@no_odd_step` in the lit file. IREE: `iree-codegen-propagate-reshapes-by-expansion`;
`iree_codegen.inner_tiled` is not supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import MemRefType, ModuleOp, NoneAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from irees.dialects.iree_codegen import LoadFromBufferOp, StoreToBufferOp
from irees.dialects.iree_tensor_ext import BitCastOp, DispatchTensorLoadOp
from irees.dialects.upstream.tensor import ParallelInsertSliceOp
from irees.remarks import remark
from irees.rewrites import Fuel, count_rewrite, limit_reached
from irees.transforms.iree.fold_reshape_into_interface_tensor import PATTERNS
from irees.transforms.iree.propagate_reshapes_by_expansion.loop_destinations import (
    expand_for,
    expand_forall,
)
from irees.transforms.utils.greedy import rewrite_greedily
from irees.transforms.utils.reshapes import (
    Refused,
    available,
    bitcast_of_slice,
    collapse,
    expand,
    fold_collapse,
    fold_expand,
    into_producer,
    through_op,
)
from irees.transforms.utils.shapes import IndexBuilder, dim, mixed, reassociation


def _like(buffer: SSAValue, shape: Sequence[int]) -> MemRefType:
    """Returns the type of a buffer with another shape."""
    assert isinstance(buffer.type, MemRefType)
    kind = buffer.type
    return MemRefType(kind.element_type, shape, kind.layout, kind.memory_space)


def _row_major(buffer: SSAValue) -> bool:
    return isinstance(buffer.type, MemRefType) and isinstance(buffer.type.layout, NoneAttr)


def store_to_buffer(op: StoreToBufferOp) -> bool:
    """store(reshape(x), m) => store(x, reshape back(m))"""
    source = op.tensor.owner
    if not isinstance(source, tensor.CollapseShapeOp | tensor.ExpandShapeOp):
        return False
    groups = reassociation(source)
    if not groups or not _row_major(op.buffer):
        return False
    at = IndexBuilder(InsertPoint.before(op))
    kind = source.src.type
    assert isinstance(kind, TensorType)
    like = _like(op.buffer, kind.get_shape())
    if isinstance(source, tensor.ExpandShapeOp):
        buffer = collapse(op.buffer, groups, like, at)
    else:
        sizes = [dim(source.src, i, at) for i in range(len(kind.get_shape()))]
        buffer = expand(op.buffer, groups, sizes, like, at)
    Rewriter.replace_op(op, StoreToBufferOp(source.src, buffer), [])
    return True


def load_from_buffer(op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> bool:
    """reshape(load(m)) => load(reshape(m))"""
    load = op.src.owner
    if not isinstance(load, LoadFromBufferOp) or not load.tensor.has_one_use():
        return False
    groups = reassociation(op)
    if not groups or not _row_major(load.buffer):
        return False
    at = IndexBuilder(InsertPoint.before(load))
    kind = op.result.type
    assert isinstance(kind, TensorType)
    like = _like(load.buffer, kind.get_shape())
    if isinstance(op, tensor.CollapseShapeOp):
        buffer = collapse(load.buffer, groups, like, at)
    else:
        sizes = mixed(op.static_output_shape.get_values(), op.dynamic_output_shape)
        if not available(sizes, load):
            return False
        buffer = expand(load.buffer, groups, sizes, like, at)
    new = at.insert(LoadFromBufferOp(buffer, kind))
    Rewriter.replace_op(op, [], new.results)
    return True


def step(op: Operation) -> bool:
    """Applies one rewrite at an op; returns whether it did. Raises Refused."""
    match op:
        case tensor.CollapseShapeOp():
            return fold_collapse(op) or load_from_buffer(op)
        case tensor.ExpandShapeOp():
            return fold_expand(op) or load_from_buffer(op) or into_producer(op)
        case StoreToBufferOp():
            return store_to_buffer(op)
        case BitCastOp():
            return bitcast_of_slice(op)
        case ParallelInsertSliceOp():
            return expand_forall(op)
        case scf.ForOp():
            return expand_for(op)
        case _:
            return through_op(op)


def _erase_dead_code(module: ModuleOp) -> None:
    for op in list(module.walk())[::-1]:
        unused = op.results and not any(result.uses for result in op.results)
        if unused and (is_side_effect_free(op) or isinstance(op, _LOADS)):
            Rewriter.erase_op(op)


_LOADS = (LoadFromBufferOp, DispatchTensorLoadOp)


@dataclass(frozen=True)
class PropagateReshapesByExpansionPass(ModulePass):
    """Propagates reshapes to the loads and stores of a dispatch, and folds them there."""

    name = "irees-propagate-reshapes-by-expansion"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        refused: list[tuple[Operation, str]] = []

        def once(inner: Operation) -> bool:
            # An earlier step of this round may have erased the op.
            if inner.parent is None or limit_reached():
                return False
            try:
                done = step(inner)
            except Refused as error:
                refused.append((inner, str(error)))
                return False
            if done:
                count_rewrite(self.name, inner, f"propagation through {inner.name}")
            return done

        fuel = Fuel.of(self.name, op)
        rewrite_greedily(self.name, op, PATTERNS)
        while not fuel.is_spent and any([once(inner) for inner in list(op.walk())]):
            fuel.burn("round of propagation")
            refused.clear()
            _erase_dead_code(op)
            rewrite_greedily(self.name, op, PATTERNS)
        for inner, text in refused:
            remark("missed", self.name, inner, text)
        _erase_dead_code(op)
