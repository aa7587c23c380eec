"""
The loops around the micro-kernel of a contraction. Part of `irees-lower-contractions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.contraction_tiling import Unsuitable
from irees.analysis.contractions import MultiplyAdd
from irees.analysis.dot_products import DotProduct
from irees.analysis.register_blocking import rest_rows
from irees.remarks import remark
from irees.transforms.codegen.common.utils.surroundings import (
    erase_with_buffer,
    fill_of,
    find_consumer,
)
from irees.transforms.codegen.cpu.lower_contractions.bias import column_sums
from irees.transforms.codegen.cpu.lower_contractions.epilogue import (
    Epilogue,
    Slice,
    epilogue_of,
    fits,
)
from irees.transforms.codegen.cpu.lower_contractions.kernel import Kernel
from irees.transforms.codegen.cpu.lower_contractions.panels import (
    Columns,
    Panels,
    allocate,
    pack_columns,
    pack_rows,
    panel_of,
)
from irees.transforms.codegen.cpu.lower_contractions.plan import (
    Operand,
    Plan,
    Rows,
    make_plan,
)
from irees.transforms.codegen.cpu.lower_contractions.prefetch import next_packed_panel, next_panel
from irees.transforms.utils.accesses import zero
from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.shapes import IndexBuilder, Size, remainder
from irees.transforms.utils.structured import is_zero

NAME = "irees-lower-contractions"

Inside = Callable[[dict[int, Size], IndexBuilder], None]


def lower_contraction(op: linalg.GenericOp, parts: MultiplyAdd, dot: DotProduct | None) -> None:
    """
    Replaces a contraction by its loops; `dot` is the dot-product instruction to use, if any.

    Raises Unsuitable before the op is changed.
    """
    fill = fill_of(op)
    at = IndexBuilder(InsertPoint.before(op), {})
    plan, epilogue = _plan_and_epilogue(op, parts, dot, at)
    for candidate in plan.candidates:
        if candidate.rejected is not None:
            remark("missed", NAME, op, str(candidate))
    slices = plan.one_slice or (plan.adds_later and not plan.loops.outer_k and bool(plan.size_k))
    from_zero = fill is not None and is_zero(fill[1]) and slices
    if fill is not None and from_zero:
        Rewriter.erase_op(fill[0])
    Nest(plan, at, from_zero, epilogue).build(at)
    output = op.outputs[0]
    Rewriter.erase_op(op)
    if epilogue is not None:
        erase_with_buffer(epilogue.consumer, output)


def _plan_and_epilogue(
    op: linalg.GenericOp, parts: MultiplyAdd, dot: DotProduct | None, at: IndexBuilder
) -> tuple[Plan, Epilogue | None]:
    """Returns the plan and the elementwise consumer of C, if the micro-kernel can apply it."""
    consumer = find_consumer(op)
    epilogue = None if consumer is None else epilogue_of(consumer, len(op.iterator_types), at)
    beside = [] if epilogue is None else epilogue.buffers
    try:
        plan = make_plan(op, parts, dot, beside, at)
        if epilogue is None or fits(epilogue, plan):
            return plan, epilogue
    except Unsuitable:
        # Operands of the epilogue may prevent loops from collapsing: retry without it.
        pass
    return make_plan(op, parts, dot, [], at), None


class Nest:
    """Builds the loop nest of one contraction."""

    def __init__(self, plan: Plan, at: IndexBuilder, from_zero: bool, epilogue: Epilogue | None):
        self.plan = plan
        self.epilogue = epilogue
        self.panels = allocate(plan, at)
        scalar = at.insert(zero(plan.element)).results[0]
        kind = vector_of(plan.element, plan.lanes)
        self.zero = at.insert(vector.BroadcastOp(scalar, kind)).results[0]
        self.staging: SSAValue | None = None
        divides = isinstance(plan.size_n, int) and plan.size_n % plan.lanes == 0
        if plan.loops.scattered or not divides:
            size = plan.tiling.mr * plan.nr
            self.staging = at.insert(memref.AllocaOp.get(plan.element, shape=[size])).results[0]
        self.from_zero = from_zero
        """The initial fill of C with zeros was erased: C starts from zero registers."""

    def build(self, at: IndexBuilder) -> None:
        """Emits the whole nest."""
        plan = self.plan
        inside = self._whole_k if plan.tiling.kc is None else self._slices_of_k
        self._loops([*plan.loops.batch, *plan.loops.outer_n, *plan.loops.outer_k], {}, at, inside)

    def _loops(
        self, loops: Sequence[int], ivs: dict[int, Size], at: IndexBuilder, inside: Inside
    ) -> None:
        if not loops:
            inside(ivs, at)
            return
        size = self.plan.sizes[loops[0]]
        if size == 1:
            self._loops(loops[1:], {**ivs, loops[0]: 0}, at, inside)
            return
        close, iv, b = for_loop(at, 0, size, 1)
        self._loops(loops[1:], {**ivs, loops[0]: iv}, b, inside)
        close()

    def _whole_k(self, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Emits the loops over panels and blocks of rows, with all of K in each block."""
        self._slice(ivs, Slice(0, None, self.epilogue), at)

    def _slices_of_k(self, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Emits the loop over slices of K; the epilogue is applied in the last slice."""
        plan, deep = self.plan, self.plan.tiling.kc
        assert deep is not None
        known = plan.size_k
        if self.epilogue is not None or plan.one_slice:
            # Emit one slice even if K is empty: the fill of C may have been erased.
            assert known is not None
            last = max(known - 1, 0) // deep * deep
            if last > 0 and known - last == deep:
                close, k0, b = for_loop(at, 0, known, deep)
                self._slice(ivs, Slice(k0, deep, self._epilogue_at(k0, last, b)), b)
                close()
                return
            if last > 0:
                close, k0, b = for_loop(at, 0, last, deep)
                self._slice(ivs, Slice(k0, deep, None), b)
                close()
            self._slice(ivs, Slice(last, known - last, self.epilogue), at)
            return
        size = at.product([plan.sizes[x] for x in plan.loops.k[0]])
        close, k0, b = for_loop(at, 0, size, deep)
        whole = known is not None and known % deep == 0
        depth = deep if whole else b.minimum(deep, b.sub(size, k0))
        self._slice(ivs, Slice(k0, depth, None), b)
        close()

    def _epilogue_at(self, k0: Size, last: int, at: IndexBuilder) -> Epilogue | None:
        """Returns the epilogue guarded by `k0 == last`, for a loop over equal slices."""
        if self.epilogue is None:
            return None
        is_last = at.insert(arith.CmpiOp(at.value(k0), at.value(last), "eq")).results[0]
        return replace(self.epilogue, condition=is_last)

    def _slice(self, ivs: dict[int, Size], part: Slice, at: IndexBuilder) -> None:
        """Emits one slice of K: A packed once and B panel by panel, or MC rows of A at a time."""
        plan = self.plan
        if plan.tiling.mc is None:
            turns = plan.sizes[plan.loops.outer_m[0]] if plan.loops.outer_m else 1
            pack_rows(self.panels, ivs, 0, plan.size_m, part, at)
            self._columns(
                lambda columns, b: self._panel(
                    pack_columns(self.panels, columns, ivs, part, b),
                    columns, ivs, Rows(0, plan.size_m, 0, turns), part, b,
                ),
                at,
            )  # fmt: skip
            return

        def strip(start: Size, count: Size, b: IndexBuilder) -> None:
            rows = Rows(start, count, 0, 1)
            if plan.loops.outer_m:
                rows = Rows(0, plan.size_m, start, count)
            pack_rows(self.panels, ivs, rows.first, rows.count, part, b)
            self._columns(
                lambda columns, c: self._panel(
                    self._panel_of_strips(columns, start, ivs, part, c),
                    columns, ivs, rows, part, c,
                ),
                b,
            )  # fmt: skip

        size = plan.sizes[plan.loops.outer_m[0]] if plan.loops.outer_m else plan.size_m
        assert isinstance(size, int)
        step = plan.tiling.mc
        # A last strip of fewer iterations is a trip of the loop; fewer rows have other blocks.
        main = size if plan.loops.outer_m else size // step * step
        close, start, b = for_loop(at, 0, main, step)
        strip(start, step if main % step == 0 else b.minimum(step, b.sub(size, start)), b)
        close()
        if main < size:
            strip(main, size - main, at)

    def _panel_of_strips(
        self, columns: Columns, first: Size, ivs: dict[int, Size], part: Slice, at: IndexBuilder
    ) -> Panels:
        """Returns a panel, packed by the row block that starts at row 0 and reused by the rest."""
        if self.panels.b is None:
            return self.panels
        panels = panel_of(self.panels, columns, at)
        if isinstance(first, int):
            return panels
        is_first = at.insert(arith.CmpiOp(first, at.value(0), "eq")).results[0]
        close, b = if_else(at, is_first)
        pack_columns(panels, columns, ivs, part, b)
        close()
        return panels

    def _panel(
        self, panels: Panels, columns: Columns, ivs: dict[int, Size], rows: Rows,
        part: Slice, at: IndexBuilder,
    ) -> None:  # fmt: skip
        """Emits some rows times the columns of one panel."""
        plan = self.plan
        base = plan.b.at(ivs, at)
        if panels.b is None and plan.packing.panel is not None:
            number = at.floordiv(columns.start, plan.packing.panel)
            base = at.add(base, at.mul(number, plan.panel_step))
        inside = self._rows(panels, columns, rows, base, part, at)
        if not plan.loops.outer_m or rows.turns == 1:
            first = {plan.loops.outer_m[0]: rows.turn} if plan.loops.outer_m else {}
            self._loops(plan.loops.outer_m[1:], {**ivs, **first}, at, inside)
            return
        close, turn, b = for_loop(at, 0, rows.turns, 1)
        self._loops(
            plan.loops.outer_m[1:],
            {**ivs, plan.loops.outer_m[0]: b.add(rows.turn, turn)},
            b,
            inside,
        )
        close()

    def _zeros(self, k0: Size, at: IndexBuilder) -> SSAValue | bool:
        """Returns whether C counts as zero in the slice that starts at `k0`."""
        if not self.from_zero or isinstance(k0, int):
            return self.from_zero and k0 == 0
        return at.insert(arith.CmpiOp(k0, at.value(0), "eq")).results[0]

    def _columns(self, panel: Callable[[Columns, IndexBuilder], None], at: IndexBuilder) -> None:
        """Emits the loop over panels of NR columns, and a narrower last panel."""
        plan, width = self.plan, self.plan.nr
        main = at.whole(plan.size_n, width)
        if main != 0 or not isinstance(main, int):
            close, j, b = for_loop(at, 0, main, width)
            panel(Columns(j, plan.tiling.vectors, None), b)
            close()
        left = remainder(plan.size_n, width)
        if left == 0:
            return
        rest = at.sub(plan.size_n, main)
        last = Columns(main, plan.tiling.vectors, rest)
        if left is not None:
            last = Columns(main, -(-left // plan.lanes), left if left % plan.lanes else None)
        if isinstance(rest, int):
            panel(last, at)
            return
        if left is None and plan.narrow is not None:
            width, start = plan.narrow * plan.lanes, main
            main = at.add(start, at.whole(rest, width))
            close, j, b = for_loop(at, start, main, width)
            panel(Columns(j, plan.narrow, None), b)
            close()
            last = Columns(main, plan.narrow, rest := at.sub(plan.size_n, main))
        some = at.insert(arith.CmpiOp(at.value(rest), at.value(0), "ne")).results[0]
        close, b = if_else(at, some)
        panel(last, b)
        close()

    def _rows(
        self, panels: Panels, columns: Columns, rows: Rows, base_b: Size, part: Slice,
        before: IndexBuilder,
    ) -> Inside:  # fmt: skip
        """Emits the loop over MR rows and its remainder; shared values are computed at `before`."""
        plan, first, count = self.plan, rows.first, rows.count
        corrections = None
        if plan.dot is not None and plan.dot.biased:
            corrections = column_sums(panels, columns, base_b, part, self.zero, before)

        zeros = self._zeros(part.start, before)

        def inside(ivs: dict[int, Size], at: IndexBuilder) -> None:
            def starts_a(i: Size, height: int, b: IndexBuilder) -> list[Size]:
                if panels.a is not None:
                    start = b.mul(i, panels.row)
                    return [b.add(start, r * panels.row) for r in range(height)]
                offset = b.mul(part.start, plan.a.steps[plan.loops.k[0][-1]])
                return plan.row_starts(plan.a, ivs, b.add(first, i), height, offset, b)

            def starts(operand: Operand, i: Size, height: int, b: IndexBuilder) -> list[Size]:
                offset = plan.column_offset(operand, columns.start, b)
                return plan.row_starts(operand, ivs, b.add(first, i), height, offset, b)

            first_b = plan.first_column(base_b, columns.start, part.start, at)
            ahead = None
            if panels.b is None and columns.valid is None:
                ahead = next_panel(plan, first_b, rows, part.depth, ivs, at)
            elif panels.b is not None and plan.tiling.mc is not None and columns.valid is None:
                ahead = next_packed_panel(self.panels, columns, count, part.depth, at)
            kernel = Kernel(
                plan, panels, columns, self.zero, zeros,
                first_b if panels.b is None else 0, starts_a, starts,
                self.staging, part, ahead, corrections,
            )  # fmt: skip
            main = at.whole(count, plan.tiling.mr)
            if not (isinstance(main, int) and main == 0):
                close, i, b = for_loop(at, 0, main, plan.tiling.mr)
                kernel.emit(i, plan.tiling.mr, b)
                close()
            self._last_rows(kernel, main, count, at)

        return inside

    def _last_rows(self, kernel: Kernel, start: Size, size: Size, at: IndexBuilder) -> None:
        """Emits the rows after the whole blocks: one block of a known number, else halves."""
        left = remainder(size, self.plan.tiling.mr)
        if left and isinstance(size, int):
            kernel.emit(start, left, at)
        if left == 0 or isinstance(size, int):
            return
        for height in [left] if left else rest_rows(self.plan.tiling.mr):
            last, rest = height in (left, 1), at.sub(size, start)
            stop = size if last else at.add(start, at.whole(rest, height))
            close, i, b = for_loop(at, start, stop, height)
            kernel.emit(i, height, b)
            close()
            start = stop
