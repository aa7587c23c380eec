"""
IREE's rules for fusing producers and consumers.

Each function returns the reason for a refusal, or None. `Rules.aggressive` relaxes four rules: the
number of consumers of an op, the number of loops of a consumer, in-place consumers of convolutions,
and the operands whose producers are fused. IREE: `isFusableWithConsumer`, `isFusableWithProducer`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult, SSAValue, Use
from xdsl.ir.affine import AffineMap

from irees.analysis.dispatch_roles import (
    is_attention,
    is_bit_truncate,
    is_convolution,
    is_elementwise,
    is_linalg,
    is_named_convolution,
    is_pack_like,
    is_unpack_like,
    reduces_no_packed_dim,
)
from irees.analysis.loop_mapping import loop_nest
from irees.dialects.flow import DispatchRegionOp
from irees.dialects.iree_linalg_ext import LinalgExtOperation
from irees.dialects.storage import is_dim
from irees.dialects.upstream.linalg.packing import SoftmaxOp
from irees.targets.common import COMMON
from irees.transforms.iree.form_dispatch_regions.fusion_groups import (
    FusionGroup,
    FusionTracker,
    Rules,
)

MMT4D = frozenset(("linalg.mmt4d", "linalg.batch_mmt4d"))


def uses_of(op: Operation) -> list[Use]:
    """Returns the uses of the results of an op, except tensor.dim."""
    return [u for r in op.results for u in r.uses if not is_dim(u.operation)]


def _value(use: Use) -> SSAValue:
    return use.operation.operands[use.index]


def _is_init(use: Use) -> bool:
    """Whether a use is an init of its op, or the op has no inits."""
    op = use.operation
    if isinstance(op, SoftmaxOp):
        return use.index == 1
    if not is_linalg(op) and not isinstance(op, LinalgExtOperation):
        return True
    first = len(op.inputs)  # type: ignore[attr-defined]
    return first <= use.index < first + len(op.outputs)  # type: ignore[attr-defined]


def _refuse_consumer(use: Use, group: FusionGroup, tracker: FusionTracker) -> str | None:
    """Returns why a use bars its op from its producer's group (isFusableWithConsumer)."""
    value, consumer = _value(use), use.operation
    assert isinstance(value, OpResult)
    if tracker.cloneable(consumer):
        return "every kernel that reads it recomputes it"
    if is_unpack_like(value.op):
        return _refuse_consumer_of_unpack(consumer, value)
    if is_pack_like(consumer):
        return _refuse_pack(value)
    if isinstance(consumer, tensor.PadOp):
        return _refuse_pad(value.op, tracker.rules)
    if isinstance(consumer, tensor.InsertSliceOp):
        return _refuse_insert_slice(consumer, value)
    if value.op.name in MMT4D:
        return "an mmt4d ends its kernel"
    return _refuse_consumer_loops(consumer, value, group, tracker.rules)


def _refuse_consumer_loops(
    consumer: Operation, value: OpResult, group: FusionGroup, rules: Rules
) -> str | None:
    """Returns why the loops of a consumer bar it from the group of a value."""
    nest, made_by = loop_nest(consumer), loop_nest(value.op)
    if nest is None or made_by is None:
        return "its loops are unknown"
    if not nest.is_parallel:
        return "it has a reduction"
    if (why := _refuse_member(consumer, group)) is not None:
        return why
    if not rules.aggressive and len(made_by.ranges) < len(nest.ranges):
        return "it has more loops than its producer"
    root = loop_nest(group.root)
    if root is not None and nest.non_unit > root.non_unit:
        return "it has more loops than the group's root"
    if not rules.aggressive and is_named_convolution(value.op):
        return _refuse_new_buffer(consumer, value)
    return None


def _refuse_member(op: Operation, group: FusionGroup) -> str | None:
    """Returns why a producer or consumer bars itself from a group."""
    if (why := group.refuses(op)) is not None:
        return why
    if group.too_many_operands(op):
        return f"the kernel would have more than {COMMON.kernel_operands} operands"
    return None


def _refuse_pack(value: OpResult) -> str | None:
    """Refuses a pack unless its producer is a pad or writes in the order of its loops."""
    nest = loop_nest(value.op) if is_linalg(value.op) else None
    indexing = None if nest is None else nest.results[value.index]
    in_order = indexing is not None and indexing == AffineMap.identity(indexing.num_dims)
    if in_order or isinstance(value.op, tensor.PadOp):
        return None
    return "the producer does not write in the order of the pack"


def _refuse_dynamic_tiles(consumer: Operation, producer: Operation) -> str | None:
    if getattr(consumer, "inner_tiles", ()) and is_linalg(producer):
        return "the tiles of the pack have dynamic sizes"
    return None


def _refuse_pad(producer: Operation, rules: Rules) -> str | None:
    return None if rules.pad_with_producers and is_linalg(producer) else "pads start kernels"


def _refuse_consumer_of_unpack(consumer: Operation, value: OpResult) -> str | None:
    if reduces_no_packed_dim(consumer, value.op):
        return None
    nest = loop_nest(consumer)
    assert isinstance(value.type, TensorType)
    if nest is not None and is_elementwise(consumer):
        if len(nest.kinds) == value.type.get_num_dims():
            return None
    return "it is not elementwise on the unpacked tensor"


def _refuse_insert_slice(consumer: tensor.InsertSliceOp, value: OpResult) -> str | None:
    if consumer.source is not value or not value.has_one_use():
        return "the inserted tensor has other uses"
    if not isinstance(consumer.dest.owner, linalg.FillOp):
        return "it does not insert into a fill"
    return None


def _refuse_new_buffer(consumer: Operation, value: OpResult) -> str | None:
    """Refuses a consumer of a convolution that cannot write over the convolution's result."""
    nest = loop_nest(consumer)
    if not isinstance(consumer, linalg.GenericOp) or nest is None:
        return "it cannot write in place over the convolution's result"
    inputs = len(consumer.inputs)
    for index in (i for i in range(inputs) if consumer.inputs[i].owner is value.op):
        if not any(
            not consumer.body.block.args[init].uses
            and nest.operands[init] == nest.operands[index]
            and consumer.operands[init].type == consumer.operands[index].type
            for init in range(inputs, len(consumer.operands))
        ):
            return "it cannot write in place over the convolution's result"
    return None


def _refuse_producer(use: Use, group: FusionGroup, rules: Rules, *, truncating: bool) -> str | None:
    """Returns why a use bars its producer from its op's group (isFusableWithProducer)."""
    value, consumer = _value(use), use.operation
    assert isinstance(value, OpResult)
    producer = value.op
    if not truncating and is_bit_truncate(producer):
        return "a producer that truncates belongs in the preceding kernel"
    if isinstance(consumer, tensor.PadOp):
        return _refuse_pad(producer, rules)
    if rules.pad_with_consumers and isinstance(producer, tensor.PadOp) and is_convolution(consumer):
        return None
    if is_attention(consumer):
        return "attention does not fuse producers"
    if is_pack_like(consumer):
        return _refuse_dynamic_tiles(consumer, producer) or _refuse_pack(value)
    if loop_nest(consumer) is None or loop_nest(producer) is None:
        return "its loops are unknown"
    if not rules.aggressive and not _is_init(use):
        return "its result is not an init of the op"
    return _refuse_member(producer, group)


def consumers_of(op: Operation, rules: Rules) -> dict[Operation, list[Use]]:
    """Returns the candidate consumers of an op in its block, in order, with their uses of it."""
    uses = uses_of(op)
    if not rules.aggressive and len({use.operation for use in uses}) != 1:
        return {}
    block = op.parent_block()
    found: dict[Operation, list[Use]] = {}
    for use in uses:
        if use.operation.parent is block:
            found.setdefault(use.operation, []).append(use)
    assert block is not None
    return {each: found[each] for each in block.ops if each in found}


def _within_block(op: Operation, block: Block | None) -> Operation | None:
    """Returns the ancestor of an op, or the op itself, that is in `block`."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    return current


def _refuse_uses(
    producer: Operation, group: FusionGroup, rules: Rules, truncating: bool
) -> str | None:
    """Returns why one of the group's uses of a producer refuses it."""
    block = producer.parent_block()
    for result in producer.results:
        for use in result.uses:
            user = _within_block(use.operation, block)
            if user is None or user not in group.maps:
                continue
            if user is not use.operation:
                return "a body in the group captures it"
            if (why := _refuse_producer(use, group, rules, truncating=truncating)) is not None:
                return why
    return None


def _feeds_region(producer: Operation, group: FusionGroup) -> bool:
    """Whether an existing dispatch region before the root reads a producer."""
    block = producer.parent_block()
    users = {_within_block(use.operation, block) for r in producer.results for use in r.uses}
    return any(isinstance(u, DispatchRegionOp) and u.is_before_in_block(group.root) for u in users)


def refuse_consumer(
    consumer: Operation, uses: Sequence[Use], group: FusionGroup, tracker: FusionTracker
) -> str | None:
    """Returns why a consumer must not join a group, given its uses of the group's results."""
    for use in uses:
        if (why := _refuse_consumer(use, group, tracker)) is not None:
            return why
    return "the group would form a cycle" if tracker.depends_on_itself(group, consumer) else None


def refuse_producer(
    producer: Operation, group: FusionGroup, tracker: FusionTracker, *, truncating: bool
) -> str | None:
    """Returns why a producer must not join a group that uses its results."""
    if (why := _refuse_uses(producer, group, tracker.rules, truncating)) is not None:
        return why
    if not tracker.rules.multi_use_producers and len(uses_of(producer)) != 1:
        return "it has more than one use"
    if _feeds_region(producer, group):
        return "an earlier kernel reads it"
    if tracker.depends_on_itself(group, producer):
        return "the group would form a cycle"
    return None
