"""
Memory accesses: the memref and the elements that an op reads or writes.

`Access` is the common form of scalar, vector, masked and transfer accesses and of gathers: the
memref, one index per dim, and *lanes*: the dims along which one access covers several elements.
`through` rewrites an access to a view as an access to its source, or raises `Refused`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    MemRefType,
    VectorType,
    i32,
)
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint

from irees.analysis.affine_sums import Sum, evaluate
from irees.dialects.storage import ACCESSES
from irees.dialects.upstream.affine import DelinearizeIndexOp, LinearizeIndexOp
from irees.dialects.upstream.tensor import rank_reduction
from irees.transforms.utils.affine_sums import build_sum
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim, mixed, reassociation
from irees.transforms.utils.views import strides_of

WITHIN = 0
"""Lanes at arbitrary indices of their dim: those of a gather or a scatter."""

_MASKED = ("vector.maskedload", "vector.maskedstore", "vector.gather", "vector.scatter")
_GATHERS = ("vector.gather", "vector.scatter")
_TRANSFERS = ("vector.transfer_read", "vector.transfer_write")


class Refused(Exception):
    """The reason why an access cannot be moved to the source of a view."""


def _constants(static: DenseArrayBase, dynamic: Sequence[SSAValue]) -> list[int]:
    """Returns the natural numbers that describe a view. Raises Refused if one is unknown."""
    numbers = [Sum.of(v).constant() for v in mixed(static.get_values(), dynamic)]
    known = [n for n in numbers if n is not None and n >= 0]
    if len(known) < len(numbers):
        raise Refused("the reinterpreted view is not static")
    return known


def _lanes_of(op: Operation, rank: int) -> tuple[dict[int, int], int]:
    """Returns the lanes along each dim of a view, and how many trailing dims have them."""
    if op.name in _TRANSFERS:
        return _transfer_lanes(op), 0
    if rank == 0 or not op.name.startswith("vector."):
        # A view of rank 0 has one element, so a vector in bounds has one, too.
        return {}, 0
    if op.name in _GATHERS:
        return {rank - 1: WITHIN}, 1
    shape = _vector(op).get_shape()
    if len(shape) > rank:
        raise Refused("the vector has more dims than the view")
    return {rank - len(shape) + d: n for d, n in enumerate(shape)}, len(shape)


@dataclass
class Access:
    """An access to a memref."""

    op: Operation
    memory: SSAValue
    indices: list[Sum]
    lanes: dict[int, int]
    """Dim of the memref => number of consecutive elements, or WITHIN."""
    trailing: int
    """The number of trailing dims that the lanes must span, in order."""
    scale: int = 1
    """The factor of the index vector of a gather."""

    @staticmethod
    def of(op: Operation) -> Access:
        """Returns the access of an op to a memref. Raises Refused."""
        base, indices = (getattr(op, name) for name in ACCESSES[op.name])
        rank = len(base.type.get_shape())
        values = [Sum.of(i) for i in indices]
        given = op.properties.get("map")
        if isinstance(given, AffineMapAttr):
            found = [evaluate(e, values, given.data.num_dims) for e in given.data.results]
            values = [v for v in found if v is not None]
            if len(values) != rank:
                raise Refused("an index divides by a non-constant")
        lanes, trailing = _lanes_of(op, rank)
        return Access(op, base, values, lanes, trailing)

    def through(self) -> None:
        """Rewrites the access to address the source of its view. Raises Refused."""
        view = self.memory.owner
        inside = IndexBuilder(InsertPoint.before(self.op))
        if isinstance(view, memref.SubviewOp):
            place, source = self._subview(view), view.source
        elif isinstance(view, memref.ExpandShapeOp):
            place, source = self._expand(view, inside), view.src
        elif isinstance(view, memref.CollapseShapeOp):
            place, source = self._collapse(view, inside), view.src
        elif isinstance(view, memref.CastOp):
            if not isinstance(view.source.type, MemRefType):
                raise Refused("the cast memref has an unknown rank")
            place, source = {dim: dim for dim in self.lanes}, view.source
        elif isinstance(view, memref.ReinterpretCastOp):
            place, source = self._reinterpret(view), view.source
        else:
            raise Refused("the elements of this view have no place in its source")
        self.lanes = {place[d]: n for d, n in self.lanes.items()}
        if self.op.name in _TRANSFERS:
            self._moves = [place.get(d, d) for d in self._moves]
        self.memory = source

    def __post_init__(self) -> None:
        # Dim of the original memref of a transfer => dim of the current one.
        self._moves = list(range(len(self.indices)))

    def _placed(self, place: dict[int, int], rank: int) -> dict[int, int]:
        """Checks the new dims of the lanes against `trailing`; returns them. Raises Refused."""
        if self.trailing and sorted(place.values()) != list(range(rank - self.trailing, rank)):
            raise Refused("the lanes would not be along the last dims")
        return place

    def _subview(self, view: memref.SubviewOp) -> dict[int, int]:
        offsets = mixed(view.static_offsets.get_values(), view.offsets)
        strides = mixed(view.static_strides.get_values(), view.strides)
        kept = kept_dims(view)
        place = self._placed({dim: kept[dim] for dim in self.lanes}, len(offsets))
        for dim, lanes in self.lanes.items():
            stride = Sum.of(strides[kept[dim]]).constant()
            if stride == 1 or lanes == 1:
                continue
            if lanes != WITHIN or stride is None or not self._scalable():
                raise Refused(f"the stride of dim {dim} of the view is not 1")
            self.scale *= stride
        indices = [Sum.of(o) for o in offsets]
        for dim, index in zip(kept, self.indices, strict=True):
            indices[dim] = indices[dim] + index * strides[dim]
        self.indices = indices
        return place

    def _scalable(self) -> bool:
        """Whether the scaled index vector cannot overflow: its elements are of type index."""
        kind = self.op.index_vec.type  # type: ignore[attr-defined]
        return isinstance(kind, VectorType) and isinstance(kind.element_type, IndexType)

    def _expand(self, view: memref.ExpandShapeOp, inside: IndexBuilder) -> dict[int, int]:
        groups = reassociation(view)  # type: ignore[arg-type]
        assert isinstance(view.result.type, MemRefType)
        sizes = mixed(view.static_output_shape.get_values(), view.output_shape)
        if len(sizes) != len(view.result.type.get_shape()):
            raise Refused("the sizes of the expand are unknown")
        group_of = {dim: at for at, group in enumerate(groups) for dim in group}
        place = self._placed({dim: group_of[dim] for dim in self.lanes}, len(groups))
        for dim, lanes in self.lanes.items():
            group = groups[place[dim]]
            if lanes != 1 and dim != _last(group, sizes):
                raise Refused(f"the lanes are along dim {dim}, which is not the last of its group")
        if len(set(place.values())) != len(place):
            raise Refused("lanes are along two dims of a group")
        self.indices = [self._linear(group, sizes, inside) for group in groups]
        return place

    def _linear(self, group: Sequence[int], sizes: Sequence[Size], inside: IndexBuilder) -> Sum:
        wide = [dim for dim in group if not _is_one(sizes[dim])]
        if len(wide) < 2:
            return self.indices[wide[0]] if wide else Sum.of(0)
        if all(self.indices[dim].constant() == 0 for dim in wide[:-1]):
            return self.indices[wide[-1]]
        indices = [inside.value(build_sum(self.indices[dim], inside)) for dim in wide]
        op = LinearizeIndexOp(indices, [sizes[dim] for dim in wide], disjoint=True)
        return Sum.of(inside.insert(op).results[0])

    def _collapse(self, view: memref.CollapseShapeOp, inside: IndexBuilder) -> dict[int, int]:
        groups = reassociation(view)  # type: ignore[arg-type]
        source = view.src.type
        assert isinstance(source, MemRefType)
        shape = source.get_shape()
        place = self._placed({dim: groups[dim][-1] for dim in self.lanes}, len(shape))
        for dim, lanes in self.lanes.items():
            self._check_row(dim, lanes, [shape[i] for i in groups[dim]])
        indices = [Sum.of(0)] * len(shape)
        for group, index in zip(groups, self.indices, strict=True):
            wide = [dim for dim in group if shape[dim] != 1]
            if len(wide) < 2:
                for dim in wide:
                    indices[dim] = index
                continue
            if self.op.name in _MASKED and any(shape[d] == DYNAMIC_INDEX for d in wide[1:]):
                # All lanes may be masked off since the memref is empty: the divisor would be 0.
                raise Refused("a masked access would divide by a dynamic dim")
            basis = [buffer_dim(view.src, dim, inside) for dim in wide]
            value = inside.value(build_sum(index, inside))
            op = inside.insert(DelinearizeIndexOp(value, basis))
            for dim, result in zip(wide, op.results, strict=True):
                indices[dim] = Sum.of(result)
        self.indices = indices
        return place

    def _check_row(self, dim: int, lanes: int, group: Sequence[int]) -> None:
        """Checks that lanes along a collapsed dim stay in one row of its last source dim."""
        if lanes == 1 or all(size == 1 for size in group[:-1]):
            return
        row = group[-1]
        if row == 1 or row == DYNAMIC_INDEX or lanes == WITHIN:
            raise Refused(f"lanes along dim {dim} may leave a row of the collapsed dims")
        if row % lanes or not self.indices[dim].divisible(lanes):
            raise Refused(f"{lanes} lanes along dim {dim} may leave a row of {row}")

    def _reinterpret(self, view: memref.ReinterpretCastOp) -> dict[int, int]:
        """Requires a static 1-D source and a static view that is known to be in bounds."""
        source = view.source.type
        assert isinstance(source, MemRefType)
        shape = source.get_shape()
        if len(shape) != 1 or shape[0] == DYNAMIC_INDEX or strides_of(source) != [1]:
            raise Refused("the source of the cast is not a static contiguous 1-D memref")
        (offset,) = _constants(view.static_offsets, view.offsets)
        sizes = _constants(view.static_sizes, view.sizes)
        steps = _constants(view.static_strides, view.strides)
        if offset + sum((n - 1) * s for n, s in zip(sizes, steps, strict=True)) >= shape[0]:
            raise Refused("the reinterpreted view is larger than its source")
        for dim, lanes in self.lanes.items():
            if lanes != 1 and (steps[dim] != 1 or len(self.lanes) > 1):
                raise Refused(f"the stride of dim {dim} of the view is not 1")
        total = Sum.of(offset)
        for index, step in zip(self.indices, steps, strict=True):
            total = total + index * step
        self.indices = [total]
        return {dim: 0 for dim in self.lanes}

    def rebuilt(self) -> Operation:
        """Inserts the op with this access before the old op; returns it."""
        inside = IndexBuilder(InsertPoint.before(self.op))
        base, where = ACCESSES[self.op.name]
        names = [name for name, _ in self.op.get_irdl_definition().operands]  # type: ignore
        new: dict[str, list[SSAValue]] = {}
        for name in names:
            value = getattr(self.op, name)
            values = [] if value is None else [value] if isinstance(value, SSAValue) else value
            new[name] = list(values)
        new[base] = [self.memory]
        new[where] = [inside.value(build_sum(i, inside)) for i in self.indices]
        if self.scale != 1:
            kind = new["index_vec"][0].type
            assert isinstance(kind, VectorType)
            data = DenseIntOrFPElementsAttr.from_list(kind, [self.scale])
            factor = inside.insert(arith.ConstantOp(data)).results[0]
            product = arith.MuliOp(new["index_vec"][0], factor)
            new["index_vec"] = [inside.insert(product).results[0]]
        properties = dict(self.op.properties)
        if "operandSegmentSizes" in properties:
            sizes = [len(new[name]) for name in names]
            properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes)
        if "map" in self.op.properties:
            identity = AffineMap.identity(len(self.indices))
            properties["map"] = AffineMapAttr(identity)
        if self.op.name in _TRANSFERS:
            properties["permutation_map"] = self._permutation()
        op = type(self.op).create(
            operands=[value for name in names for value in new[name]],
            result_types=[r.type for r in self.op.results],
            properties=properties,
            attributes=self.op.attributes,
        )
        op.location = self.op.location
        return inside.insert(op)

    def _permutation(self) -> AffineMapAttr:
        old = self.op.properties["permutation_map"]
        assert isinstance(old, AffineMapAttr)
        moved = [AffineExpr.dimension(d) for d in self._moves]
        results = tuple(e.replace_dims_and_symbols(moved, []) for e in old.data.results)
        return AffineMapAttr(AffineMap(len(self.indices), 0, results))


def _is_one(size: Size) -> bool:
    return isinstance(size, int) and size == 1


def _last(group: Sequence[int], sizes: Sequence[Size]) -> int:
    """Returns the last non-unit dim of a group, or its last dim."""
    return next((d for d in reversed(group) if not _is_one(sizes[d])), group[-1])


def _vector(op: Operation) -> VectorType:
    """Returns the type of the vector that an op loads or stores."""
    kind = op.results[0].type if op.results else getattr(op, _STORED[op.name]).type
    assert isinstance(kind, VectorType)
    return kind


_STORED = {
    "vector.store": "vector",
    "vector.maskedstore": "value_to_store",
    "vector.scatter": "value_to_store",
    "vector.transfer_write": "vector",
}


def _transfer_lanes(op: Operation) -> dict[int, int]:
    assert isinstance(op, vector.TransferReadOp | vector.TransferWriteOp)
    shape = _vector(op).get_shape()
    results = op.permutation_map.data.results
    inside = [bool(b.value.data) for b in op.in_bounds.data]
    lanes: dict[int, int] = {}
    for axis, expr in enumerate(results):
        if not isinstance(expr, AffineDimExpr):
            continue
        if not (axis < len(inside) and inside[axis]):
            # Elements outside the view read as padding, but may be in bounds of its source.
            raise Refused(f"dim {axis} of the transfer may be out of bounds")
        lanes[expr.position] = shape[axis]
    return lanes


def kept_dims(view: memref.SubviewOp) -> list[int]:
    """
    Returns the source dim of each dim of a subview. If several unit dims could be dropped, the
    strides decide, as in MLIR; if they are ambiguous, the first unit dims are dropped.
    """
    sizes = view.static_sizes.get_values()
    shape = _shape(view.result)
    if len(sizes) == len(shape):
        return list(range(len(sizes)))
    by_strides = _kept_by_strides(view, sizes, shape)
    if by_strides is not None:
        return by_strides
    dropped = rank_reduction(sizes, shape)
    if dropped is None:
        raise Refused("the type of the view does not fit its sizes")
    return [d for d in range(len(sizes)) if d not in dropped]


def _shape(value: SSAValue) -> Sequence[int]:
    assert isinstance(value.type, MemRefType)
    return value.type.get_shape()


def _kept_by_strides(
    view: memref.SubviewOp, sizes: Sequence[int], shape: Sequence[int]
) -> list[int] | None:
    assert isinstance(view.source.type, MemRefType)
    assert isinstance(view.result.type, MemRefType)
    base, wanted = strides_of(view.source.type), strides_of(view.result.type)
    steps = view.static_strides.get_values()
    strides = [DYNAMIC_INDEX if DYNAMIC_INDEX in (b, s) else b * s for b, s in zip(base, steps)]
    kept: list[int] = []
    for dim, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        at = len(kept)
        if at < len(shape) and size == shape[at] and stride == wanted[at]:
            kept.append(dim)
        elif size != 1:
            return None
    return kept if len(kept) == len(shape) else None
