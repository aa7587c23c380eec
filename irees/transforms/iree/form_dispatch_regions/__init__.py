"""
Groups ops into kernels by IREE's rules.

Groups grow around roots: reductions, contractions and other ops that justify a kernel. Walking each
block backwards, each root opens a group and fuses its producers. Then each root, in program order,
transitively fuses its consumers, and producers again. The second time, this includes producers that
narrow elements, which preferably end the preceding kernel. Remaining ops become roots in a second
sweep. Ops that kernels recompute (fills, widening, small constants: `analysis/dispatch_roles.py`)
stay outside, for `irees-clone-producers-into-dispatch-regions`.

An op joins a group if its loops map to the outer parallel loops of the root in exactly one way,
through every value that it shares with the group (`analysis/loop_mapping.py`). An op that reads a
result both directly and transposed does not join; nor does a reduction over different rows. A
consumer must be parallel and not larger than the root. A kernel binds at most 16 tensors.

    %m = linalg.matmul ins(%a, %b) outs(%c)        %r = flow.dispatch.region {
    %e = generic {tanh(m)} ins(%m)            =>     %m = linalg.matmul ..., %e = generic ...
    use %e                                           flow.return %e
                                                   }
                                                   use %r

`aggressive-fusion` relaxes four rules: an op may have several consumers; a consumer may have more
loops than its producer; a convolution's consumer need not write in place; and producers of all
operands are fused, not only those of inits. Attention masks and scatter indices are then
recomputed, too. Each refusal emits a remark.

No group may depend on itself, whether through other groups or through the order of effects. (IREE
moves a load of a global across a store if a group spans both.)

The pipeline runs `irees-form-tile-regions` instead, whose groups its code generation can lower.
IREE: `FormDispatchRegions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, Region
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.analysis.dispatch_roles import is_attention, is_gather_like, is_linalg, is_root
from irees.dialects.upstream.linalg.packing import PackOp
from irees.dialects.util import FuncOp
from irees.remarks import remark
from irees.transforms.iree.form_dispatch_regions.fusion_groups import (
    FusionTracker,
    Rules,
)
from irees.transforms.iree.form_dispatch_regions.fusion_rules import (
    consumers_of,
    refuse_consumer,
    refuse_producer,
)
from irees.transforms.utils.dispatch_regions import make_region, sort_block


def _missed(op: Operation, other: Operation, why: str) -> None:
    remark("missed", FormDispatchRegionsPass.name, op, f"not fused with {other.name}: {why}")


def fuse_consumers(roots: list[Operation], tracker: FusionTracker) -> None:
    """Fuses consumers into the groups of roots, transitively (fuseRootsWithConsumers)."""
    for root in roots:
        group, waiting = tracker.of[root], [root]
        while waiting:
            current = waiting.pop()
            for consumer, uses in consumers_of(current, tracker.rules).items():
                if consumer in tracker.of:
                    continue
                if (why := refuse_consumer(consumer, uses, group, tracker)) is not None:
                    _missed(consumer, current, why)
                    continue
                tracker.append(consumer, group)
                waiting.append(consumer)


def fuse_producers(root: Operation, tracker: FusionTracker, *, truncating: bool) -> None:
    """Fuses producers into the group of a root, transitively (fuseRootsWithProducers)."""
    group, waiting = tracker.of[root], [root]
    while waiting:
        candidate = waiting.pop()
        for value in candidate.operands:
            if not isinstance(value, OpResult) or value.op.parent is not root.parent:
                continue
            producer = value.op
            if producer in tracker.of or tracker.cloneable(producer):
                continue
            why = refuse_producer(producer, group, tracker, truncating=truncating)
            if why is not None:
                _missed(producer, candidate, why)
                continue
            tracker.append(producer, group)
            waiting.append(producer)


def _grow(roots: list[Operation], tracker: FusionTracker) -> None:
    roots.reverse()
    fuse_consumers(roots, tracker)
    for root in roots:
        fuse_producers(root, tracker, truncating=True)


def _open_groups(
    block: Block, wanted: Callable[[Operation], bool], tracker: FusionTracker
) -> list[Operation]:
    """Opens a group around each wanted op of a block, last first, and fuses its producers."""
    roots: list[Operation] = []
    for op in reversed(list(block.ops)):
        if op in tracker.of or not wanted(op):
            continue
        tracker.create(op)
        fuse_producers(op, tracker, truncating=False)
        roots.append(op)
    return roots


def decide_groups(region: Region, tracker: FusionTracker) -> None:
    """Groups the ops of a region and of nested scf ops (decideFusableLinalgOps)."""
    for block in region.blocks:
        for op in reversed(list(block.ops)):
            if op.name.startswith("scf."):
                for inner in op.regions:
                    decide_groups(inner, tracker)
        _grow(_open_groups(block, is_root, tracker), tracker)
    for block in region.blocks:
        _grow(_open_groups(block, lambda op: _is_left_over(op, tracker), tracker), tracker)


def _is_left_over(op: Operation, tracker: FusionTracker) -> bool:
    """Whether an op outside all groups needs a kernel of its own."""
    if not is_linalg(op) and not isinstance(op, tensor.PadOp | PackOp):
        return False
    if tracker.cloneable(op):
        return False
    users = [use.operation for result in op.results for use in result.uses]
    return not (is_gather_like(op) and all(is_attention(user) for user in users))


def form_regions(function: Operation, rules: Rules) -> None:
    """Groups the ops of a function by IREE's rules."""
    tracker = FusionTracker(rules)
    for region in function.regions:
        decide_groups(region, tracker)
    orders = {order.block: order for order in map(tracker.order_of, tracker.groups)}
    for group in tracker.groups:
        block = tracker.order_of(group).block
        region = make_region([op for op in block.ops if op in group.maps], group.root)
        if not region.res:
            Rewriter.erase_op(region)
    for block, order in orders.items():
        sort_block(block, order)


@dataclass(frozen=True)
class FormDispatchRegionsPass(ModulePass):
    """Groups tensor ops into dispatch regions."""

    name = "irees-form-dispatch-regions"

    aggressive_fusion: bool = False
    fuse_multi_use_producers: bool = True
    fuse_pad_with_consumers: bool = False
    fuse_pad_with_producers: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules = Rules(
            self.aggressive_fusion,
            self.fuse_multi_use_producers,
            self.fuse_pad_with_consumers,
            self.fuse_pad_with_producers,
        )
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp | FuncOp)]:
            if function.body.blocks:
                form_regions(function, rules)
