"""
The body of an elementwise producer, moved into the op that reads it. MLIR: `fuseElementwiseOps`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from irees.transforms.utils.shapes import IndexBuilder
from irees.transforms.utils.structured import affine_value, generic, iterators, maps


def fuse(
    producer: linalg.GenericOp, consumer: linalg.GenericOp, position: int
) -> linalg.GenericOp | None:
    """consumer(producer(x), y)  =>  consumer'(x, y), or None when loops would lose their bounds"""
    consumer_maps, producer_maps = maps(consumer), maps(producer)
    inverse = producer_maps[len(producer.inputs)].inverse_permutation()
    assert inverse is not None
    loops = consumer_maps[position].num_dims
    to_producer = (
        inverse.compose(consumer_maps[position]) if inverse.results else AffineMap(loops, 0, ())
    )
    reads_init = bool(producer.body.block.args[len(producer.inputs)].uses)
    taken = list(range(len(producer.operands) if reads_init else len(producer.inputs)))
    inputs: list[SSAValue] = []
    indexing: list[AffineMap] = []

    def add(value: SSAValue, indexing_map: AffineMap) -> int:
        for i, (v, m) in enumerate(zip(inputs, indexing, strict=True)):
            if v is value and m == indexing_map:
                return i
        inputs.append(value)
        indexing.append(indexing_map)
        return len(inputs) - 1

    # The producer's inputs take the place of what it made.
    consumer_slots: list[int] = []
    producer_slots: list[int] = []
    for i, (v, m) in enumerate(zip(consumer.inputs, consumer_maps, strict=False)):
        if i != position:
            consumer_slots.append(add(v, m))
            continue
        consumer_slots.append(-1)
        producer_slots = [
            add(producer.operands[k], compose(producer_maps[k], to_producer, loops)) for k in taken
        ]
    output_maps = consumer_maps[len(consumer.inputs) :]
    all_maps = [*indexing, *output_maps]
    if (
        AffineMap(loops, 0, tuple(e for m in all_maps for e in m.results)).inverse_permutation()
        is None
    ):
        return None
    block = Block(
        arg_types=[
            *(
                v.type.get_element_type() if isinstance(v.type, TensorType) else v.type
                for v in inputs
            ),
            *(a.type for a in consumer.body.block.args[len(consumer.inputs) :]),
        ]
    )
    mapping: dict[SSAValue, SSAValue] = {}
    for slot, i in zip(producer_slots, taken, strict=True):
        mapping[producer.body.block.args[i]] = block.args[slot]
    builder = IndexBuilder(InsertPoint.at_end(block))
    indices: list[SSAValue] | None = None
    fused = consumer.body.block.args[position]
    for op in producer.body.block.ops:
        if isinstance(op, linalg.YieldOp):
            mapping[fused] = mapping.get(op.operands[0], op.operands[0])
        elif isinstance(op, linalg.IndexOp):
            if indices is None:
                indices = [builder.insert(linalg.IndexOp(d)).results[0] for d in range(loops)]
            size = affine_value(to_producer.results[op.dim.value.data], indices, builder)
            mapping[op.result] = builder.value(size)
        else:
            block.add_op(op.clone(value_mapper=mapping))
    for i, slot in enumerate(consumer_slots):
        if i != position:
            mapping[consumer.body.block.args[i]] = block.args[slot]
    for i, argument in enumerate(consumer.body.block.args[len(consumer.inputs) :]):
        mapping[argument] = block.args[len(inputs) + i]
    for op in consumer.body.block.ops:
        block.add_op(op.clone(value_mapper=mapping))
    result = generic(inputs, consumer.outputs, all_maps, iterators(consumer), Region(block))
    result.attributes.update(consumer.attributes)
    result.location = consumer.location
    return result


def compose(outer: AffineMap, inner: AffineMap, loops: int) -> AffineMap:
    """outer ∘ inner, over `loops` dims"""
    if not outer.results:
        return AffineMap(loops, 0, ())
    replacements = list(inner.results)
    return AffineMap(
        loops, 0, tuple(e.replace_dims_and_symbols(replacements, []) for e in outer.results)
    )
