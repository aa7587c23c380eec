"""
Finds the ops that can be fused with a reduction: the fill and the elementwise producer before it,
and the elementwise consumer after it. Part of `irees-lower-contractions`,
`irees-gpu-lower-contractions` and `irees-vectorize-structured-ops`.

    B[i, k] = g(A[i, k]);  C = 0;  C[i] += B[i, k];  D[i] = f(C[i], E[i])

Computing g where B is read saves a round trip of B through the cache, and B itself if it has no
other reader: the exponentials and the sum of a softmax. Computing f while an element of C is still
in a register saves a round trip of C, and C itself if it has no other reader. A large body f stays
a separate loop: replicated for each register of a block, it would cost more instructions than the
memory traffic that it saves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from irees.dialects.storage import is_allocation, is_view, loaded, root, users
from irees.targets.common import COMMON
from irees.transforms.utils.lanes import (
    Kind,
    Lane,
    NotVectorizableError,
    evaluate,
    has_lanes,
    lane_bytes,
    materialize,
    vector_of,
)
from irees.transforms.utils.shapes import IndexBuilder
from irees.transforms.utils.structured import filled_value, is_parallel, maps


@dataclass
class Neighbour:
    """An elementwise producer or consumer that is fused with a reduction."""

    op: linalg.GenericOp
    source: int
    """Operand of the reading op that the other op writes."""
    rename: dict[int, int]
    """Loops of this op => loops of the reduction."""
    keeps_source: bool
    """Whether the intermediate buffer has other readers."""

    def values(
        self,
        arguments: Sequence[Lane],
        lanes: int,
        at: IndexBuilder,
        computed: Mapping[SSAValue, Lane] | None = None,
    ) -> list[SSAValue]:
        """
        Returns the results of the body for one iteration, or vectors of `lanes` iterations.

        `computed` maps values of the body that are already available.
        """

        def no_index(loop: int) -> Lane:
            raise AssertionError("bodies with linalg.index are not fused")

        results = evaluate(
            self.op.body.block, arguments, lanes, at.insert, no_index, computed or {}
        )
        return [materialize(r, lanes, at.insert) if lanes > 1 else r.value for r in results]


def erase_with_buffer(neighbour: Neighbour, buffer: SSAValue) -> None:
    """Erases the op, and the intermediate buffer if it has no readers left."""
    Rewriter.erase_op(neighbour.op)
    erase_unused_buffer(root(buffer))


def erase_unused_buffer(value: SSAValue) -> bool:
    """Erases a buffer with only unused views; returns whether no uses are left."""
    for use in list(value.uses):
        user = use.operation
        if not is_view(user) or not all([erase_unused_buffer(r) for r in user.results]):
            return False
    owner = value.owner
    if isinstance(owner, Operation) and not any(r.uses for r in owner.results):
        if (is_view(owner) or is_allocation(owner)) and owner.parent:
            Rewriter.erase_op(owner)
    return not value.uses


def fill_of(op: linalg.GenericOp) -> tuple[linalg.GenericOp, arith.ConstantOp] | None:
    """Returns the op that fills this op's output with a constant, and the constant, or None."""
    output = op.outputs[0]
    buffer = root(output)
    if not _covers(maps(op)[-1]):
        return None
    current = op.prev_op
    while current is not None:
        if isinstance(current, linalg.GenericOp) and same_place(current.outputs[0], output):
            value = filled_value(current)
            return None if value is None else (current, value)
        touches = any(root(o) is buffer for o in current.operands)
        if current.regions or (touches and not is_view(current)):
            return None
        current = current.prev_op
    return None


def same_place(one: SSAValue, other: SSAValue) -> bool:
    """Whether two values are the same buffer or equal views (tiling creates a view per op)."""
    if one is other:
        return True
    a, b = one.owner, other.owner
    if not is_view(a) or not is_view(b) or a.name != b.name:
        return False
    return a.properties == b.properties and list(a.operands) == list(b.operands)


def _covers(written: AffineMap) -> bool:
    """Whether a map covers the whole output; `2 * i` or `(i, i)` leave elements unwritten."""
    loops = [e.position for e in written.results if isinstance(e, AffineDimExpr)]
    return len(set(loops)) == len(written.results)


def find_producer(op: linalg.GenericOp, fill: linalg.GenericOp | None) -> Neighbour | None:
    """Returns the elementwise producer just before the op (and `fill`) that can be fused."""
    producer = _op_before(op, fill)
    if producer is None or len(producer.outputs) != 1:
        return None
    between = producer.outputs[0]
    sources = [i for i, o in enumerate(op.operands) if root(o) is root(between)]
    written = {root(o) for o in op.outputs}
    if len(sources) != 1 or op.operands[sources[0]] is not between or sources[0] >= len(op.inputs):
        return None
    if not is_pointwise(producer) or any(root(o) in written for o in producer.operands):
        return None
    rename = _renaming(maps(op)[sources[0]], maps(producer)[-1])
    if rename is None or len(rename) != maps(op)[0].num_dims:
        return None
    return Neighbour(producer, sources[0], rename, is_kept(between, (producer, op)))


def _op_before(op: linalg.GenericOp, fill: linalg.GenericOp | None) -> linalg.GenericOp | None:
    """Returns the structured op before the op (and `fill`) with only pure ops in between."""
    current = op.prev_op
    while current is not None:
        if current is not fill:
            if isinstance(current, linalg.GenericOp):
                return current
            if not is_side_effect_free(current):
                return None
        current = current.prev_op
    return None


def find_consumer(producer: linalg.GenericOp, *, converts: bool = False) -> Neighbour | None:
    """
    Returns the consumer that can be fused, and moves the ops that it needs before the producer.

    `converts` also permits consumers with other element types.
    """
    fill = fill_of(producer)
    found = _next_reader(producer)
    if found is None:
        return None
    op, between = found
    if not _suits(op, producer, converts=converts):
        return None
    source = next(i for i, o in enumerate(op.operands) if o is producer.outputs[0])
    rename = _renaming(maps(producer)[-1], maps(op)[source])
    if rename is None:
        return None
    for inner in between:
        inner.detach()
        Rewriter.insert_op(inner, InsertPoint.before(producer))
    known = (producer, op, None if fill is None else fill[0])
    return Neighbour(op, source, rename, is_kept(producer.outputs[0], known))


def _next_reader(op: linalg.GenericOp) -> tuple[linalg.GenericOp, list[Operation]] | None:
    """Returns the next structured op if it reads the output, and the pure ops in between."""
    between: list[Operation] = []
    current = op.next_op
    while current is not None:
        if isinstance(current, linalg.GenericOp):
            return (current, between) if op.outputs[0] in current.operands else None
        if not is_side_effect_free(current):
            return None
        between.append(current)
        current = current.next_op
    return None


def _suits(op: linalg.GenericOp, producer: linalg.GenericOp, *, converts: bool) -> bool:
    """Whether interleaving the op with the producer, element by element, is safe."""
    target = producer.outputs[0]
    most = COMMON.replicated_ops + 1
    if len(list(op.body.block.ops)) > most or not is_pointwise(op):
        return False
    element = target.type.element_type
    for operand in op.operands:
        if not isinstance(operand.type, MemRefType):
            continue
        if operand.type.element_type != element and not converts:
            return False
        if root(operand) is root(target) and operand is not target:
            return False
    written = {root(o) for o in op.outputs}
    return not any(root(o) in written for o in producer.inputs) and (
        sum(o is target for o in op.inputs) == 1 and target not in op.outputs
    )


def is_pointwise(op: linalg.GenericOp) -> bool:
    """Whether no iteration depends on another one, and the body uses no index."""
    if not is_parallel(op):
        return False
    if any(o.regions or isinstance(o, linalg.IndexOp) or loaded(o) for o in op.body.block.ops):
        return False
    indexing = list(zip(op.operands, maps(op), strict=True))
    # Another view or map of an output may read an element that is already overwritten.
    return not any(
        root(o) is root(operand) and (o is not operand or m != mapping)
        for operand, mapping in indexing
        if operand in op.outputs
        for o, m in indexing
    )


def _renaming(produced: AffineMap, consumed: AffineMap) -> dict[int, int] | None:
    """Maps consumer loops to producer loops, if both index C by plain loops, else None."""
    rename: dict[int, int] = {}
    for ours, theirs in zip(produced.results, consumed.results, strict=True):
        if not (isinstance(ours, AffineDimExpr) and isinstance(theirs, AffineDimExpr)):
            return None
        if theirs.position in rename or ours.position in rename.values():
            return None
        rename[theirs.position] = ours.position
    return rename if len(rename) == consumed.num_dims else None


def is_kept(output: SSAValue, known: tuple[Operation | None, ...]) -> bool:
    """Whether ops other than the known ones may read the written buffer."""
    buffer = root(output)
    if not is_allocation(buffer.owner):
        return True
    return any(user not in known for user in users(buffer))


def has_vector_form(op: linalg.GenericOp, lanes: int) -> bool:
    """Whether the body vectorizes with equal lane widths."""
    return body_has_vector_form(op.body.block, lanes)


def body_has_vector_form(block: Block, lanes: int) -> bool:
    """Whether a body vectorizes with equal lane widths; tries it on a scratch block."""
    scratch = Block(arg_types=[vector_of(a.type, lanes) for a in block.args])
    values = [*block.args, *(r for o in block.ops for r in o.results)]
    width = lane_bytes(block.args[-1].type)
    if any(not has_lanes(v.type) or lane_bytes(v.type) != width for v in values):
        return False

    def insert(inner: Operation) -> Operation:
        scratch.add_op(inner)
        return inner

    try:
        evaluate(
            block,
            [Lane(a, Kind.VECTOR) for a in scratch.args],
            lanes,
            insert,
            lambda loop: Lane(scratch.args[0], Kind.UNIFORM),
            {},
        )
    except NotVectorizableError:
        return False
    finally:
        for inner in reversed(list(scratch.ops)):
            inner.detach()
            inner.erase(safe_erase=False)
    return True


def erase_unused_between(start: Operation | None, end: Operation) -> None:
    """Erases unused ops between `start` and `end`, both exclusive."""
    current = end.prev_op
    while current is not start:
        assert current is not None
        previous = current.prev_op
        if not any(r.uses for r in current.results):
            current.detach()
            current.erase(safe_erase=False)
        current = previous
