"""Copies columns of B into a panel. Part of `irees-pack-panels`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import VectorType, i32
from xdsl.ir import SSAValue

from irees.analysis.contraction_tiling import suffix
from irees.analysis.divisibility import IntegerDivisibility
from irees.dialects.panel import PackColumnsOp, element_of
from irees.dialects.sizes import Size, folded
from irees.transforms.codegen.cpu.utils.register_transpose import transposed
from irees.transforms.codegen.cpu.utils.widening import widened
from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.loops import for_loop, if_both
from irees.transforms.utils.shapes import IndexBuilder


@dataclass(frozen=True)
class Loops:
    """Several loops that run as one, outermost first, with their steps in B."""

    sizes: list[Size]
    steps: list[Size]

    @staticmethod
    def of(sizes: Sequence[SSAValue], steps: Sequence[SSAValue]) -> Loops:
        """Returns loops with constants folded."""
        return Loops(list(map(folded, sizes)), list(map(folded, steps)))

    def at(self, index: Size, b: IndexBuilder) -> Size:
        """Returns the address of an iteration: its digits times the steps."""
        total: Size = 0
        rest = index
        for loop in reversed(range(len(self.sizes))):
            digit = rest if loop == 0 else b.rem(rest, self.sizes[loop])
            total = b.add(total, b.mul(digit, self.steps[loop]))
            if loop:
                rest = b.floordiv(rest, self.sizes[loop])
        return total

    @property
    def is_uniform(self) -> bool:
        """Whether the loops step through B with a single stride."""
        sizes, steps = self._known()
        return len(suffix(range(len(sizes)), (steps,), sizes)) == len(sizes)

    @property
    def is_contiguous(self) -> bool:
        """Whether adjacent iterations are adjacent in memory, everywhere."""
        return self.is_uniform and self.steps[-1] == 1

    def in_runs(self, length: int) -> Loops | None:
        """
        Returns the loops over runs of `length` iterations that are adjacent in memory; None if
        the iterations do not split into such runs.
        """
        sizes, steps = self._known()
        adjacent = suffix(range(len(sizes)), (steps,), sizes)
        run = [size for loop in adjacent if (size := sizes[loop]) is not None]
        if steps[-1] != 1 or len(run) < len(adjacent) or prod(run) % length:
            return None
        rest = adjacent[0]
        return Loops([*self.sizes[:rest], prod(run) // length], [*self.steps[:rest], length])

    def _known(self) -> tuple[list[int | None], list[int | None]]:
        known = [[x if isinstance(x, int) else None for x in e] for e in (self.sizes, self.steps)]
        return known[0], known[1]


@dataclass(frozen=True)
class Columns:
    """A `panel.pack_columns`, its constants as ints."""

    op: PackColumnsOp
    base: Size
    row: Size
    depth: Size
    column: Size
    valid: Size | None
    """Distinct columns; None if all are."""
    k: Loops
    n: Loops

    @staticmethod
    def of(op: PackColumnsOp) -> Columns:
        """Returns the op with its constants folded."""
        base, row, depth, column = map(folded, (op.base, op.row, op.depth, op.column))
        valid = None if op.valid is None else folded(op.valid)
        k, n = Loops.of(op.k_sizes, op.k_steps), Loops.of(op.n_sizes, op.n_steps)
        return Columns(op, base, row, depth, column, valid, k, n)

    @property
    def vectors(self) -> int:
        """Vectors in a row of the panel."""
        return self.op.vectors.value.data

    @property
    def lanes(self) -> int:
        """Columns in a vector."""
        return self.op.lanes.value.data

    @property
    def group(self) -> int:
        """Elements of K in a group."""
        return self.op.group.value.data

    def is_whole(self, v: int) -> bool:
        """Whether all columns of vector `v` are valid."""
        return self.valid is None or (
            isinstance(self.valid, int) and (v + 1) * self.lanes <= self.valid
        )

    @property
    def runs_along_k(self) -> bool:
        """Whether each column is contiguous in B, and all are valid."""
        uniform = self.k.is_contiguous and self.n.is_uniform
        return uniform and all(map(self.is_whole, range(self.vectors)))

    def vector_offset(self, v: int, at: IndexBuilder) -> Size | None:
        """
        Returns the offset in B of vector `v`, or None unless its columns are contiguous for sure.

        Columns that the innermost loops read in runs of whole vectors are, where the panel starts
        at a whole vector.
        """
        lanes, column = self.lanes, self.column
        if not self.is_whole(v):
            return None
        if self.n.is_contiguous:
            return at.add(column, v * lanes)
        runs = self.n.in_runs(lanes)
        if runs is None or not _is_multiple(column, lanes):
            return None
        return runs.at(at.add(at.floordiv(column, lanes), v), at)

    def write_offsets(self, at: IndexBuilder) -> None:
        """Stores the offset of each column in B."""
        close, lane, b = for_loop(at, 0, self.vectors * self.lanes, 1)
        column = b.add(self.column, lane)
        if self.op.total is not None:
            column = b.minimum(column, b.sub(folded(self.op.total), 1))
        offset = self.n.at(column, b)
        b.insert(memref.StoreOp.get(b.value(offset), self.op.offsets, [lane]))
        close()

    def offset(self, lane: Size, at: IndexBuilder) -> SSAValue:
        """Returns the offset of a column of the panel in B."""
        return at.insert(memref.LoadOp.get(self.op.offsets, [at.value(lane)])).results[0]

    def neighbours(self, v: int, at: IndexBuilder) -> SSAValue | None:
        """Returns whether the columns of vector `v` are contiguous in B; None if they never are."""
        if self.n.steps[-1] != 1:
            return None
        lanes = self.lanes
        first = self.offset(v * lanes, at)
        always = at.insert(arith.ConstantOp.from_int_and_width(1, 1)).results[0]
        # Checking only the last lane is wrong: a gap may be as long as the repeated lanes.
        close, lane, b = for_loop(at, 1, lanes, 1, [always])
        offset = self.offset(b.add(lane, v * lanes), b)
        next_to = b.insert(arith.CmpiOp(offset, b.value(b.add(first, lane)), "eq")).results[0]
        return close([b.insert(arith.AndIOp(close.arguments[0], next_to)).results[0]])[0]


def pack_columns(to: Columns, at: IndexBuilder) -> None:
    """
    panel[k, j] = B[row + k, column + j]; columns past the last valid one repeat it.
    """
    lanes = to.lanes
    start: Size = 0
    if to.runs_along_k and element_of(to.op.source) == element_of(to.op.panel):
        start = turn_columns(to, to.depth, at)
        if start == to.depth:
            return
    offsets = [to.vector_offset(v, at) for v in range(to.vectors)]
    if None in offsets:
        to.write_offsets(at)
    together = [to.neighbours(v, at) if o is None else None for v, o in enumerate(offsets)]
    close, k, b = for_loop(at, start, to.depth, 1)
    from_k = b.add(to.base, to.k.at(b.add(to.row, k), b))
    row = b.mul(k, to.vectors * lanes)
    for v, (offset, condition) in enumerate(zip(offsets, together, strict=True)):
        place = b.value(b.add(row, v * lanes))
        if offset is not None:
            _copy_vector(to, b.add(from_k, offset), place, b)
        elif condition is None:
            _copy_lanes(to, from_k, v, place, b)
        else:
            end, yes, no = if_both(b, condition)
            _copy_vector(to, yes.add(from_k, to.offset(v * lanes, yes)), place, yes)
            _copy_lanes(to, from_k, v, place, no)
            end()
    close()


def _is_multiple(size: Size, of: int) -> bool:
    """Whether a size is known to be a multiple of `of`."""
    divisor = size if isinstance(size, int) else IntegerDivisibility(wraps=False).of(size).sdiv
    return divisor % of == 0


def turn_columns(to: Columns, full: Size, at: IndexBuilder) -> Size:
    """
    Packs square tiles of columns that run along K by transposing them in registers; returns the
    rows of B that it packed. A group of K is a 32-bit word.
    """
    lanes, chunk = to.lanes, to.lanes * to.group
    main = at.mul(at.floordiv(full, chunk), chunk)
    kind = vector_of(element_of(to.op.panel), chunk)
    words = kind if to.group == 1 else vector_of(i32, lanes)
    step = to.n.steps[-1]
    close, k, b = for_loop(at, 0, main, chunk)
    for v in range(to.vectors):
        first = b.add(b.add(to.base, b.add(to.row, k)), b.mul(b.add(to.column, v * lanes), step))
        rows: list[SSAValue] = []
        for lane in range(lanes):
            place = b.value(b.add(first, b.mul(step, lane)))
            read = b.insert(vector.LoadOp(to.op.source, [place], kind)).results[0]
            rows.append(bits(read, words, b))
        target = b.add(b.mul(k, to.vectors * lanes), v * chunk)
        for number, word in enumerate(transposed(rows, b)):
            there = b.add(target, number * to.vectors * chunk)
            b.insert(vector.StoreOp(bits(word, kind, b), to.op.panel, [b.value(there)]))
    close()
    return main


def bits(value: SSAValue, kind: VectorType, at: IndexBuilder) -> SSAValue:
    """Returns the value bitcast to another vector type."""
    if value.type == kind:
        return value
    return at.insert(vector.BitcastOp(value, kind)).results[0]


def _copy_vector(to: Columns, source: Size, place: SSAValue, b: IndexBuilder) -> None:
    kind = vector_of(element_of(to.op.source), to.lanes)
    read = b.insert(vector.LoadOp(to.op.source, [b.value(source)], kind)).results[0]
    b.insert(vector.StoreOp(_widened(to, read, b), to.op.panel, [place]))


def _copy_lanes(to: Columns, from_k: Size, v: int, place: SSAValue, b: IndexBuilder) -> None:
    close, lane, c = for_loop(b, 0, to.lanes, 1)
    source = c.value(c.add(from_k, to.offset(c.add(lane, v * to.lanes), c)))
    read = c.insert(memref.LoadOp.get(to.op.source, [source])).results[0]
    value = _widened(to, read, c)
    c.insert(memref.StoreOp.get(value, to.op.panel, [c.value(c.add(place, lane))]))
    close()


def _widened(to: Columns, value: SSAValue, b: IndexBuilder) -> SSAValue:
    return widened(value, element_of(to.op.panel), b, unsigned=to.op.unsigned is not None)
