"""
Sorts one row by all threads of a workgroup, with the row in registers. Part of
`irees-gpu-lower-sorts`.

Each thread holds some elements: the bits of the value, and the original position (`ranks.py`).
For each digit, lowest first, the elements are ranked, stored to shared memory in order and read
back. Only the first load and the last store access global memory:

    words[i], origins[i] = %x[place(i)], place(i)
    scf.for %digit = 0 to 4 {
      count ; gpu.barrier ; scan ; gpu.barrier
      scf.if not all elements have one digit {
        %word[rank(i)], %origin[rank(i)] = words[i], origins[i] ; gpu.barrier
        words[i], origins[i] = %word[place(i)], %origin[place(i)]
      }
    }
    %x[place(i)] = words[i]

Values keep their bits (the sign of zeros, NaN payloads): their keys are computed again for each
digit. Other operands are gathered by origin at the end, all before the first is stored, so the sort
works in place without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, i32
from xdsl.ir import SSAValue

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.upstream.gpu import BarrierOp
from irees.transforms.codegen.common.utils.radix_keys import (
    RadixKey,
    bits_of,
    key_of_bits,
    value_of_bits,
)
from irees.transforms.codegen.common.utils.rows import as_type, compare, load, store
from irees.transforms.codegen.gpu.gpu_lower_sorts.ranks import Ranks, Thread
from irees.transforms.codegen.gpu.utils.segments import threads
from irees.transforms.codegen.gpu.utils.sort_tiles import Plan, Tile
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.codegen.gpu.utils.warps import (
    before,
    digit_of,
    integer,
    private,
    shared,
    unrolled,
)
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.shapes import IndexBuilder, Size

Place = Callable[[SSAValue], Sequence[Size]]
"""Returns the indices of an element of the row in the operands."""


@dataclass(frozen=True)
class Items:
    """The elements of a thread: words, origins and ranks, each a private array."""

    thread: Thread
    words: SSAValue
    origins: SSAValue
    ranks: SSAValue

    @staticmethod
    def allocate(thread: Thread, tile: Tile, word: IntegerType, at: IndexBuilder) -> Items:
        """Allocates the arrays."""
        return Items(thread, *(private(kind, tile.items, at) for kind in (word, i32, i32)))


@dataclass(frozen=True)
class RegisterRow:
    """A row of at most `tile.size` elements, and the shared memory to sort it."""

    op: ext.SortOp
    plan: Plan
    ranks: Ranks
    words: SSAValue
    origins: SSAValue
    ordered: SSAValue
    """Per digit: whether all elements share it."""

    @staticmethod
    def allocate(op: ext.SortOp, plan: Plan, tile: Tile, at: IndexBuilder) -> RegisterRow:
        """Allocates the shared memory."""
        word = IntegerType(plan.key.width)
        ranks = Ranks.allocate(tile, i32, at)
        staged = [shared(kind, [tile.size], at) for kind in (word, i32)]
        return RegisterRow(op, plan, ranks, *staged, shared(i32, [plan.passes], at))

    @property
    def key(self) -> RadixKey:
        """The sort key."""
        return self.plan.key

    @property
    def size(self) -> int:
        """The length of the row."""
        return self.plan.size

    @property
    def tile(self) -> Tile:
        """The tile that holds the row."""
        return self.ranks.tile

    def sort(self, place: Place, at: IndexBuilder) -> None:
        """Sorts a row; ends with a barrier."""
        passes = self.plan.passes
        close, index, b = threads(at, self.tile.threads)
        thread = Thread.of(index, self.tile, b)
        items = Items.allocate(thread, self.tile, IntegerType(self.key.width), b)
        self._take(items, place, b)
        end, c = if_else(b, compare(index, passes, "slt", b))
        store(integer(0, i32, c), self.ordered, [index], c)
        end()
        body, number, c = for_loop(b, 0, passes, 1)
        self._sort_by_digit(items, number, c)
        body()
        for operand in range(len(self.op.outputs)):
            self._give(items, operand, place, b)
        close()
        at.insert(BarrierOp())

    def _take(self, items: Items, place: Place, at: IndexBuilder) -> None:
        """Loads the elements of a thread; those past the end are arbitrary."""
        source = self.op.sources[self.key.operand]
        assert source is not None
        body, i, b = unrolled(at, self.tile.items)
        where = b.value(b.minimum(items.thread.place(i, b), self.size - 1))
        store(bits_of(self.key, load(source, place(where), b), b), items.words, [i], b)
        store(as_type(where, i32, b), items.origins, [i], b)
        body()

    def _sort_by_digit(self, items: Items, pass_: SSAValue, at: IndexBuilder) -> None:
        """Sorts the elements by one digit."""
        tile, kind, thread = self.tile, IntegerType(self.key.width), items.thread
        shift = as_type(at.value(at.mul(pass_, tile.digit)), kind, at)
        left = as_type(at.value(at.sub(self.size, thread.first)), i32, at)

        def digit(i: SSAValue, b: IndexBuilder) -> SSAValue:
            key = key_of_bits(self.key, load(items.words, [i], b), b)
            found = digit_of(key, shift, b, tile.digit)
            if self.size == tile.size:
                return found
            inside = before(b.mul(i, WARP), left, b)
            last = integer(tile.digits - 1, i32, b)
            return b.insert(arith.SelectOp(inside, found, last)).results[0]

        def use(value: SSAValue, first: SSAValue, sums: Sequence[SSAValue], b: IndexBuilder):
            # Elements past the end have the last digit.
            is_last = compare(value, tile.digits - 1, "eq", b)
            every = integer(tile.size, i32, b), integer(self.size, i32, b)
            wanted = b.insert(arith.SelectOp(is_last, *every)).results[0]
            same = b.insert(arith.CmpiOp(sums[0], wanted, "eq")).results[0]
            close, c = if_else(b, same)
            store(integer(1, i32, c), self.ordered, [pass_], c)
            close()

        self.ranks.clear(thread, at)
        self.ranks.count(thread, items.ranks, digit, at)
        self.ranks.scan(thread, at, use)
        ordered = load(self.ordered, [pass_], at)
        moves = at.insert(arith.CmpiOp(ordered, integer(0, i32, at), "eq")).results[0]
        close, b = if_else(at, moves)
        self._exchange(items, b)
        close()

    def _exchange(self, items: Items, at: IndexBuilder) -> None:
        """Puts the elements in the order of their ranks, through shared memory."""
        pairs = ((items.words, self.words), (items.origins, self.origins))
        body, i, b = unrolled(at, self.tile.items)
        where = self.ranks.place(items.thread, items.ranks, i, b)
        for mine, buffer in pairs:
            store(load(mine, [i], b), buffer, [where], b)
        body()
        at.insert(BarrierOp())
        body, i, b = unrolled(at, self.tile.items)
        for mine, buffer in pairs:
            store(load(buffer, [items.thread.place(i, b)], b), mine, [i], b)
        body()

    def _give(self, items: Items, operand: int, place: Place, at: IndexBuilder) -> None:
        """Stores one operand in order."""
        source, target = self.op.sources[operand], self.op.outputs[operand]
        kind = target.type.element_type  # type: ignore[attr-defined]
        values = None
        if source is not None and operand != self.key.operand:
            values = self._gather(items, source, place, at)
        body, i, b = unrolled(at, self.tile.items)
        where = items.thread.place(i, b)
        close, c = if_else(b, compare(where, self.size, "slt", b))
        if values is not None:
            value = load(values, [i], c)
        elif source is None:
            value = as_type(as_type(load(items.origins, [i], c), IndexType(), c), kind, c)
        else:
            value = value_of_bits(self.key, load(items.words, [i], c), c)
        store(value, target, place(where), c)
        close()
        body()

    def _gather(self, items: Items, source: SSAValue, place: Place, at: IndexBuilder) -> SSAValue:
        """Loads the unsorted values of the elements, before any thread stores one."""
        kind = source.type.element_type  # type: ignore[attr-defined]
        values = private(kind, self.tile.items, at)
        body, i, b = unrolled(at, self.tile.items)
        origin = as_type(load(items.origins, [i], b), IndexType(), b)
        store(load(source, place(origin), b), values, [i], b)
        body()
        at.insert(BarrierOp())
        return values
