"""
Maps the loops of an op to the loops of an op that it shares a value with.

    consumer loops = inverse(consumer's map of the value) . producer's map of it . producer loops

A fusion group is tiled along the outer parallel loops of its root. For each op of the group, the
map says which of its loops is tiled with which loop of the root. IREE: `LinalgFusionOpInterface`,
`LoopMappingUtils.cpp`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from irees.dialects import iree_encoding as encoding
from irees.dialects import iree_linalg_ext as ext
from irees.dialects.upstream.linalg.packing import SoftmaxOp

PARALLEL, REDUCTION = "parallel", "reduction"


@dataclass(frozen=True)
class LoopNest:
    """
    The loop nest of an op (IREE: LinalgFusionOpInterface).

    Indexing maps of operands and results are None if loops do not index them. `ranges` are trip
    counts, -1 if unknown.
    """

    kinds: tuple[str, ...]
    operands: tuple[AffineMap | None, ...]
    results: tuple[AffineMap | None, ...]
    ranges: tuple[int, ...]

    @property
    def is_parallel(self) -> bool:
        """Whether no loop is a reduction."""
        return all(kind == PARALLEL for kind in self.kinds)

    @property
    def outer_parallel(self) -> int:
        """Number of parallel loops before the first reduction (IREE: getOuterParallelLoops)."""
        others = [loop for loop, kind in enumerate(self.kinds) if kind != PARALLEL]
        return others[0] if others else len(self.kinds)

    @property
    def non_unit(self) -> int:
        """Number of loops whose trip count may differ from 1."""
        return sum(size != 1 for size in self.ranges)


@dataclass(frozen=True)
class LoopMap:
    """Per loop of an op, the loop of the root that it maps to, or None; the root has `dims`."""

    dims: int
    loops: tuple[int | None, ...]


def loop_nest(op: Operation) -> LoopNest | None:
    """Returns the loop nest of an op that can be fused by loops, else None."""
    if isinstance(op, LinalgStructuredOperation):
        return _structured(op)
    if isinstance(op, SoftmaxOp):
        return _softmax(op)
    if isinstance(op, encoding.SetEncodingOp | encoding.UnsetEncodingOp):
        return _encoding(op)
    if isinstance(op, ext.ScatterOp):
        return _scatter(op)
    if isinstance(op, ext.GatherOp):
        return _gather(op)
    if isinstance(op, ext.ArgCompareOp):
        return _arg_compare(op)
    if isinstance(op, ext.AttentionOp | ext.OnlineAttentionOp):
        return _attention(op)
    if isinstance(op, ext.CustomOp):
        return _custom(op)
    return None


def _shape(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if isinstance(value.type, TensorType) else ()


def _ranges(loops: int, values: Sequence[SSAValue], indexing: Sequence[AffineMap]) -> list[int]:
    """Returns the trip count of each loop, from the first operand dim that it indexes."""
    found: dict[int, int] = {}
    for value, each in zip(values, indexing, strict=True):
        for expr, size in zip(each.results, _shape(value), strict=False):
            if isinstance(expr, AffineDimExpr):
                found.setdefault(expr.position, size)
    return [found.get(loop, DYNAMIC_INDEX) for loop in range(loops)]


def _structured(op: LinalgStructuredOperation) -> LoopNest:
    indexing = tuple(each.data for each in op.get_indexing_maps())
    kinds = tuple(
        PARALLEL if str(kind.data) == PARALLEL else REDUCTION for kind in op.get_iterator_types()
    )
    results = indexing[len(indexing) - len(op.results) :] if op.results else ()
    ranges = _ranges(len(kinds), op.operands, indexing)
    return LoopNest(kinds, indexing, results, tuple(ranges))


def _softmax(op: SoftmaxOp) -> LoopNest:
    shape = _shape(op.input)
    full = AffineMap.identity(len(shape))
    dim = op.dimension.value.data
    kinds = tuple(REDUCTION if d == dim else PARALLEL for d in range(len(shape)))
    return LoopNest(kinds, (full, full), (full,), tuple(shape))


def _encoding(op: encoding.SetEncodingOp | encoding.UnsetEncodingOp) -> LoopNest:
    shape = _shape(op.result)
    full = AffineMap.identity(len(shape))
    others = (None,) * (len(op.operands) - 1)
    return LoopNest((PARALLEL,) * len(shape), (full, *others), (full,), tuple(shape))


def _scatter(op: ext.ScatterOp) -> LoopNest:
    shape = _shape(op.updates)
    batch = 0 if op.unique_indices.value.data else op.batch_rank
    kinds = (REDUCTION,) * batch + (PARALLEL,) * (len(shape) - batch)
    parts = (AffineMap.identity(len(shape)), AffineMap.identity(len(_shape(op.indices))))
    mask = (_leading(len(shape), op.batch_rank),) if op.mask is not None else ()
    return LoopNest(kinds, (*parts, *mask, None), (None,), tuple(shape))


def _gather(op: ext.GatherOp) -> LoopNest:
    shape = _shape(op.output)
    full = AffineMap.identity(len(shape))
    indices = AffineMap.identity(len(_shape(op.indices)))
    mask = (_leading(len(shape), op.batch_rank),) if op.mask is not None else ()
    operands = (None, indices, *mask, full)
    return LoopNest((PARALLEL,) * len(shape), operands, (full,), tuple(shape))


def _leading(loops: int, count: int) -> AffineMap:
    return AffineMap(loops, 0, tuple(AffineDimExpr(d) for d in range(count)))


def _arg_compare(op: ext.ArgCompareOp) -> LoopNest:
    shape, dim = _shape(op.input_value), op.dimension.value.data
    kinds = tuple(REDUCTION if d == dim else PARALLEL for d in range(len(shape)))
    kept = tuple(AffineDimExpr(d) for d in range(len(shape)) if d != dim)
    best = AffineMap(len(shape), 0, kept)
    inputs = (AffineMap.identity(len(shape)),) * len(op.inputs)
    base = (None,) * (op.index_base is not None)
    return LoopNest(kinds, (*inputs, best, best, *base), (best, best), tuple(shape))


def _attention(op: ext.AttentionOp | ext.OnlineAttentionOp) -> LoopNest:
    indexing = tuple(each.data for each in op.indexing_maps)
    query, key, value = (each.used_dims() for each in indexing[:3])
    batch = (query & value) | (key & op.output_map.data.used_dims())
    over = key - batch
    loops = indexing[0].num_dims
    kinds = tuple(REDUCTION if d in over else PARALLEL for d in range(loops))
    ranges = _ranges(loops, (op.query, op.value), (indexing[0], indexing[2]))
    # As in IREE, a loop in neither the query nor the value has trip count 0.
    known = [0 if d not in query | value else size for d, size in enumerate(ranges)]
    return LoopNest(kinds, indexing, indexing[len(op.inputs) :], tuple(known))


def _custom(op: ext.CustomOp) -> LoopNest:
    indexing = tuple(each.data for each in op.indexing_maps)
    kinds = tuple(str(kind.data) for kind in op.iterator_types)
    sizes: list[set[int]] = [set() for _ in kinds]
    for operand, each in zip(op.operands, indexing, strict=True):
        for expr, size in zip(each.results, _shape(operand), strict=False):
            if isinstance(expr, AffineDimExpr) and size != DYNAMIC_INDEX:
                sizes[expr.position].add(size)
    ranges = tuple(min(known) if len(known) == 1 else DYNAMIC_INDEX for known in sizes)
    return LoopNest(kinds, indexing, indexing[len(op.inputs) :], ranges)


def root_map(op: Operation) -> LoopMap:
    """Returns the map of a root: the identity on its outer parallel loops."""
    nest = loop_nest(op)
    if nest is None:
        return LoopMap(0, ())
    outer = nest.outer_parallel
    return LoopMap(outer, tuple(d if d < outer else None for d in range(len(nest.kinds))))


def _plain_dims(indexing: AffineMap | None) -> list[int] | None:
    """Returns the loops of a projected permutation, None for any other map."""
    if indexing is None or indexing.num_symbols:
        return None
    dims = [expr.position for expr in indexing.results if isinstance(expr, AffineDimExpr)]
    if len(dims) != len(indexing.results) or len(set(dims)) != len(dims):
        return None
    return dims


def follow(source: LoopMap, near: AffineMap | None, far: AffineMap | None) -> LoopMap | None:
    """
    Returns inverse(far) . near . source: the loop map of an op that indexes a value by `far`, if an
    op with loop map `source` indexes it by `near`. None unless both are projected permutations.
    """
    here, there = _plain_dims(near), _plain_dims(far)
    if here is None or there is None or far is None:
        return None
    loops: list[int | None] = [None] * far.num_dims
    for from_loop, to_loop in zip(here, there, strict=True):
        loops[to_loop] = source.loops[from_loop]
    return LoopMap(source.dims, tuple(loops))


def merge(first: LoopMap | None, second: LoopMap) -> LoopMap | None:
    """Merges two maps loop by loop; None if they conflict."""
    if first is None:
        return second
    if len(first.loops) != len(second.loops):
        return None
    pairs = list(zip(first.loops, second.loops, strict=True))
    if any(None not in (a, b) and a != b for a, b in pairs):
        return None
    return LoopMap(first.dims, tuple(b if a is None else a for a, b in pairs))


Group = Mapping[Operation, LoopMap]


def map_into(op: Operation, group: Group) -> LoopMap | None:
    """
    Returns the map from loops of an op to loops of the group's root, through the values that the op
    shares with the group. None if there is no map or an ambiguous one
    (IREE: getRootParallelLoopToOpMap).
    """
    nest = loop_nest(op)
    if nest is None:
        return None
    if any(isinstance(v, OpResult) and v.op in group for v in op.operands):
        return _map_of_consumer(op, nest, group)
    return _map_of_producer(op, nest, group)


def _map_of_consumer(op: Operation, nest: LoopNest, group: Group) -> LoopMap | None:
    found: LoopMap | None = None
    for value, far in zip(op.operands, nest.operands, strict=True):
        if not isinstance(value, OpResult) or value.op not in group:
            continue
        producer = loop_nest(value.op)
        if producer is None:
            continue
        each = follow(group[value.op], producer.results[value.index], far)
        if each is None or (each.dims and all(loop is None for loop in each.loops)):
            return None
        found = merge(found, each)
        if found is None:
            return None
    return found


def _map_of_producer(op: Operation, nest: LoopNest, group: Group) -> LoopMap | None:
    found: LoopMap | None = None
    for result, far in zip(op.results, nest.results, strict=True):
        for use in result.uses:
            consumer = loop_nest(use.operation) if use.operation in group else None
            if consumer is None:
                continue
            source = group[use.operation]
            each = follow(source, consumer.operands[use.index], far)
            found = None if each is None else merge(found, each)
            if found is None:
                return None
            # A producer must not be more parallel than its consumer.
            if len({loop for loop in found.loops if loop is not None}) != source.dims:
                return None
    return found


def element_of(value: SSAValue) -> Attribute:
    """Returns the element type of a tensor, or the type itself."""
    return value.type.element_type if isinstance(value.type, TensorType) else value.type
