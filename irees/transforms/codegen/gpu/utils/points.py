"""
Emits the loads, the body and the stores of a structured op on buffers at given loop indices. Part
of `irees-gpu-distribute-to-threads`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import (
    ComplexType,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    VectorType,
    i1,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr

from irees.analysis.affine_steps import linear_form
from irees.dialects.storage import slice_of
from irees.transforms.codegen.common.utils.operand_accesses import OperandAccesses
from irees.transforms.utils.lanes import (
    Kind,
    Lane,
    NotVectorizableError,
    calls_math,
    evaluate,
    gathers,
    has_lanes,
    kinds_of,
    lane_bytes,
    materialize,
    unit_stride,
    vector_of,
)
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size, constant_value, element_bytes
from irees.transforms.utils.structured import loop_sources, writes_along_reduction

ACCESS_BYTES = 16
"""The widest load or store of one thread."""


class Points(OperandAccesses):
    """Emits single iterations, or vectors of iterations, of an op's loops."""

    def __init__(self, op: linalg.GenericOp):
        super().__init__(op)
        self.parallel = [i for i, k in enumerate(self.kinds) if k == "parallel"]
        self.reduction = [i for i, k in enumerate(self.kinds) if k != "parallel"]

    def sizes(self, at: IndexBuilder) -> list[Size]:
        """Returns the trip counts of the loops."""
        found: list[Size] = []
        for source in loop_sources(self.op):
            assert source is not None
            operand = self.op.operands[source[0]]
            assert isinstance(operand.type, MemRefType)
            size = operand.type.get_shape()[source[1]]
            if size < 0:
                size = at.insert(memref.DimOp(operand, at.value(source[1]))).results[0]
            found.append(size)
        return found

    def writes_apart(self) -> bool:
        """Whether no two parallel iterations write the same element."""
        for indexing in self.maps[self.inputs :]:
            plain = {e.position for e in indexing.results if isinstance(e, AffineDimExpr)}
            used = {d for e in indexing.results for d in e.used_dims()}
            if plain != set(self.parallel) or used - plain:
                return False
        return True

    def initial(self, ivs: dict[int, Size], at: IndexBuilder) -> list[Lane]:
        """Loads the current values of the outputs that the body uses."""
        return [
            self.read(self.inputs + i, ivs, at, 1, None)
            if self.block.args[self.inputs + i].uses
            else Lane(output, Kind.UNIFORM)
            for i, output in enumerate(self.op.outputs)
        ]

    def apply(
        self,
        accumulators: Sequence[Lane],
        ivs: dict[int, Size],
        at: IndexBuilder,
        lanes: int = 1,
        axis: int | None = None,
    ) -> list[Lane]:
        """Evaluates the body for one iteration, or for `lanes` iterations along an axis."""
        arguments = [
            self.read(i, ivs, at, lanes, axis)
            if self.block.args[i].uses
            else Lane(self.op.operands[i], Kind.UNIFORM)
            for i in range(self.inputs)
        ]
        return self._body(arguments, accumulators, ivs, at, lanes, axis)

    def _body(
        self,
        arguments: Sequence[Lane],
        accumulators: Sequence[Lane],
        ivs: dict[int, Size],
        at: IndexBuilder,
        lanes: int,
        axis: int | None,
    ) -> list[Lane]:
        given = zip(self.block.args, [*arguments, *accumulators])
        uniform = [argument for argument, lane in given if lane.kind is Kind.UNIFORM]
        loads = gathers(self.block, kinds_of(self.block, uniform, axis))
        if lanes > 1 and loads and not calls_math(self.block):
            raise NotVectorizableError("vectorizing a gather does not pay without math functions")

        def index_of(loop: int) -> Lane:
            kind = Kind.IOTA if loop == axis and lanes > 1 else Kind.UNIFORM
            return Lane(at.value(ivs.get(loop, 0)), kind)

        return evaluate(self.block, [*arguments, *accumulators], lanes, at.insert, index_of, {})

    def point(self, ivs: dict[int, Size], sizes: Sequence[Size], at: IndexBuilder) -> None:
        """Emits one parallel iteration, with its reduction loops in order."""
        if writes_along_reduction(self.op):
            self._in_order(self.reduction, ivs, sizes, at)
            return
        if not self.reduction:
            start = self.initial(ivs, at)
            results = [lane.value for lane in self.apply(start, ivs, at)]
        else:
            outputs = range(self.inputs, len(self.op.operands))
            accs = [self.read(i, ivs, at, 1, None).value for i in outputs]
            results = self._reduce(self.reduction, accs, ivs, sizes, at)
        for number, value in enumerate(results):
            self.write(number, value, ivs, at)

    def _in_order(
        self, loops: list[int], ivs: dict[int, Size], sizes: Sequence[Size], at: IndexBuilder
    ) -> None:
        """Emits the loops such that each iteration loads and stores the outputs."""
        if loops:
            body, iv, inner = for_loop(at, 0, sizes[loops[0]], 1)
            self._in_order(loops[1:], {**ivs, loops[0]: iv}, sizes, inner)
            body()
            return
        for number, lane in enumerate(self.apply(self.initial(ivs, at), ivs, at)):
            self.write(number, lane.value, ivs, at)

    def _reduce(
        self, loops: list[int], accs: list[SSAValue], ivs: dict[int, Size],
        sizes: Sequence[Size], at: IndexBuilder,
    ) -> list[SSAValue]:  # fmt: skip
        if not loops:
            lanes = [Lane(a, Kind.UNIFORM) for a in accs]
            return [r.value for r in self.apply(lanes, ivs, at)]
        body, iv, inner = for_loop(at, 0, sizes[loops[0]], 1, accs)
        nested = {**ivs, loops[0]: iv}
        return body(self._reduce(loops[1:], list(body.arguments), nested, sizes, inner))

    # --- several iterations at a time --------------------------------------------------

    def widest(self, axis: int | None) -> int:
        """
        Returns the number of lanes per access along a loop: as many of the widest element as fit
        into 16 bytes, halved until it divides all sizes and alignments.
        """
        if axis is None:
            return 1
        values = [*self.block.args, *(r for o in self.block.ops for r in o.results)]
        data = [v for v in values if v.type.name != "index"]
        if not data or not all(has_lanes(v.type) for v in data):
            return 1
        lanes = ACCESS_BYTES // max(lane_bytes(v.type) for v in data)
        while lanes > 1 and not self._aligned_along(axis, lanes):
            lanes //= 2
        return lanes

    def _aligned_along(self, axis: int, lanes: int) -> bool:
        return all(self.aligned(position, axis, lanes) for position in range(len(self.maps)))

    def aligned(self, position: int, axis: int, lanes: int) -> bool:
        """Whether an operand is loop-invariant, or `lanes`-wide accesses to it are aligned."""
        operand, indexing = self.op.operands[position], self.maps[position]
        if not isinstance(operand.type, MemRefType):
            return True
        moving = [i for i, e in enumerate(indexing.results) if axis in e.used_dims()]
        if not moving:
            return True
        form = linear_form(indexing.results[-1])
        if moving != [len(indexing.results) - 1] or form is None or form[0][axis] != 1:
            return False
        rest = gcd(form[1], *(f for loop, f in form[0].items() if loop != axis))
        size = operand.type.get_shape()[-1]
        if rest % lanes or size % lanes or size < 0:
            return False
        return unit_stride(operand.type) and alignment(operand) % lanes == 0

    def vector(self, ivs: dict[int, Size], at: IndexBuilder, lanes: int) -> None:
        """Emits `lanes` iterations of the last parallel loop. Raises NotVectorizableError."""
        axis = self.parallel[-1]
        start = [
            self.read(self.inputs + i, ivs, at, lanes, axis)
            if self.block.args[self.inputs + i].uses
            else Lane(output, Kind.UNIFORM)
            for i, output in enumerate(self.op.outputs)
        ]
        for number, result in enumerate(self.apply(start, ivs, at, lanes, axis)):
            self.write(number, materialize(result, lanes, at.insert), ivs, at)

    def packed(self, axis: int | None, *, inputs: bool = False) -> int:
        """
        Returns the number of elements per access along a loop for types that the body cannot
        vectorize (f16, bf16): 16 bytes of the widest buffer (or input) that depends on the loop,
        halved until all accesses are aligned.
        """
        moving = [
            position
            for position, operand in enumerate(self.op.inputs if inputs else self.op.operands)
            if isinstance(operand.type, MemRefType)
            and axis is not None
            and self.moves(position, axis)
        ]
        kinds = [self.op.operands[position].type for position in moving]
        if axis is None or not kinds or any(_is_odd(kind.element_type) for kind in kinds):
            return 1
        lanes = ACCESS_BYTES // max(element_bytes(kind) for kind in kinds)
        while lanes > 1 and not all(self.aligned(position, axis, lanes) for position in moving):
            lanes //= 2
        return lanes

    def pack(self, ivs: dict[int, Size], at: IndexBuilder, lanes: int) -> None:
        """Emits `lanes` iterations of the last parallel loop: vector accesses, a scalar body."""
        axis = self.parallel[-1]
        found: dict[int, SSAValue] = {}
        for position, operand in enumerate(self.op.operands):
            if not isinstance(operand.type, MemRefType) or not self.moves(position, axis):
                continue
            if self.block.args[position].uses:
                kind = vector_of(operand.type.element_type, lanes)
                places = self.indices(position, ivs, at)
                found[position] = at.insert(vector.LoadOp(operand, places, kind)).results[0]
        results: list[SSAValue | None] = [None] * len(self.op.outputs)
        for lane in range(lanes):
            place = {**ivs, axis: at.add(ivs[axis], lane)}
            arguments = [
                self._lane_of(found[position], lane, at)
                if position in found
                else self.read(position, place, at, 1, None)
                if argument.uses
                else Lane(self.op.operands[position], Kind.UNIFORM)
                for position, argument in enumerate(self.block.args)
            ]
            inputs, outputs = arguments[: self.inputs], arguments[self.inputs :]
            values = self._body(inputs, outputs, place, at, 1, None)
            for number, value in enumerate(values):
                kind = vector_of(value.value.type, lanes)
                before = results[number]
                if before is None:
                    before = at.insert(vector.BroadcastOp(value.value, kind)).results[0]
                else:
                    before = at.insert(vector.InsertOp(value.value, before, [lane])).results[0]
                results[number] = before
        for number, value in enumerate(results):
            assert value is not None
            self.write(number, value, ivs, at)

    def unpacked(
        self, ivs: dict[int, Size], at: IndexBuilder, lanes: int, axis: int
    ) -> list[Callable[[Sequence[Lane]], list[Lane]]]:
        """
        Returns the reduction body of each of `lanes` iterations of a loop, as functions of the
        accumulators. Inputs that depend on the loop are read with one vector load.
        """
        found: dict[int, SSAValue] = {}
        for position in range(self.inputs):
            operand = self.op.operands[position]
            if lanes == 1 or not isinstance(operand.type, MemRefType):
                continue
            if self.moves(position, axis) and self.block.args[position].uses:
                kind = vector_of(operand.type.element_type, lanes)
                places = self.indices(position, ivs, at)
                found[position] = at.insert(vector.LoadOp(operand, places, kind)).results[0]

        def point(lane: int) -> Callable[[Sequence[Lane]], list[Lane]]:
            place = {**ivs, axis: at.add(ivs[axis], lane)}
            arguments = [
                self._lane_of(found[position], lane, at)
                if position in found
                else self.read(position, place, at, 1, None)
                if self.block.args[position].uses
                else Lane(self.op.operands[position], Kind.UNIFORM)
                for position in range(self.inputs)
            ]
            return lambda outputs: self._body(arguments, outputs, place, at, 1, None)

        return [point(lane) for lane in range(lanes)]

    def _lane_of(self, value: SSAValue, lane: int, at: IndexBuilder) -> Lane:
        assert isinstance(value.type, VectorType)
        element = value.type.element_type
        return Lane(at.insert(vector.ExtractOp(value, [lane], element)).results[0], Kind.UNIFORM)


def _is_odd(element: Attribute) -> bool:
    """Whether the element type has no vector form in C: complex or i1."""
    return isinstance(element, ComplexType) or element == i1


def alignment(buffer: SSAValue) -> int:
    """
    Returns the alignment, in elements, of every row of a buffer; 0 means any.

    Buffers are aligned to 64 bytes; the offsets and strides of views may reduce the alignment.
    """
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    view = slice_of(buffer.owner)
    if view is not None:
        strides = strides_of(view.source.type)
        if strides is None:
            return 1
        found = alignment(view.source)
        for offset, stride in zip(view.offsets, strides, strict=True):
            number = offset if isinstance(offset, int) else divisor(offset)
            found = gcd(found, number * stride)
        return gcd(found, *(strides_of(kind) or [1])[:-1])
    if not isinstance(kind.layout, NoneAttr):
        return 1
    strides = strides_of(kind)
    return 1 if strides is None else gcd(*strides[:-1])


def strides_of(kind: object) -> list[int] | None:
    """Returns the strides of a memref in elements, or None if one is dynamic."""
    assert isinstance(kind, MemRefType)
    if isinstance(kind.layout, StridedLayoutAttr):
        found = [getattr(s, "data", None) for s in kind.layout.strides.data]
        return None if None in found else found
    if not isinstance(kind.layout, NoneAttr):
        return None
    strides, step = [], 1
    for number, size in enumerate(reversed(kind.get_shape())):
        strides.append(step)
        if size < 0 and number + 1 < kind.get_num_dims():
            return None
        step *= size
    return strides[::-1]


def divisor(value: SSAValue) -> int:
    """Returns a known divisor of an index value."""
    number = constant_value(value)
    if number is not None:
        return number
    op = value.owner
    if isinstance(op, arith.MuliOp):
        return divisor(op.lhs) * divisor(op.rhs)
    if isinstance(op, arith.AddiOp):
        return gcd(divisor(op.lhs), divisor(op.rhs))
    return 1
