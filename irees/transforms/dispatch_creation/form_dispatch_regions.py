"""
Groups the ops that become one kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.flow import DispatchRegionOp, ReturnOp
from irees.transforms.utils.shapes import IndexBuilder, dynamic_dims
from irees.transforms.utils.structured import captured_values

DISPATCHED = (linalg.GenericOp, tensor.InsertSliceOp, tensor.ExtractSliceOp, tensor.InsertOp)


def is_dispatched(op: Operation) -> bool:
    """Whether an op computes tensor data and so has to run in a kernel."""
    if op.name.startswith("iree_linalg_ext."):
        return any(isinstance(r.type, TensorType) for r in op.results)
    return isinstance(op, DISPATCHED)


def is_cloneable(op: Operation) -> bool:
    """Whether an op is so cheap that each kernel that needs it computes it again."""
    if isinstance(op, tensor.EmptyOp):
        return True
    return is_fill(op)


def is_fill(op: Operation) -> bool:
    """Whether an op writes one scalar everywhere: a generic without tensor inputs that copies it."""
    if not isinstance(op, linalg.GenericOp) or len(op.outputs) != 1:
        return False
    if any(isinstance(i.type, TensorType) for i in op.inputs):
        return False
    if not isinstance(op.outputs[0].owner, tensor.EmptyOp):
        return False
    *body, _ = op.body.block.ops
    return all(isinstance(o, arith.ConstantOp) for o in body)


def clone_producers(region: DispatchRegionOp) -> None:
    """region uses cheap(x)  =>  region computes cheap(x) itself"""
    block = region.body.block
    while True:
        wanted = [
            v
            for v in captured_values(region)
            if isinstance(v, OpResult) and is_cloneable(v.op)
        ]
        if not wanted:
            return
        for value in wanted:
            copy = value.op.clone()
            first = block.first_op
            assert first is not None
            Rewriter.insert_op(copy, InsertPoint.before(first))
            value.replace_uses_with_if(
                copy.results[value.index], lambda use: _within(use.operation, region)
            )


def _within(op: Operation, region: Operation) -> bool:
    current: Operation | None = op
    while current is not None:
        if current is region:
            return True
        current = current.parent_op()
    return False


def make_region(group: list[Operation]) -> DispatchRegionOp:
    """ops  =>  flow.dispatch.region { ops ; flow.return what is used elsewhere }"""
    members = set(group)
    escaping: list[SSAValue] = [
        r
        for op in group
        for r in op.results
        if any(not any(_within(u.operation, m) for m in members) for u in r.uses)
    ]
    last = group[-1]
    builder = IndexBuilder(InsertPoint.before(last))
    sizes = [
        d
        for v in escaping
        if isinstance(v.type, TensorType) and DYNAMIC_INDEX in v.type.get_shape()
        for d in dynamic_dims(v, builder)
    ]
    block = Block()
    region = DispatchRegionOp(sizes, [v.type for v in escaping], Region(block))
    region.location = last.location
    Rewriter.insert_op(region, InsertPoint.before(last))
    for op in group:
        op.detach()
        block.add_op(op)
    block.add_op(ReturnOp(escaping))
    for value, result in zip(escaping, region.res, strict=True):
        value.replace_uses_with_if(result, lambda use: not _within(use.operation, region))
    return region


@dataclass(frozen=True)
class FormDispatchRegionsPass(ModulePass):
    """Groups tensor ops into dispatch regions."""

    name = "irees-form-dispatch-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            if function.is_declaration:
                continue
            groups = [[o] for o in function.walk() if is_dispatched(o) and not is_cloneable(o)]
            regions = [make_region(group) for group in groups]
            for region in regions:
                clone_producers(region)
            for value in [o for o in function.walk() if is_cloneable(o)][::-1]:
                if not any(r.uses for r in value.results):
                    Rewriter.erase_op(value)

