"""
Groups the ops that become one kernel: IREE's rules, or whatever stays one tile loop.

Without options this is IREE's pass. Groups grow around roots: reductions, contractions and other
ops with loops worth a kernel. Per block, from its end, each root opens a group and pulls the
producers in; then each root, in order, pulls consumers in, and theirs; then producers again,
now those too that make elements narrower, which rather end the kernel before. What is left is a
root in a second sweep. What kernels compute again (fills, widening, small constants:
`analysis/dispatch_roles.py`) stays outside, for `irees-clone-producers-into-dispatch-regions`.

An op joins when its loops follow the outer parallel loops of the root in exactly one way, through
every value that it shares with the group (`analysis/loop_mapping.py`): not when it reads a result
once as it is and once transposed, nor when it is a reduction over other rows. A consumer must be
parallel and not larger than the root, a kernel has 16 tensors to bind at most.

    %m = linalg.matmul ins(%a, %b) outs(%c)        %r = flow.dispatch.region {
    %e = generic {tanh(m)} ins(%m)            =>     %m = linalg.matmul ..., %e = generic ...
    use %e                                           flow.return %e
                                                   }
                                                   use %r

`aggressive-fusion` changes four of the rules: an op may have several consumers; a consumer may
have more loops than its producer; it need not be able to write where a convolution wrote; and
producers come through every operand, not only through what the op accumulates into. (Masks of
attentions and indices of scatters are then computed again, too.) A refusal is a remark.

No group waits for itself, through other groups or through the order of effects either: IREE moves
a load of a global across a store of it when a group spans both.

`one-tile-loop` is what the pipeline asks for: ops are taken in order, and each joins the group of
a producer when the group stays one tile loop (`analysis/distribution.py`), because that is what
code generation turns into one kernel. A reduction takes its elementwise neighbours along, a
softmax or a norm becomes one kernel over rows, a contraction takes its epilogue. What would leave
fewer than `enough-tiles` waits for no kernel unless its tiles are small: a GPU that has a megabyte
for each of a few workgroups is idle. A padding of
what only it reads goes where that is computed (`analysis/paddings.py`). There what
is cheap is copied into each kernel at once, and a splat constant of more than 256 MiB is written
by a kernel of its own. The rules above are no substitute: they put two contractions into a kernel
and fuse across loops that cannot be tiled together. Nor is their order, with that
legality in their place: a norm then takes the residual addition away from the contraction before
it, and BERT's 158 kernels write 184 tensors instead of 158 (GPT-2: 206 instead of 182).

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
from irees.transforms.dispatch_creation.form_dispatch_regions.fusion_groups import (
    FusionTracker,
    Rules,
)
from irees.transforms.dispatch_creation.form_dispatch_regions.fusion_rules import (
    consumers_of,
    refuse_consumer,
    refuse_producer,
)
from irees.transforms.dispatch_creation.form_dispatch_regions.tile_groups import (
    Limits,
    form_tile_regions,
)
from irees.transforms.utils.dispatch_regions import make_region, sort_block


def _missed(op: Operation, other: Operation, why: str) -> None:
    remark("missed", FormDispatchRegionsPass.name, op, f"not fused with {other.name}: {why}")


def fuse_consumers(roots: list[Operation], tracker: FusionTracker) -> None:
    """Pulls the consumers of roots into their groups, and theirs (fuseRootsWithConsumers)."""
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
    """Pulls what makes the operands of a root into its group (fuseRootsWithProducers)."""
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
    """A group, with producers, around each op of a block that asks for one, from its end."""
    roots: list[Operation] = []
    for op in reversed(list(block.ops)):
        if op in tracker.of or not wanted(op):
            continue
        tracker.create(op)
        fuse_producers(op, tracker, truncating=False)
        roots.append(op)
    return roots


def decide_groups(region: Region, tracker: FusionTracker) -> None:
    """Groups the ops of a region and of the scf ops in it (decideFusableLinalgOps)."""
    for block in region.blocks:
        for op in reversed(list(block.ops)):
            if op.name.startswith("scf."):
                for inner in op.regions:
                    decide_groups(inner, tracker)
        _grow(_open_groups(block, is_root, tracker), tracker)
    for block in region.blocks:
        _grow(_open_groups(block, lambda op: _is_left_over(op, tracker), tracker), tracker)


def _is_left_over(op: Operation, tracker: FusionTracker) -> bool:
    """Whether an op that no root took needs a kernel of its own."""
    if not is_linalg(op) and not isinstance(op, tensor.PadOp | PackOp):
        return False
    if tracker.cloneable(op):
        return False
    users = [use.operation for result in op.results for use in result.uses]
    return not (is_gather_like(op) and all(is_attention(user) for user in users))


def form_regions(function: Operation, rules: Rules) -> None:
    """Groups the ops of a function by the rules of IREE."""
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
    one_tile_loop: bool = False
    enough_tiles: int = 16
    """Of `one_tile_loop`: independent tiles below which a group must not fall by fusion."""
    small_tile: int = -1
    """Bytes of a tile that is so small that any number of them is enough; -1 for none."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules = Rules(
            self.aggressive_fusion,
            self.fuse_multi_use_producers,
            self.fuse_pad_with_consumers,
            self.fuse_pad_with_producers,
        )
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp | FuncOp)]:
            if not function.body.blocks:
                continue
            if self.one_tile_loop:
                form_tile_regions(function, Limits(self.enough_tiles, self.small_tile))
            else:
                form_regions(function, rules)
