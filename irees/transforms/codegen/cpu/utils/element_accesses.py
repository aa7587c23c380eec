"""
Classifies the accesses of a structured op by their strides along a loop, and emits its body for a
vector of iterations. For `irees-vectorize-structured-ops` and `irees-vectorize-shuffled-ops`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from irees.analysis.affine_steps import linear_form
from irees.targets.cpu import CPU
from irees.transforms.codegen.common.utils.operand_accesses import OperandAccesses
from irees.transforms.codegen.cpu.utils.invariants import invariants
from irees.transforms.utils.lanes import (
    ELEMENTWISE,
    Kind,
    Lane,
    NotVectorizableError,
    calls_math,
    evaluate,
    gathers,
    in_a_row,
    inner_bytes,
    is_strided,
    kinds_of,
    lane_bytes,
    materialize,
    moves_in_lanes,
    unit_stride,
)
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim
from irees.transforms.utils.structured import loop_sources, static_ranges
from irees.transforms.utils.views import strides_of


def stride_along(axis: int, operand: SSAValue, indexing: AffineMap) -> int | None:
    """
    Returns how many elements the accesses to an operand advance per iteration of a loop, if only
    its last dim depends on it, or only the one before a last dim without gaps; else None.
    """
    moving = [i for i, e in enumerate(indexing.results) if axis in e.used_dims()]
    if not moving:
        return 0
    kind, form = operand.type, linear_form(indexing.results[moving[0]])
    assert isinstance(kind, MemRefType)
    if len(moving) > 1 or form is None or not unit_stride(kind):
        return None
    step = form[0][axis]
    if moving[0] == len(indexing.results) - 1:
        return step
    count = kind.get_shape()[-1]
    rows = moving[0] == len(indexing.results) - 2 and strides_of(kind)[-2:] == [count, 1]
    return step * count if rows and count > 1 else None


@dataclass
class ElementAccesses(OperandAccesses):
    """The operands of a structured op, and the loop along which vectors lie, if any."""

    op: linalg.GenericOp
    vector_bytes: int
    lanes: int = 1
    axis: int | None = None
    sizes: list[Size] = field(default_factory=list)
    """The trip count of each loop, once the loops are built."""

    def __post_init__(self) -> None:
        super().__init__(self.op)

    def strides(self, axis: int) -> list[str]:
        """Classifies operand strides along a loop: `uniform`, `unit`, `short` or `other`."""
        found: list[str] = []
        for number, (operand, indexing) in enumerate(zip(self.op.operands, self.maps, strict=True)):
            step = stride_along(axis, operand, indexing)
            if step in (0, 1):
                found.append("unit" if step else "uniform")
                continue
            is_short = step is not None and 1 < step <= CPU.longest_load_stride
            found.append("short" if is_short and number < self.inputs else "other")
        return found

    def require_lanes(self) -> None:
        """Raises NotVectorizableError for element types without a vector type."""
        elements = [a.type for a in self.block.args] + [
            r.type for o in self.block.ops for r in o.results
        ]
        stored = [e for e in elements if moves_in_lanes(e)]
        if not all(moves_in_lanes(a.type) for a in self.block.args) or not stored:
            raise NotVectorizableError("an element type has no vector type")

    def is_contiguous(self, axis: int) -> bool:
        """Whether vectors along a loop can be stored to the outputs and loaded from the inputs."""
        strides = self.strides(axis)
        return "other" not in strides and all(s == "unit" for s in strides[self.inputs :])

    def take(self, axis: int) -> None:
        """
        Vectorizes along a loop; the widest value that varies determines the lanes. Raises
        NotVectorizableError if gathers cost more than vectors save.
        """
        self.axis = axis
        inputs, fixed = invariants(self.op, {axis})
        self._require_work(axis)
        same = {self.block.args[i] for i in inputs} | {r for o in fixed for r in o.results}
        used = [*self.block.args] + [
            r
            for o in self.block.ops
            if not isinstance(o, linalg.IndexOp | arith.IndexCastOp | arith.ConstantOp)
            for r in o.results
        ]
        same |= self._scalar_counts(axis)
        varying = [v for v in used if v not in same and moves_in_lanes(v.type)]
        widths = [max(lane_bytes(v.type), inner_bytes(v.owner)) for v in varying]
        self.lanes = max(2, self.vector_bytes // max(widths, default=8))

    def _kinds(self, axis: int) -> dict[SSAValue, Kind]:
        """Returns how the values of the body vary along a loop."""
        uniform = [a for a, m in zip(self.block.args, self.maps) if axis not in m.used_dims()]
        return kinds_of(self.block, uniform, axis)

    def _scalar_counts(self, axis: int) -> set[SSAValue]:
        """Returns the values that count lanes and never become vectors: addresses of loads."""
        kinds, found = self._kinds(axis), set[SSAValue]()
        for op in reversed(self.block.ops):
            users = [use.operation for result in op.results for use in result.uses]
            counts = [kinds[result] in (Kind.IOTA, Kind.STRIDED) for result in op.results]
            stays = all(
                in_a_row(u, kinds) or is_strided(u, kinds) or (u.results and u.results[0] in found)
                for u in users
            )
            if counts and all(counts) and stays:
                found |= set(op.results)
        return found

    def _require_work(self, axis: int) -> None:
        """
        Raises NotVectorizableError for a body that is faster as scalars: a gather takes an
        extraction, a load and an insertion per lane, a strided load a load and an insertion.
        """
        kinds = self._kinds(axis)
        costs = [
            CPU.ops_per_strided_load if is_strided(load, kinds) else CPU.ops_per_gather
            for load in gathers(self.block, kinds)
        ]
        varying = {v.owner for v, kind in kinds.items() if kind is Kind.VECTOR}
        ops = sum(isinstance(o, Operation) and o.name in ELEMENTWISE for o in varying)
        if ops < sum(costs) and not calls_math(self.block):
            raise NotVectorizableError("vectorizing a gather does not pay for so few ops")

    def fit_lanes(self, axis: int) -> bool:
        """Halves the lanes until a loop of static length fills them; whether there is a vector."""
        length = static_ranges(self.op)[axis]
        while length != DYNAMIC_INDEX and self.lanes > length:
            self.lanes //= 2
        return self.lanes > 1

    def trip_counts(self, builder: IndexBuilder) -> list[Size]:
        """Returns the trip count of each loop, a dim of an operand."""
        sizes: list[Size] = []
        for source in loop_sources(self.op):
            assert source is not None
            sizes.append(buffer_dim(self.op.operands[source[0]], source[1], builder))
        return sizes

    def around(
        self,
        loops: Sequence[int],
        body: Callable[[dict[int, Size], IndexBuilder], None],
        at: IndexBuilder,
        ivs: dict[int, Size] | None = None,
    ) -> None:
        """Emits loops over single iterations around a body."""
        ivs = ivs or {}
        if not loops:
            body(ivs, at)
            return
        close, iv, inner = for_loop(at, 0, self.sizes[loops[0]], 1)
        self.around(loops[1:], body, inner, {**ivs, loops[0]: iv})
        close()

    def body(
        self,
        ivs: dict[int, Size],
        at: IndexBuilder,
        lanes: int,
        known: dict[int, SSAValue] | None = None,
    ) -> list[SSAValue]:
        """
        Emits the body for `lanes` elements along the axis; returns what is to be stored. `known`
        has the vectors of operands that are loaded already, by number.
        """
        known, axis = known or {}, self.axis
        arguments = [
            Lane(known[i], Kind.VECTOR)
            if i in known
            else self.read(i, ivs, at, lanes, axis)
            if argument.uses
            else Lane(self.op.operands[i], Kind.UNIFORM)
            for i, argument in enumerate(self.block.args)
        ]

        def index_of(loop: int) -> Lane:
            kind = Kind.IOTA if loop == axis and lanes > 1 else Kind.UNIFORM
            return Lane(at.value(ivs.get(loop, 0)), kind)

        results = evaluate(self.block, arguments, lanes, at.insert, index_of, {})
        return [materialize(r, lanes, at.insert) if lanes > 1 else r.value for r in results]

    def point(self, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Emits one iteration of a nest without reductions."""
        for number, value in enumerate(self.body(ivs, at, 1)):
            self.write(number, value, ivs, at)
