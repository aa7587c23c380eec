"""
Connects a decision with the IR of one contraction. Part of `irees-lower-contractions`.

`make_plan` reads sizes and strides from the op and lets `contraction_tiling` choose the blocks. A
`Plan` is the decision with the SSA values that the writers need: buffers, strides, sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import vector
from xdsl.dialects.builtin import (
    AnyFloat,
    MemRefType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind

from irees.analysis.affine_steps import linear_form
from irees.analysis.contraction_sides import is_unsigned, sides_of
from irees.analysis.contraction_tiling import (
    Candidate,
    Known,
    Packing,
    Problem,
    Tiling,
    Traversal,
    Unsuitable,
    decide,
    suffix,
)
from irees.analysis.contractions import (
    MultiplyAdd,
    packed_columns,
)
from irees.analysis.dot_products import DotProduct
from irees.analysis.register_blocking import rest_vectors
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.irees_target import is_strict, target_of
from irees.transforms.codegen.cpu.utils.register_transpose import parts_of_columns
from irees.transforms.utils.lanes import has_lanes, lane_bytes
from irees.transforms.utils.shapes import (
    IndexBuilder,
    Size,
    buffer_dim,
    delinearize,
    upper_bound,
)
from irees.transforms.utils.structured import loop_sources, maps
from irees.transforms.utils.views import flatten, strides_in


@dataclass
class Operand:
    """A buffer as a flat array, with the stride of each loop in elements."""

    flat: SSAValue
    steps: list[Size]

    @property
    def strides(self) -> tuple[Known, ...]:
        """The strides, None where dynamic."""
        return tuple(map(known, self.steps))

    def at(self, ivs: dict[int, Size], builder: IndexBuilder) -> Size:
        """Returns the address at some induction variables; loops that have none count as 0."""
        total: Size = 0
        for loop, value in ivs.items():
            total = builder.add(total, builder.mul(value, self.steps[loop]))
        return total


@dataclass(frozen=True)
class Rows:
    """
    `count` rows of C from `first` on, in each of `turns` iterations of the outermost loop of M. The
    first of those iterations is `turn`. `turns` is 1 if all rows step through their operands like
    one loop.
    """

    first: Size
    count: Size
    turn: Size
    turns: Size


@dataclass
class Plan:
    """One contraction, ready to be lowered to loops: C[m, n] += A[m, k] * B[k, n]."""

    op: linalg.GenericOp
    parts: MultiplyAdd
    element: Attribute
    dot: DotProduct | None
    """The instruction that multiplies narrow elements; None if elements are widened first."""
    sizes: list[Size]
    a: Operand
    b: Operand
    c: Operand
    unsigned_a: bool
    """Elements of A are zero-extended where they are widened."""
    unsigned_b: bool
    panel_step: Size
    """The stride from one panel of B to the next, in elements."""
    size_m: Size
    size_n: Size
    reorder: bool
    """The pass may reassociate the sum over K."""
    loops: Traversal
    tiling: Tiling
    packing: Packing
    candidates: tuple[Candidate, ...]

    @property
    def lanes(self) -> int:
        """Elements of C in a vector."""
        return self.loops.lanes

    @property
    def group(self) -> int:
        """Elements of K in one step of the kernel."""
        return 1 if self.dot is None else self.dot.group

    @property
    def packed_element(self) -> Attribute:
        """The element type of panels."""
        return self.element if self.dot is None else self.dot.element

    @property
    def size_k(self) -> int | None:
        """The trip count of the outermost group of K if static, else None."""
        sizes = [s for x in self.loops.k[0] if isinstance(s := self.sizes[x], int)]
        return prod(sizes) if len(sizes) == len(self.loops.k[0]) else None

    def is_one_loop(self, loops: Sequence[int], operand: Operand) -> bool:
        """Whether loops step through an operand with a single stride."""
        return suffix(loops, (operand.strides,), tuple(map(known, self.sizes))) == tuple(loops)

    @property
    def one_slice(self) -> bool:
        """Whether all of K is reduced into a block of C at once."""
        if self.loops.outer_k:
            return False
        return self.tiling.kc is None or (self.size_k is not None and self.size_k <= self.tiling.kc)

    @property
    def adds_later(self) -> bool:
        """Whether C is added after a slice of K is summed, so that the slice need not wait."""
        return self.reorder and not self.one_slice

    @property
    def nr(self) -> int:
        """Columns of C in a register block."""
        return self.tiling.vectors * self.lanes

    @property
    def narrow(self) -> int | None:
        """Vectors of a panel for a dynamic rest of columns; None if the layout of B is given."""
        given = self.packing.panel is not None or self.loops.vector_loop is not None
        return None if given else rest_vectors(self.tiling.mr, self.tiling.vectors)

    @property
    def step_n(self) -> Size:
        """Stride between adjacent columns of a vector of C."""
        return self.c.steps[self.loops.n[-1]]

    def row_step(self, operand: Operand) -> Size:
        """Returns an operand's stride between adjacent rows of C."""
        return operand.steps[self.loops.m[-1]] if self.loops.m else 0

    def shared_by_rows(self, operand: Operand) -> bool:
        """Whether another operand has the same elements for all rows of C."""
        return all(isinstance(s := operand.steps[x], int) and s == 0 for x in self.loops.m)

    def row_starts(
        self, operand: Operand, ivs: dict[int, Size], first: Size, rows: int, offset: Size,
        at: IndexBuilder,
    ) -> list[Size]:  # fmt: skip
        """Returns the address of each row in an operand, plus `offset` elements."""
        if self.is_one_loop(self.loops.m, operand):
            point = {**ivs, self.loops.m[-1]: first} if self.loops.m else ivs
            start, step = at.add(operand.at(point, at), offset), self.row_step(operand)
            return [at.add(start, at.mul(step, r)) for r in range(rows)]
        points = [delinearize(at.add(first, r), self.loops.m, self.sizes, at) for r in range(rows)]
        return [at.add(operand.at({**ivs, **point}, at), offset) for point in points]

    def stores_columns(self, operand: Operand) -> bool:
        """Whether columns are scattered in C, but the rows of each are adjacent in an operand."""
        rows = self.loops.m if self.loops.scattered else ()
        return bool(rows) and self.is_one_loop(rows, operand) and self.row_step(operand) == 1

    def place(self, operand: Operand, start: Size, v: int, at: IndexBuilder) -> Size:
        """Returns the address of vector `v` of a row that starts at `start`."""
        if self.loops.vector_loop is None:
            apart = at.mul(operand.steps[self.loops.n[-1]], self.lanes)
        else:
            apart = operand.steps[self.loops.vector_loop]
        return at.add(start, at.mul(apart, v))

    def column_offset(self, operand: Operand, start: Size, at: IndexBuilder) -> Size:
        """Returns the offset of column `start`, the first of a vector, in an unpacked operand."""
        if self.loops.vector_loop is None:
            return at.mul(start, operand.steps[self.loops.n[-1]])
        return at.mul(at.floordiv(start, self.lanes), operand.steps[self.loops.vector_loop])

    def first_column(self, base: Size, column: Size, k0: Size, at: IndexBuilder) -> Size:
        """Returns where B starts at `column` and `k0`, in the panel that starts at `base`."""
        start = at.add(base, at.mul(k0, self.b.steps[self.loops.k[0][-1]]))
        if self.packing.panel is not None:
            return start
        return at.add(start, self.column_offset(self.b, column, at))


def store_columns(
    plan: Plan, values: Sequence[SSAValue], count: int, target: tuple[Operand, Size],
    at: IndexBuilder,
) -> None:  # fmt: skip
    """Stores `count` columns of a block to an operand from an address on, as parts of columns."""
    (operand, start), vectors = target, -(-count // plan.lanes)
    rows = [values[i : i + vectors] for i in range(0, len(values), vectors)]
    for column, row, part in parts_of_columns(rows, plan.lanes, at):
        if column < count:
            place = at.add(start, at.mul(column, operand.steps[plan.loops.n[-1]]))
            at.insert(vector.StoreOp(part, operand.flat, [at.value(at.add(place, row))]))


def make_plan(
    op: linalg.GenericOp,
    parts: MultiplyAdd,
    dot: DotProduct | None,
    beside: Sequence[Operand],
    at: IndexBuilder,
) -> Plan:
    """
    Returns the plan of a contraction; sizes and strides are computed at `at`. Raises Unsuitable.

    Collapsed loops step through the operands `beside` C with a single stride, too. With `dot` no
    operand is widened.
    """
    output = op.outputs[0].type
    assert isinstance(output, MemRefType)
    element = output.element_type
    if not has_lanes(element) or lane_bytes(element) < 4:
        raise Unsuitable(f"no vectors of {element}")
    found, first, second = sides_of(op, parts, 1 if dot is None else dot.group)
    sizes = _sizes(op, at)
    a, _ = _operand(op, first, sizes, at)
    b, panel_step = _operand(op, second, sizes, at)
    c, _ = _operand(op, len(op.operands) - 1, sizes, at)
    panel = packed_columns(maps(op)[second])
    casts = {parts.lhs: parts.widen_lhs, parts.rhs: parts.widen_rhs}
    unsigned = [is_unsigned(casts[side]) for side in (first, second)]
    tuned, target = LoweringConfigAttr.on(op).ints("block"), target_of(op)
    problem = Problem(
        batch=found.batch, m=found.m, n=found.n, k=found.k,
        sizes=tuple(map(known, sizes)), limits=tuple(map(upper_bound, sizes)),
        a=a.strides, b=b.strides, c=c.strides, beside=tuple(o.strides for o in beside),
        element_bytes=lane_bytes(element), panel=panel, columns=tuned[1] if tuned else panel,
        dot=dot, reorder=not isinstance(element, AnyFloat) or not is_strict(op),
        vector_bytes=target.vector_bytes, registers=target.vector_registers,
    )  # fmt: skip
    decision = decide(problem)
    loops = decision.loops
    size_n = at.product([sizes[x] for x in loops.n])
    size_m = at.product([sizes[x] for x in loops.m])
    return Plan(
        op, parts, element, dot, sizes, a, b, c, *unsigned, panel_step,
        size_m, size_n, problem.reorder, loops, decision.tiling, decision.packing,
        decision.candidates,
    )  # fmt: skip


def known(size: Size) -> Known:
    """Returns a static size, or None."""
    return size if isinstance(size, int) else None


def _sizes(op: linalg.GenericOp, at: IndexBuilder) -> list[Size]:
    sizes: list[Size] = []
    for source in loop_sources(op):
        if source is None:
            raise Unsuitable("a loop has no bound")
        operand = op.operands[source[0]]
        sizes.append(buffer_dim(operand, source[1], at))
    return sizes


def _operand(
    op: linalg.GenericOp, position: int, sizes: list[Size], at: IndexBuilder
) -> tuple[Operand, Size]:
    """Returns an operand with its strides, and the stride of its panels if it has any."""
    buffer = op.operands[position]
    steps: list[Size] = [0] * len(sizes)
    panel_step: Size = 0
    for expr, stride in zip(maps(op)[position].results, strides_in(buffer, at), strict=True):
        form = linear_form(expr)
        if form is None:
            # A packed operand: `n floordiv NR` selects the panel, `n mod NR` the column in it.
            if isinstance(expr, AffineBinaryOpExpr) and expr.kind is AffineBinaryOpKind.FloorDiv:
                # B is [K/group, NR, group]: one element of K steps by stride / group.
                if panel_step == 0:
                    panel_step = stride
                else:
                    loop, points = expr.lhs.used_dims().pop(), expr.rhs.value
                    assert isinstance(stride, int)
                    steps[loop] = stride // points
            continue
        if form[1]:
            raise Unsuitable("an operand starts at an offset")
        for loop, factor in form[0].items():
            steps[loop] = at.add(steps[loop], at.mul(stride, factor))
    return Operand(flatten(buffer, at), steps), panel_step
