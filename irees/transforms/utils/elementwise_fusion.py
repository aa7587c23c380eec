"""
Fuses elementwise producers into their consumers. MLIR: `fuseElementwiseOps`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from irees.transforms.utils.reshapes import permutes
from irees.transforms.utils.shapes import IndexBuilder
from irees.transforms.utils.structured import (
    affine_value,
    asserts,
    element_type,
    generic,
    iterators,
    maps,
)


@dataclass
class Fusion:
    """The mapping of the operands of both ops to those of the fused op."""

    producer: linalg.GenericOp
    consumer: linalg.GenericOp
    position: int
    inputs: list[SSAValue]
    all_maps: list[AffineMap]
    consumer_slots: list[int]
    """Input of the consumer => index in `inputs`; -1 for the producer's result."""
    producer_slots: dict[int, int]
    """Input of the producer, and its init if the body reads it => index in `inputs`."""
    to_producer: AffineMap
    """Map from the consumer's loops to the producer's."""

    @property
    def loops(self) -> int:
        """The number of loops of the fused op."""
        return self.all_maps[0].num_dims

    def arguments(self) -> Iterator[tuple[BlockArgument, int]]:
        """Yields the arguments of both bodies and their fused indices, consumer first."""
        ours, theirs = self.consumer.body.block.args, self.producer.body.block.args
        for argument, slot in zip(ours, self.consumer_slots, strict=False):
            if slot >= 0:
                yield argument, slot
        for i, argument in enumerate(ours[len(self.consumer_slots) :]):
            yield argument, len(self.inputs) + i
        for operand, slot in self.producer_slots.items():
            yield theirs[operand], slot

    def result(self, block: Block) -> linalg.GenericOp:
        """Returns the fused op with that body, not inserted."""
        consumer = self.consumer
        result = generic(
            self.inputs, consumer.outputs, self.all_maps, iterators(consumer), Region(block)
        )
        result.attributes.update(consumer.attributes)
        result.location = consumer.location
        return result


def plan(producer: linalg.GenericOp, consumer: linalg.GenericOp, position: int) -> Fusion | None:
    """
    consumer(producer(x), y)  =>  consumer'(x, y)

    None if a loop would lose its bound, or elements for which the producer asserts something would
    not be computed.
    """
    consumer_maps, producer_maps = maps(consumer), maps(producer)
    if asserts(producer) and not permutes(consumer_maps[position]):
        return None
    inverse = producer_maps[len(producer.inputs)].inverse_permutation()
    assert inverse is not None
    loops = consumer_maps[position].num_dims
    to_producer = (
        inverse.compose(consumer_maps[position]) if inverse.results else AffineMap(loops, 0, ())
    )
    reads_init = bool(producer.body.block.args[len(producer.inputs)].uses)
    taken = range(len(producer.operands) if reads_init else len(producer.inputs))
    places: dict[tuple[SSAValue, AffineMap], int] = {}

    def add(value: SSAValue, indexing_map: AffineMap) -> int:
        return places.setdefault((value, indexing_map), len(places))

    # The producer's inputs replace its result.
    consumer_slots: list[int] = []
    producer_slots: dict[int, int] = {}
    for i, (v, m) in enumerate(zip(consumer.inputs, consumer_maps, strict=False)):
        if i != position:
            consumer_slots.append(add(v, m))
            continue
        consumer_slots.append(-1)
        for k in taken:
            reached = compose(producer_maps[k], to_producer, loops)
            producer_slots[k] = add(producer.operands[k], reached)
    all_maps = [*(m for _, m in places), *consumer_maps[len(consumer.inputs) :]]
    if (
        AffineMap(loops, 0, tuple(e for m in all_maps for e in m.results)).inverse_permutation()
        is None
    ):
        return None
    inputs = [value for value, _ in places]
    slots = (consumer_slots, producer_slots, to_producer)
    return Fusion(producer, consumer, position, inputs, all_maps, *slots)


def fuse(
    producer: linalg.GenericOp, consumer: linalg.GenericOp, position: int
) -> linalg.GenericOp | None:
    """Returns the fused op, made of copies of both bodies, or None if `plan` fails."""
    fusion = plan(producer, consumer, position)
    return None if fusion is None else copied(fusion)


def copied(fusion: Fusion) -> linalg.GenericOp:
    """Returns the fused op of a plan, made of copies of both bodies."""
    producer, consumer = fusion.producer, fusion.consumer
    outputs = consumer.body.block.args[len(consumer.inputs) :]
    types = (*map(element_type, fusion.inputs), *(a.type for a in outputs))
    block = Block(arg_types=types)
    mapping: dict[SSAValue, SSAValue] = {
        argument: block.args[slot] for argument, slot in fusion.arguments()
    }
    indices = _Indices(fusion, IndexBuilder(InsertPoint.at_end(block)))
    fused = consumer.body.block.args[fusion.position]
    for op in producer.body.block.ops:
        if isinstance(op, linalg.YieldOp):
            mapping[fused] = mapping.get(op.operands[0], op.operands[0])
        elif isinstance(op, linalg.IndexOp):
            mapping[op.result] = indices.of(op)
        else:
            block.add_op(op.clone(value_mapper=mapping))
    for op in consumer.body.block.ops:
        block.add_op(op.clone(value_mapper=mapping))
    return fusion.result(block)


class _Indices:
    """Computes indices of the producer's loops from those of the consumer."""

    def __init__(self, fusion: Fusion, builder: IndexBuilder):
        self.fusion, self.builder = fusion, builder
        self.loops: list[SSAValue] | None = None

    def of(self, op: linalg.IndexOp) -> SSAValue:
        """Returns the value that replaces an index op of the producer."""
        if self.loops is None:
            count = range(self.fusion.loops)
            self.loops = [self.builder.insert(linalg.IndexOp(d)).results[0] for d in count]
        expr = self.fusion.to_producer.results[op.dim.value.data]
        return self.builder.value(affine_value(expr, self.loops, self.builder))


def merge(fusion: Fusion) -> linalg.GenericOp:
    """
    Returns the fused op of a plan. Consumes the bodies of both ops, which the caller then erases.

    The ops of the smaller body move into the larger one, so fusing a chain of ops one by one takes
    time linear in its length.
    """
    ours, theirs = fusion.consumer.body.block, fusion.producer.body.block
    fused = ours.args[fusion.position]
    end = theirs.last_op
    assert isinstance(end, linalg.YieldOp)
    _translate_indices(fusion, theirs)
    yielded = end.operands[0]  # after the translation: an index that is yielded is replaced, too
    end.detach()
    end.drop_all_references()
    fused.replace_all_uses_with(yielded)
    block = _joined(theirs, ours)
    arguments: dict[int, BlockArgument] = {}
    for argument, slot in fusion.arguments():
        if slot not in arguments:
            arguments[slot] = argument
            continue
        kept, dropped = arguments[slot], argument
        if kept.block is not block and dropped.block is block:
            arguments[slot], kept, dropped = dropped, dropped, kept
        dropped.replace_all_uses_with(kept)
    _set_arguments(block, [arguments[slot] for slot in range(len(arguments))])
    region = block.parent
    assert region is not None
    region.detach_block(block)
    return fusion.result(block)


def _translate_indices(fusion: Fusion, block: Block) -> None:
    """Rewrites the producer's indices, unless its loops are identical to the consumer's."""
    if fusion.to_producer == AffineMap.identity(fusion.loops):
        return
    found = [op for op in block.ops if isinstance(op, linalg.IndexOp)]
    if not found:
        return
    indices = _Indices(fusion, IndexBuilder(InsertPoint.before(found[0])))
    for op in found:
        op.result.replace_all_uses_with(indices.of(op))
    # Erase last: new ops are inserted before the first index op.
    for op in found:
        op.detach()
        op.erase()


def _joined(first: Block, second: Block) -> Block:
    """Moves the ops of the smaller body into the larger; returns the larger."""
    if is_shorter(first, second):
        following = second.first_op
        assert following is not None
        for op in list(first.ops):
            op.detach()
            second.insert_op_before(op, following)
        return second
    for op in list(second.ops):
        op.detach()
        first.add_op(op)
    return first


def is_shorter(first: Block, second: Block) -> bool:
    """Whether the first block has fewer ops; linear in the length of the shorter block."""
    a, b = first.first_op, second.first_op
    while a is not None and b is not None:
        a, b = a.next_op, b.next_op
    return a is None and b is not None


def _set_arguments(block: Block, arguments: Sequence[BlockArgument]) -> None:
    """Sets the arguments of a block. Replacing their uses one by one would be quadratic."""
    for index, argument in enumerate(arguments):
        argument.index, argument.block = index, block
    block._args = tuple(arguments)  # pyright: ignore[reportPrivateUsage]


def compose(outer: AffineMap, inner: AffineMap, loops: int) -> AffineMap:
    """outer ∘ inner, over `loops` dims"""
    if not outer.results:
        return AffineMap(loops, 0, ())
    replacements = list(inner.results)
    return AffineMap(
        loops, 0, tuple(e.replace_dims_and_symbols(replacements, []) for e in outer.results)
    )
