"""
Clones producers into dispatch regions if recomputing them is cheaper than reading them.

    %f = linalg.fill ins(%0) outs(%e)             %r = flow.dispatch.region {
    %r = flow.dispatch.region {                     %f = linalg.fill ins(%0) outs(%e')
      %m = linalg.matmul ... outs(%f)       =>      %m = linalg.matmul ... outs(%f)
      flow.return %m                                flow.return %m
    }                                             }

`analysis/dispatch_roles.py` defines which ops are cloned: fills, empty tensors, widening, gathers,
slices, small constants; with `aggressive` also attention masks and scatter indices. Not cloned: the
sizes of a kernel's results, which the host needs, and the producer of a tensor that the kernel
updates in place at computed positions (the original of a scatter, the destination of an inserted
slice), because the kernel would then write all of it to change a part. Remaining generics and
gathers that are used become kernels of their own. `irees-form-tile-regions` does its own
cloning. IREE: `CloneProducersIntoDispatchRegions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.analysis.dispatch_roles import is_cloneable
from irees.dialects.flow import DispatchRegionOp
from irees.dialects.iree_linalg_ext import GatherOp
from irees.dialects.storage import is_reshape, is_undefined, slice_of, updated
from irees.dialects.util import FuncOp
from irees.transforms.utils.dispatch_regions import (
    clone_producers,
    has_effects,
    make_region,
)
from irees.transforms.utils.structured import captured_values


def updated_in_place(region: DispatchRegionOp, *, aggressive: bool) -> set[SSAValue]:
    """Returns tensors that a kernel updates at computed positions (collectUnfusableInitSources)."""
    stack: list[SSAValue] = []
    for op in region.walk():
        if (number := updated(op)) is not None:
            stack.append(op.operands[number])
    found: set[SSAValue] = set()
    while stack:
        value = stack.pop()
        if not isinstance(value, OpResult) or value in found:
            continue
        if not is_cloneable(value.op, aggressive=aggressive):
            continue
        moves = slice_of(value.op) or is_undefined(value.op) or is_reshape(value.op)
        if isinstance(value.type, TensorType) and not moves:
            found.add(value)
        stack.extend((*value.op.operands, *captured_values(value.op)))
    return found


def clone_into(region: DispatchRegionOp, *, aggressive: bool) -> None:
    """Clones cheap producers into a kernel that reads them (cloneProducersToRegion)."""
    kept = updated_in_place(region, aggressive=aggressive)
    sizes = {value for value in region.operands if isinstance(value.type, IndexType)}

    def is_wanted(value: OpResult) -> bool:
        return (
            value not in kept
            and value not in sizes
            and is_cloneable(value.op, aggressive=aggressive)
        )

    clone_producers(region, is_wanted)


def regions_of(function: Operation) -> list[DispatchRegionOp]:
    """Returns the kernels of a function."""
    return [op for op in function.walk() if isinstance(op, DispatchRegionOp)]


def erase_dead(function: Operation) -> None:
    """Erases unused ops without side effects, in reverse order."""
    for op in reversed(list(function.walk())):
        if op.results and not has_effects(op) and not any(r.uses for r in op.results):
            Rewriter.erase_op(op)


def is_left_over(op: Operation) -> bool:
    """Whether an op is outside all kernels but used, so it must become its own kernel."""
    if not isinstance(op, linalg.GenericOp | GatherOp):
        return False
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, DispatchRegionOp):
        parent = parent.parent_op()
    return parent is None and any(result.uses for result in op.results)


@dataclass(frozen=True)
class CloneProducersIntoDispatchRegionsPass(ModulePass):
    """Clones cheap producers into the dispatch regions that read them."""

    name = "irees-clone-producers-into-dispatch-regions"

    aggressive: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp | FuncOp)]:
            for region in regions_of(function):
                clone_into(region, aggressive=self.aggressive)
            erase_dead(function)
            for left in [o for o in function.walk() if is_left_over(o)]:
                make_region([left])
            for region in regions_of(function):
                clone_into(region, aggressive=self.aggressive)
            erase_dead(function)
