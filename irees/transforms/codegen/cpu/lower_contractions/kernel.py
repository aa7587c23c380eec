"""
A block of C around its micro-kernel: loads it, and stores it. Part of `irees-lower-contractions`.

    C[i : i + MR, j : j + NR] += A[i : i + MR, :] * B[:, j : j + NR]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.ir import SSAValue

from irees.dialects.panel import Facts, MicroKernelOp
from irees.transforms.codegen.cpu.lower_contractions.epilogue import Epilogue, Slice
from irees.transforms.codegen.cpu.lower_contractions.panels import Columns, Panels
from irees.transforms.codegen.cpu.lower_contractions.plan import Operand, Plan, store_columns
from irees.transforms.codegen.cpu.lower_contractions.prefetch import NextPanel
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.loops import for_loop, if_both
from irees.transforms.utils.shapes import IndexBuilder, Size


@dataclass
class Kernel:
    """The micro-kernel for one panel of B and one slice of K."""

    plan: Plan
    panels: Panels
    columns: Columns
    zero: SSAValue
    """A vector of zeros."""
    zeros: SSAValue | bool
    """Whether C is taken as zero, whatever it holds; a value if only in the first slice of K."""
    first_b: Size
    """Start of the K slice in the panel of B."""
    starts_a: Callable[[Size, int, IndexBuilder], list[Size]]
    """Returns the start of each row in A, or in its packed panel."""
    starts: Callable[[Operand, Size, int, IndexBuilder], list[Size]]
    """Returns the start of each row in C, or in an operand of the epilogue."""
    staging: SSAValue | None
    """Buffer of MR x NR elements for columns of C that are not contiguous or not complete."""
    part: Slice
    ahead: NextPanel | None
    """The next panel, of which each block of rows prefetches a part."""
    corrections: list[SSAValue] | None
    """Correction per vector of columns for biased rows of A."""

    def emit(self, i: Size, rows: int, at: IndexBuilder) -> None:
        """Emits C[i:i+rows, columns] += A[i:i+rows, :] * B[:, columns]."""
        plan = self.plan
        starts_c = self.starts(plan.c, i, rows, at)
        held = not self._later and self.zeros is not True
        accs = [self.zero] * (rows * self.columns.vectors)
        if held:
            accs = self._held(starts_c, at)
        if self.corrections is not None:
            accs = self._corrected(accs, at)
        results = self._multiply(i, self.starts_a(i, rows, at), accs, at)
        if self.part.epilogue is None:
            self._write(starts_c, results, at)
        elif self.part.epilogue.condition is None:
            self._conclude(self.part.epilogue, i, starts_c, results, at)
        else:
            close, last, before = if_both(at, self.part.epilogue.condition)
            self._conclude(self.part.epilogue, i, starts_c, results, last)
            self._write(starts_c, results, before)
            close()

    @property
    def _later(self) -> bool:
        """Whether C is added to the accumulators after the loops of K, not loaded before."""
        return self.plan.adds_later and self.zeros is not True

    def _write(self, starts: list[Size], values: list[SSAValue], at: IndexBuilder) -> None:
        """Stores the accumulators, plus C unless C is taken as zero."""
        if not (self._later and isinstance(self.zeros, SSAValue)):
            self._finish(starts, self._whole_sums(starts, values, at), at)
            return
        close, first, rest = if_both(at, self.zeros)
        self._finish(starts, values, first)
        self._finish(starts, self._sums(starts, values, rest), rest)
        close()

    def _conclude(
        self, epilogue: Epilogue, i: Size, starts: list[Size], values: list[SSAValue],
        at: IndexBuilder,
    ) -> None:  # fmt: skip
        """Stores D = f(C + accumulators); the last slice is not the first if `zeros` is a value."""
        sums = self._whole_sums(starts, values, at)
        if epilogue.consumer.keeps_source:
            self._finish(starts, sums, at)
        rows, vectors = len(starts), self.columns.vectors
        epilogue.emit(self.plan, vectors, sums, lambda o: self.starts(o, i, rows, at), at)

    def _whole_sums(
        self, starts: list[Size], values: list[SSAValue], at: IndexBuilder
    ) -> list[SSAValue]:
        """Returns the accumulators, plus C if it was not loaded before."""
        return self._sums(starts, values, at) if self._later else values

    def _multiply(
        self, i: Size, rows: list[Size], accs: list[SSAValue], at: IndexBuilder
    ) -> list[SSAValue]:
        """Returns the accumulators plus the products of some rows with the columns."""
        plan, panels = self.plan, self.panels
        following = None
        if self.ahead is not None:
            block = at.add(self.ahead.turn, at.floordiv(i, plan.tiling.mr))
            following = (self.ahead.buffer, at.value(self.ahead.start), at.value(block))
        loops = [self._extent(level, at) for level in range(len(plan.loops.k))]
        trips, a_steps, b_steps = ([at.value(x) for x in each] for each in zip(*loops, strict=True))
        apart: Size = plan.lanes * plan.group
        if panels.b is None and plan.loops.vector_loop is not None:
            apart = plan.b.steps[plan.loops.vector_loop]
        op = MicroKernelOp(
            (panels.a or plan.a.flat, [at.value(row) for row in rows], a_steps),
            (panels.b or plan.b.flat, [at.value(self.first_b)], b_steps),
            at.value(apart), trips, accs, self._facts(following, at),
        )  # fmt: skip
        return list(at.insert(op).results)

    def _facts(
        self, following: tuple[SSAValue, SSAValue, SSAValue] | None, at: IndexBuilder
    ) -> Facts:
        """Returns the element types of the operands, their layout, and what is read next."""
        plan, panels = self.plan, self.panels
        valid, biased = None, plan.dot is not None and plan.dot.biased
        if panels.b is None and plan.packing.panel is None and self.columns.valid is not None:
            valid = (at.value(self.columns.valid), self.zero)
        return Facts(
            (plan.tiling.mr, plan.nr), self._layout, plan.group, valid=valid, following=following,
            unsigned_a=plan.unsigned_a or (biased and panels.a is not None),
            unsigned_b=plan.unsigned_b, bias=biased and panels.a is None,
            blocks=None if self.ahead is None else self.ahead.blocks,
        )  # fmt: skip

    @property
    def _layout(self) -> str:
        """The layout of B: `packed`, `streamed`, `panels`, `plain` or `blocks`."""
        if self.panels.b is not None:
            return "packed"
        if self.plan.packing.streamed:
            return "streamed"
        if self.plan.packing.panel is not None:
            return "panels"
        return "plain" if self.plan.loops.vector_loop is None else "blocks"

    def _extent(self, level: int, at: IndexBuilder) -> tuple[Size, Size, Size]:
        """Returns the trip count of a loop of K, and its strides in A and in B."""
        plan = self.plan
        last = plan.loops.k[level][-1]
        step_a, step_b = plan.a.steps[last], plan.b.steps[last]
        size = at.product([plan.sizes[x] for x in plan.loops.k[level]])
        if level == 0 and self.part.depth is not None:
            size = self.part.depth
        if self.panels.b is not None:
            step_b = self.columns.vectors * plan.lanes
        if self.panels.a is not None:
            step_a = 1
        if plan.dot is not None:
            size, step_b = at.ceildiv(size, plan.group), at.mul(step_b, plan.group)
            step_a = plan.group
        return size, step_a, step_b

    # --- C --------------------------------------------------------------------------------

    def _whole(self, v: int) -> bool:
        """Whether all lanes of vector `v` are valid columns of the output."""
        valid = self.columns.valid
        return valid is None or (isinstance(valid, int) and (v + 1) * self.plan.lanes <= valid)

    def _staged(self, v: int) -> bool:
        """Whether vector `v` of C is staged, because it is not contiguous or not complete."""
        return self.plan.loops.scattered or not self._whole(v)

    def _place(
        self, starts: list[Size], r: int, v: int, b: IndexBuilder
    ) -> tuple[SSAValue, SSAValue]:
        """Returns buffer and offset of vector `v` of row `r`: in C, or in the staging buffer."""
        if self._staged(v):
            assert self.staging is not None
            number = (r * self.columns.vectors + v) * self.plan.lanes
            return self.staging, b.value(number)
        return self.plan.c.flat, b.value(self.plan.place(self.plan.c, starts[r], v, b))

    def _corrected(self, values: list[SSAValue], at: IndexBuilder) -> list[SSAValue]:
        """Adds the corrections of the columns to the accumulators."""
        corrections = self.corrections
        assert corrections is not None
        each = [corrections[number % len(corrections)] for number in range(len(values))]
        return [
            c if value is self.zero else at.insert(arith.AddiOp(value, c)).results[0]
            for value, c in zip(values, each, strict=True)
        ]

    def _sums(self, starts: list[Size], values: list[SSAValue], at: IndexBuilder) -> list[SSAValue]:
        """Returns C + accumulators."""
        pairs = zip(self._held(starts, at), values, strict=True)
        add = self.plan.parts.add
        return [at.insert(same_op(add, pair, [self.zero.type])).results[0] for pair in pairs]

    def _held(self, starts: list[Size], at: IndexBuilder) -> list[SSAValue]:
        """Loads C, through the staging buffer where needed."""
        every = [(r, v) for r in range(len(starts)) for v in range(self.columns.vectors)]
        staged = [(r, v) for r, v in every if self._staged(v)]
        for r, v in staged:
            buffer, place = self._place(starts, r, v, at)
            at.insert(vector.StoreOp(self.zero, buffer, [place]))
        if staged:
            self._move(starts, at, out=False)
        places = [self._place(starts, r, v, at) for r, v in every]
        return [
            at.insert(vector.LoadOp(buffer, [place], self.zero.type)).results[0]
            for buffer, place in places
        ]

    def _finish(self, starts: list[Size], values: list[SSAValue], at: IndexBuilder) -> None:
        """Stores the accumulators to C, through the staging buffer where needed."""
        vectors, valid = self.columns.vectors, self.columns.valid
        plan, count = self.plan, vectors * self.plan.lanes if valid is None else valid
        if len(starts) > 1 and isinstance(count, int) and plan.stores_columns(plan.c):
            store_columns(plan, values, count, (plan.c, starts[0]), at)
            return
        for number, value in enumerate(values):
            buffer, place = self._place(starts, number // vectors, number % vectors, at)
            at.insert(vector.StoreOp(value, buffer, [place]))
        if any(self._staged(v) for v in range(vectors)):
            self._move(starts, at, out=True)

    def _move(self, starts: list[Size], at: IndexBuilder, *, out: bool) -> None:
        """Copies the staged columns from the staging buffer to C if `out`, else from C."""
        plan, valid, width = self.plan, self.columns.valid, self.columns.vectors * self.plan.lanes
        assert self.staging is not None
        first = next(v for v in range(self.columns.vectors) if self._staged(v)) * plan.lanes
        close, j, b = for_loop(at, first, width if valid is None else valid, 1)
        column = b.mul(j, plan.step_n)
        for r, start in enumerate(starts):
            staged = self.staging, b.value(b.add(j, r * width))
            there = plan.c.flat, b.value(b.add(start, column))
            source, target = (staged, there) if out else (there, staged)
            part = b.insert(memref.LoadOp.get(source[0], [source[1]])).results[0]
            b.insert(memref.StoreOp.get(part, target[0], [target[1]]))
        close()
