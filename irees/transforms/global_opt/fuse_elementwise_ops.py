"""
Fuses elementwise producers into their consumers.

A parallel generic with a single use needs no tensor: its body moves into the consumer. This removes
elementwise chains, broadcasts, transposes and casts before kernels are formed. A reduction absorbs
the whole expression of its input.

    %1 = linalg.generic ins(%x) { exp }                 // read once
    %2 = linalg.generic ins(%1, %y) { addf }
  =>
    %2 = linalg.generic ins(%x, %y) { addf(exp(x), y) }

First the pass fuses widening casts and transposes into contractions, before they can fuse with
their own producers: a contraction reads operands many times, processors multiply narrow operands,
and a contraction reads any layout, but arithmetic is slow if it writes another one than it reads.

The pass does not fuse producers with other users, unless they only move or widen data that is as
cheap to read again (as the rows of a transposed tensor are), nor producers with a loop that the
consumer's maps would not bound. It does not fuse arithmetic into a contraction, which reads its
operands many times, nor bodies that would be too large for one kernel. For a CPU it does not fuse
a producer of a broadcast that an outer loop would repeat, as in `x * sigmoid(w)` with one `w` for
each column, if that costs more than the tensor: a `math` op, or the conversion of wider elements.
Nor does it fuse math functions that inner loops would not repeat, if vectors of them cost less than
the scalars that are hoisted, as for one `w` for each short row.
It may move a body that captures a tensor (`tensor.extract`), but never duplicates it, and leaves a
gather of constants for `irees-fold-constants`. MLIR: `fuseElementwiseOps`; IREE:
`FuseMultiUseElementwiseProducer` and its guards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    FixedBitwidthType,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.body_weight import Weights, weight
from irees.analysis.contractions import is_contraction
from irees.dialects.irees_target import target_of
from irees.dialects.storage import is_undefined
from irees.rewrites import may_rewrite
from irees.targets.common import COMMON
from irees.transforms.utils.constants import splat_scalar
from irees.transforms.utils.elementwise_fusion import Fusion, copied, merge, plan
from irees.transforms.utils.foldable import foldable, is_gather
from irees.transforms.utils.lanes import calls_math
from irees.transforms.utils.reshapes import permutes
from irees.transforms.utils.shapes import IndexBuilder, dynamic_dims
from irees.transforms.utils.structured import (
    is_parallel,
    is_reused,
    iterators,
    maps,
    static_ranges,
)
from irees.transforms.utils.unused_results import needed_inputs, without_unused_inputs

NAME = "irees-fuse-elementwise-ops"

MOVEMENT = frozenset(
    ("arith.extf", "arith.extsi", "arith.extui", "linalg.yield", "arith.index_cast")
)
"""Ops that only move or widen data."""


Chosen = Callable[[linalg.GenericOp, linalg.GenericOp, int], bool]
"""Whether a producer fuses into its consumer at an operand index."""


def only_moves(op: linalg.GenericOp) -> bool:
    """Whether the body of a generic only moves or widens elements."""
    return all(o.name in MOVEMENT for o in op.body.block.ops)


def fusable(producer: linalg.GenericOp, consumer: linalg.GenericOp, position: int) -> bool:
    """Whether `producer`, which defines input `position` of `consumer`, can fuse into it."""
    if not is_parallel(producer) or len(producer.res) != 1:
        return False
    result_map = maps(producer)[len(producer.inputs)]
    if not result_map.is_projected_permutation() or len(result_map.results) != result_map.num_dims:
        return False
    return producer.parent_block() is consumer.parent_block() and _pays(
        producer, consumer, position
    )


def _pays(producer: linalg.GenericOp, consumer: linalg.GenericOp, position: int) -> bool:
    """Whether fusing a producer repeats no work that matters, and leaves a body of fair size."""
    if is_gather(producer) and foldable(producer):
        return False
    uses = list(consumer.operands[position].uses)
    single = all(u.operation is consumer for u in uses)
    if not single and not (only_moves(producer) and cheap_to_repeat(producer, consumer, position)):
        return False
    if len(uses) > 1 and is_longer_than(producer, COMMON.repeated_ops):
        return False
    if is_contraction(consumer) and not only_moves(producer) and is_reused(consumer, position):
        return False
    if target_of(consumer).gpu is None and repeats_work(producer, consumer):
        return False
    return len(consumer.operands) + len(producer.operands) <= COMMON.body_operands


def repeats_work(producer: linalg.GenericOp, consumer: linalg.GenericOp) -> bool:
    """Whether to compute a producer where its consumer reads it costs more than to store it."""
    read = [
        m for v, m in zip(consumer.inputs, maps(consumer), strict=False) if v is producer.res[0]
    ]
    times = max(repetitions(consumer, indexing) for indexing in read)
    if calls_math(producer.body.block) and any(is_hoisted(consumer, m) for m in read):
        times *= COMMON.hoisted_lanes
    if times == 1 or ((ops := weight(producer)) < COMMON.math_weight and not _narrows(producer)):
        return False
    points = prod(_assumed(size) for size in static_ranges(producer))
    return (times - 1) * points * ops > COMMON.repeated_work


def repetitions(op: linalg.GenericOp, indexing: AffineMap) -> int:
    """
    How often an op computes what depends on the loops of an operand's map alone: once for each
    iteration of the other loops, except the innermost ones, which it is hoisted out of.
    """
    used = indexing.used_dims()
    outer = static_ranges(op)[: max(used, default=0)]
    return prod(_assumed(size) for loop, size in enumerate(outer) if loop not in used)


def is_hoisted(op: linalg.GenericOp, indexing: AffineMap) -> bool:
    """Whether what depends on the loops of an operand's map alone is a scalar in vector code."""
    return len(iterators(op)) - 1 not in indexing.used_dims()


def _narrows(op: linalg.GenericOp) -> bool:
    """Whether a generic reads an element of more bits than it writes for each of its points."""
    *read, written = [*op.inputs, op.res[0]]
    points = maps(op)[-1].num_dims
    return any(
        _bits(value) > _bits(written)
        for value, indexing in zip(read, maps(op), strict=False)
        if len(indexing.results) == points
    )


def _bits(value: SSAValue) -> int:
    kind = value.type
    element = kind.get_element_type() if isinstance(kind, TensorType) else kind
    return element.bitwidth if isinstance(element, FixedBitwidthType) else 0


def _assumed(size: int) -> int:
    return COMMON.assumed_trip_count if size < 0 else size


def is_longer_than(op: linalg.GenericOp, count: int) -> bool:
    """Whether the body of a generic has more than `count` ops."""
    return next(islice(op.body.block.ops, count, None), None) is not None


def cheap_to_repeat(producer: linalg.GenericOp, consumer: linalg.GenericOp, position: int) -> bool:
    """
    Whether the consumer can read a producer's inputs instead of its result for no more memory
    traffic: the same elements or fewer, or a transposed tensor whose rows it reads.
    """
    result = producer.res[0].type
    assert isinstance(result, TensorType)
    identity = AffineMap.identity(len(result.get_shape()))
    return all(
        not isinstance(i.type, TensorType)
        or m == identity
        or len(m.results) < len(identity.results)
        or (permutes(m) and maps(producer)[-1] == identity and _reads_rows(consumer, position, m))
        for i, m in zip(producer.inputs, maps(producer), strict=False)
    )


def _reads_rows(consumer: linalg.GenericOp, position: int, transposed: AffineMap) -> bool:
    """
    Whether the last dim of a transposed tensor is a loop of a consumer that all its results have as
    their last dim, too. `transposed` maps the dims of the consumer's operand to the tensor's.
    """
    last, indexing = transposed.results[-1], maps(consumer)
    assert isinstance(last, AffineDimExpr)
    loop = indexing[position].results[last.position]
    written = [m.results for m in indexing[len(consumer.inputs) :]]
    return (
        isinstance(loop, AffineDimExpr)
        and not is_contraction(consumer)
        and all(results[-1:] == (loop,) for results in written)
    )


def inline_scalars(op: linalg.GenericOp) -> bool:
    """generic ins(splat or 0-d constant)  =>  the scalar constant in the body"""
    for position, value in enumerate(op.inputs):
        argument = op.body.block.args[position]
        if not isinstance(value.owner, arith.ConstantOp) or not argument.uses:
            continue
        scalar = (
            splat_scalar(value.owner) if isinstance(value.type, TensorType) else value.owner.clone()
        )
        if scalar is None or not may_rewrite(NAME, op, "inline_scalars of linalg.generic"):
            continue
        first = op.body.block.first_op
        assert first is not None
        Rewriter.insert_op(scalar, InsertPoint.before(first))
        argument.replace_all_uses_with(scalar.results[0])
        return True
    return False


def moves(producer: linalg.GenericOp, consumer: linalg.GenericOp, position: int) -> bool:
    """Whether a fusable producer only moves or widens elements."""
    return only_moves(producer) and fusable(producer, consumer, position)


def fuse_into(op: linalg.GenericOp, weights: Weights, chosen: Chosen = fusable) -> linalg.GenericOp:
    """Fuses the chosen producers into one op until none is left; returns the fused op."""
    while True:
        while inline_scalars(op):
            pass
        op = _with_needed_inputs(op)
        for position, value in enumerate(op.inputs):
            producer = value.owner
            if not isinstance(producer, linalg.GenericOp) or not chosen(producer, op, position):
                continue
            if weights.too_heavy(producer, op):
                continue
            fusion = plan(producer, op, position)
            if fusion is None or not may_rewrite(NAME, op, "fuse of linalg.generics"):
                continue
            made = fused(fusion)
            weights.put_together(made, op, producer)
            op = made
            break
        else:
            return op


def fused(fusion: Fusion) -> linalg.GenericOp:
    """Replaces the consumer of a plan by the fused op; erases the producer if it is unused."""
    producer, op = fusion.producer, fusion.consumer
    only_reader = producer.res[0].has_one_use()
    new = merge(fusion) if only_reader else copied(fusion)
    Rewriter.insert_op(new, InsertPoint.before(op))
    Rewriter.replace_op(op, [], new.results)
    if not any(r.uses for r in producer.results):
        Rewriter.erase_op(producer)
    return new


def _with_needed_inputs(op: linalg.GenericOp) -> linalg.GenericOp:
    """generic ins(%read, %unread, %read)  =>  generic ins(%read)"""
    if len(needed_inputs(op)) == len(op.inputs):
        return op
    if not may_rewrite(NAME, op, "without_unused_inputs of linalg.generic"):
        return op
    smaller = without_unused_inputs(op)
    assert smaller is not None
    Rewriter.replace_op(op, smaller)
    return smaller


def forget_inits(op: linalg.GenericOp) -> None:
    """Replaces inits that a parallel op does not read by tensor.empty."""
    if not is_parallel(op):
        return
    for position, init in enumerate(op.outputs):
        argument = op.body.block.args[len(op.inputs) + position]
        if argument.uses or is_undefined(init.owner) or not isinstance(init.type, TensorType):
            continue
        if not may_rewrite(NAME, op, "forget_inits of linalg.generic"):
            continue
        builder = IndexBuilder(InsertPoint.before(op))
        empty = tensor.EmptyOp(dynamic_dims(init, builder), init.type)
        builder.insert(empty)
        op.operands[len(op.inputs) + position] = empty.results[0]


@dataclass(frozen=True)
class FuseElementwiseOpsPass(ModulePass):
    """Fuses elementwise producers into their consumers."""

    name = "irees-fuse-elementwise-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = Weights()
        for block in {o.parent_block(): None for o in op.walk() if isinstance(o, linalg.GenericOp)}:
            assert block is not None
            for inner in list(block.ops):
                if isinstance(inner, linalg.GenericOp) and is_contraction(inner):
                    fuse_into(inner, weights, moves)
            for inner in list(block.ops):
                if isinstance(inner, linalg.GenericOp) and inner.parent is not None:
                    forget_inits(inner)
                    fuse_into(inner, weights)
