"""
The micro-kernel of a contraction: MR x NR of C in registers. Part of `irees-lower-contractions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.ir import SSAValue

from irees.transforms.codegen.cpu.lower_contractions.dots import (
    flipping,
    multiply_group,
    wide_broadcast,
)
from irees.transforms.codegen.cpu.lower_contractions.epilogue import Epilogue, Slice
from irees.transforms.codegen.cpu.lower_contractions.panels import Columns, Panels
from irees.transforms.codegen.cpu.lower_contractions.plan import Operand, Plan
from irees.transforms.codegen.cpu.lower_contractions.prefetch import (
    NextPanel,
    ask_ahead,
    steps_ahead,
)
from irees.transforms.codegen.cpu.utils.widening import widened
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.loops import for_loop, if_both
from irees.transforms.utils.shapes import IndexBuilder, Size


@dataclass(frozen=True)
class Step:
    """Where a step of K is, in the loops of K that are open."""

    rows: list[Size]
    """The element of A in each row of the block."""
    column: Size
    """The first element of B."""
    number: Size
    """Steps of K before this one, if there are prefetches."""
    asked: Size
    """Where the part of the next panel starts that this block of rows prefetches."""


@dataclass
class Kernel:
    """The micro-kernel for one panel of B and one slice of K."""

    plan: Plan
    panels: Panels
    columns: Columns
    zero: SSAValue
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

    @property
    def kind(self):
        """The type of one vector of C."""
        return vector_of(self.plan.element, self.plan.lanes)

    def emit(self, i: Size, rows: int, at: IndexBuilder) -> None:
        """Emits C[i:i+rows, columns] += A[i:i+rows, :] * B[:, columns]."""
        plan = self.plan
        starts_c = self.starts(plan.c, i, rows, at)
        held = not self._later and self.zeros is not True
        accs = self._held(starts_c, at) if held else self._zeros(rows)
        if self.corrections is not None:
            accs = self._corrected(accs, at)
        starts = self.starts_a(i, rows, at)
        asked: Size = 0
        if self.ahead is not None:
            asked = self.ahead.share_of(at.floordiv(i, plan.tiling.mr), at)
        results = self._reduce(0, Step(starts, self.first_b, 0, asked), accs, at)
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

    def _reduce(
        self, level: int, step: Step, accs: list[SSAValue], at: IndexBuilder
    ) -> list[SSAValue]:
        """Emits the loops of K from `level` on, with C in loop-carried registers."""
        plan = self.plan
        if level == len(plan.loops.k):
            if self.ahead is not None:
                self.ahead.ask(step.asked, step.number, at)
            return self._step(step.rows, step.column, accs, at)
        size, step_a, step_b = self._extent(level, at)
        close, k, b = for_loop(at, 0, size, 1, accs)
        ahead = b.mul(k, step_a)
        rows = [b.add(row, ahead) for row in step.rows]
        carried = list(close.arguments)
        number = step.number
        if self.ahead is not None:
            number = b.add(b.mul(number, size), k)
        column = b.add(step.column, b.mul(k, step_b))
        steps = steps_ahead(plan, self.panels, self.part.depth)
        if level + 1 == len(plan.loops.k) and steps is not None:
            source = plan.b.flat if self.panels.b is None else self.panels.b
            vectors = [self._offset(v, b) for v in range(self.columns.vectors)]
            ask_ahead(plan, source, column, b.mul(step_b, steps), vectors, b)
        return close(self._reduce(level + 1, Step(rows, column, number, step.asked), carried, b))

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

    def _step(
        self, rows: list[Size], column: Size, accs: list[SSAValue], b: IndexBuilder
    ) -> list[SSAValue]:
        """Emits one outer product: acc[r, v] + broadcast(A[r]) * B[v]."""
        plan, vectors = self.plan, self.columns.vectors
        columns = [self._column(b.add(column, self._offset(v, b)), v, b) for v in range(vectors)]
        packed_rows = self.panels.a
        source = plan.a.flat if packed_rows is None else packed_rows
        flip = flipping(self.panels, b)
        out: list[SSAValue] = []
        for r, row in enumerate(rows):
            if plan.dot is not None:
                splat = wide_broadcast(plan, source, row, flip, b)
                for v in range(vectors):
                    acc = accs[r * vectors + v]
                    out.append(multiply_group(plan.dot, acc, splat, columns[v], b))
                continue
            scalar = b.insert(memref.LoadOp.get(source, [b.value(row)])).results[0]
            if packed_rows is None:
                scalar = widened(scalar, plan.element, b, unsigned=plan.unsigned_a)
            splat = b.insert(vector.BroadcastOp(scalar, self.kind)).results[0]
            for v in range(vectors):
                product = b.insert(
                    same_op(plan.parts.multiply, [splat, columns[v]], [splat.type])
                ).results[0]
                acc = accs[r * vectors + v]
                out.append(b.insert(same_op(plan.parts.add, [acc, product], [acc.type])).results[0])
        return out

    def _offset(self, v: int, b: IndexBuilder) -> Size:
        """Returns the offset of vector `v` of B from the first vector of a step."""
        plan = self.plan
        if plan.loops.vector_loop is not None and self.panels.b is None:
            return b.mul(plan.b.steps[plan.loops.vector_loop], v)
        return v * plan.lanes * plan.group

    def _column(self, start: Size, v: int, b: IndexBuilder) -> SSAValue:
        plan = self.plan
        if self.panels.b is not None:
            kind = vector_of(plan.packed_element, plan.lanes * plan.group)
            return b.insert(vector.LoadOp(self.panels.b, [b.value(start)], kind)).results[0]
        source = plan.b.flat
        if self._whole(v) or plan.packing.panel is not None:
            value = b.insert(vector.LoadOp(source, [b.value(start)], self._kind_of_b())).results[0]
            if plan.dot is not None:
                return value
            return widened(value, plan.element, b, unsigned=plan.unsigned_b)
        # Columns past the end of an unpacked B may be out of bounds.
        close, lane, c = for_loop(b, 0, self._count(v, b), 1, [self.zero])
        value = c.insert(memref.LoadOp.get(source, [c.value(c.add(start, lane))])).results[0]
        value = widened(value, plan.element, c, unsigned=plan.unsigned_b)
        return close([c.insert(vector.InsertOp(value, close.arguments[0], [lane])).results[0]])[0]

    def _kind_of_b(self):
        return vector_of(self.plan.b.flat.type.element_type, self.plan.lanes * self.plan.group)

    # --- C --------------------------------------------------------------------------------

    def _whole(self, v: int) -> bool:
        """Whether all lanes of vector `v` are valid columns of the output."""
        valid = self.columns.valid
        return valid is None or (isinstance(valid, int) and (v + 1) * self.plan.lanes <= valid)

    def _staged(self, v: int) -> bool:
        """Whether vector `v` of C is staged, because it is not contiguous or not complete."""
        return self.plan.loops.scattered or not self._whole(v)

    def _count(self, v: int, b: IndexBuilder) -> Size:
        """Returns the number of valid columns in vector `v`."""
        valid = self.columns.valid
        assert valid is not None
        return b.maximum(b.minimum(b.sub(valid, v * self.plan.lanes), self.plan.lanes), 0)

    def _place(
        self, starts: list[Size], r: int, v: int, b: IndexBuilder
    ) -> tuple[SSAValue, SSAValue]:
        """Returns buffer and offset of vector `v` of row `r`: in C, or in the staging buffer."""
        if self._staged(v):
            assert self.staging is not None
            number = (r * self.columns.vectors + v) * self.plan.lanes
            return self.staging, b.value(number)
        return self.plan.c.flat, b.value(self.plan.place(self.plan.c, starts[r], v, b))

    def _zeros(self, rows: int) -> list[SSAValue]:
        """Returns zero accumulators."""
        return [self.zero] * (rows * self.columns.vectors)

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
        return [at.insert(same_op(add, pair, [self.kind])).results[0] for pair in pairs]

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
            at.insert(vector.LoadOp(buffer, [place], self.kind)).results[0]
            for buffer, place in places
        ]

    def _finish(self, starts: list[Size], values: list[SSAValue], at: IndexBuilder) -> None:
        """Stores the accumulators to C, through the staging buffer where needed."""
        vectors = self.columns.vectors
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
