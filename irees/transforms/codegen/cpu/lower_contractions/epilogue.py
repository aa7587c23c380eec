"""
Fuses an elementwise op into a contraction, on its output in registers. Part of
`irees-lower-contractions`.

    C[m, n] += A[m, k] * B[k, n];  D[m, n] = f(C[m, n], bias[n], E[m, n])

The micro-kernel applies f to its registers and stores D instead of C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from irees.analysis.affine_steps import linear_form
from irees.transforms.codegen.common.utils.surroundings import Neighbour, has_vector_form
from irees.transforms.codegen.cpu.lower_contractions.plan import Operand, Plan, store_columns
from irees.transforms.utils.lanes import Kind, Lane, vector_of
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.structured import maps
from irees.transforms.utils.views import flatten, strides_in


@dataclass
class Epilogue:
    """An elementwise op on C, with its loops renamed to those of the contraction."""

    consumer: Neighbour
    operands: list[Operand | SSAValue]
    """One per operand: a buffer with a stride per loop of the contraction, or a scalar."""
    condition: SSAValue | None = None
    """Whether a slice of K is the last one, which completes C; None if it always is."""

    @property
    def op(self) -> linalg.GenericOp:
        """The op f."""
        return self.consumer.op

    @property
    def source(self) -> int:
        """The operand index of C."""
        return self.consumer.source

    @property
    def buffers(self) -> list[Operand]:
        """All buffers except C."""
        return [
            o for i, o in enumerate(self.operands) if i != self.source and isinstance(o, Operand)
        ]

    def emit(
        self,
        plan: Plan,
        vectors: int,
        values: list[SSAValue],
        starts: Callable[[Operand], list[Size]],
        at: IndexBuilder,
    ) -> None:
        """Stores f(values) for a block of registers whose rows start at `starts`."""
        outputs = self.operands[len(self.op.inputs) :]
        targets = [(o, starts(o)) for o in outputs if isinstance(o, Operand)]
        found = self._results(plan, vectors, values, starts, at)
        if plan.loops.scattered:
            count = vectors * plan.lanes
            for results, (target, rows) in zip(zip(*found, strict=True), targets, strict=True):
                store_columns(plan, results, count, (target, rows[0]), at)
            return
        for number, results in enumerate(found):
            r, v = divmod(number, vectors)
            for result, (target, rows) in zip(results, targets, strict=True):
                place = at.value(plan.place(target, rows[r], v, at))
                at.insert(vector.StoreOp(result, target.flat, [place]))

    def _results(
        self,
        plan: Plan,
        vectors: int,
        values: list[SSAValue],
        starts: Callable[[Operand], list[Size]],
        at: IndexBuilder,
    ) -> Iterator[list[SSAValue]]:
        """Yields f(value) of each register of a block, after what all rows share."""
        block, inputs = self.op.body.block, len(self.op.inputs)
        rows = {
            i: starts(o)
            for i, o in enumerate(self.operands)
            if isinstance(o, Operand) and i != self.source and i < inputs and block.args[i].uses
        }
        shared: dict[tuple[int, int], Lane] = {}

        def argument(i: int, r: int, v: int, value: SSAValue) -> Lane:
            operand = self.operands[i]
            if i == self.source:
                return Lane(value, Kind.VECTOR)
            if not isinstance(operand, Operand) or not block.args[i].uses:
                return Lane(self.op.operands[i], Kind.UNIFORM)
            # Load operands shared by all rows before any row is stored: they may alias.
            fixed = plan.shared_by_rows(operand)
            if fixed and (i, v) in shared:
                return shared[i, v]
            lane = self._read(plan, operand, plan.place(operand, rows[i][r], v, at), at)
            if fixed:
                shared[i, v] = lane
            return lane

        for number, value in enumerate(values):
            r, v = divmod(number, vectors)
            arguments = [argument(i, r, v, value) for i in range(len(self.operands))]
            yield self.consumer.values(arguments, plan.lanes, at)

    @staticmethod
    def _read(plan: Plan, operand: Operand, place: Size, at: IndexBuilder) -> Lane:
        where = [at.value(place)]
        if operand.steps[plan.loops.n[-1]] == 0:
            return Lane(at.insert(memref.LoadOp.get(operand.flat, where)).results[0], Kind.UNIFORM)
        assert isinstance(operand.flat.type, MemRefType)
        kind = vector_of(operand.flat.type.element_type, plan.lanes)
        return Lane(at.insert(vector.LoadOp(operand.flat, where, kind)).results[0], Kind.VECTOR)


@dataclass(frozen=True)
class Slice:
    """A slice of K: its first step, its depth (None for all of K), and the epilogue to apply."""

    start: Size
    depth: Size | None
    epilogue: Epilogue | None


def epilogue_of(consumer: Neighbour, loops: int, at: IndexBuilder) -> Epilogue | None:
    """Returns a consumer's epilogue, with IR inserted at `at`; None if not addressed linearly."""
    op = consumer.op
    operands: list[Operand | SSAValue] = []
    for operand, indexing in zip(op.operands, maps(op), strict=True):
        if not isinstance(operand.type, MemRefType):
            operands.append(operand)
            continue
        steps: list[Size] = [0] * loops
        for expr, stride in zip(indexing.results, strides_in(operand, at), strict=True):
            form = linear_form(expr)
            if form is None or form[1]:
                return None
            for loop, factor in form[0].items():
                ours = consumer.rename[loop]
                steps[ours] = at.add(steps[ours], at.mul(stride, factor))
        operands.append(Operand(flatten(operand, at), steps))
    return Epilogue(consumer, operands)


def fits(epilogue: Epilogue, plan: Plan) -> bool:
    """Whether a vector of C is a vector, or a single value, in every operand of the epilogue."""
    if not (isinstance(plan.size_n, int) and plan.size_n % plan.lanes == 0):
        return False
    # With outer loops of K, or a dynamic K, no slice is statically known to be the last.
    if plan.loops.outer_k or (plan.tiling.kc is not None and plan.size_k is None):
        return False
    if plan.loops.scattered:
        return _fits_columns(epilogue, plan)
    outputs = epilogue.operands[len(epilogue.op.inputs) :]
    for operand in epilogue.operands:
        if isinstance(operand, Operand):
            step = operand.steps[plan.loops.n[-1]]
            if not isinstance(step, int) or step not in ((1,) if operand in outputs else (0, 1)):
                return False
    return has_vector_form(epilogue.op, plan.lanes)


def _fits_columns(epilogue: Epilogue, plan: Plan) -> bool:
    """Whether outputs have adjacent rows, as C has, and inputs have the same for all rows."""
    first = len(epilogue.op.inputs)
    for i, operand in enumerate(epilogue.operands):
        if isinstance(operand, Operand) and (i >= first or i == epilogue.source):
            if not plan.stores_columns(operand):
                return False
        elif isinstance(operand, Operand):
            step = operand.steps[plan.loops.n[-1]]
            if not plan.shared_by_rows(operand) or not isinstance(step, int) or step not in (0, 1):
                return False
    return has_vector_form(epilogue.op, plan.lanes)
