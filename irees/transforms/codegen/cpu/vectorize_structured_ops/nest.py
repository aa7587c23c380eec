"""
Lowers one structured op to a loop nest, vectorized along one loop. Part of
`irees-vectorize-structured-ops`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import prod

from xdsl.dialects import arith, cf
from xdsl.dialects.builtin import IntegerType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.register_blocking import rest_rows
from irees.dialects.storage import loaded, root
from irees.targets.cpu import CPU
from irees.transforms.codegen.common.utils.surroundings import (
    Neighbour,
    erase_with_buffer,
    fill_of,
    find_consumer,
    find_producer,
    has_vector_form,
)
from irees.transforms.codegen.cpu.utils.element_accesses import ElementAccesses
from irees.transforms.codegen.cpu.utils.invariants import invariants, sharing_loop
from irees.transforms.codegen.cpu.vectorize_structured_ops.panels import (
    reduce_in_turns,
    reduce_panels,
    takes_panels,
    takes_turns,
)
from irees.transforms.codegen.cpu.vectorize_structured_ops.reduction import reduce_lanes
from irees.transforms.codegen.cpu.vectorize_structured_ops.sliding import choose_sliding, slide
from irees.transforms.utils.combiners import combiners
from irees.transforms.utils.lanes import (
    Kind,
    Lane,
    NotVectorizableError,
    evaluate,
    hoist,
    lane_bytes,
    materialize,
)
from irees.transforms.utils.loops import for_loop, if_both
from irees.transforms.utils.shapes import IndexBuilder, Size, remainder, upper_bound
from irees.transforms.utils.structured import element_type, is_parallel, writes_along_reduction


@dataclass
class Nest(ElementAccesses):
    """The lowering of one structured op."""

    reassociate: bool = True
    computed: dict[SSAValue, Lane] = field(default_factory=dict)
    """Body values that are invariant in the inner loops."""
    inner: int | None = None
    """The innermost loop of a nest without reductions, if it is not the last or vectorized one."""
    jam: int | None = None
    """The loop to unroll and jam, if any."""
    points: int = 1
    """The unroll factor of `jam`."""
    apart: Size = 1
    """The distance between jammed iterations."""
    sliding: int | None = None
    """The reduction loop that slides along `jam`; it is the innermost one, and unrolled."""
    beside: int | None = None
    """Another loop to unroll and jam, whose iterations read the same window."""
    widths: int = 1
    """The unroll factor of `beside`."""
    registers: int = 16
    """The vector registers of the target."""
    checked: list[Operation] = field(default_factory=list)
    """Asserts that are emitted once for all jammed rows, detached from the body."""
    in_panels: bool = False
    """Whether a reduction visits its rows in panels, with the results in memory in between."""
    panel: list[tuple[Size, dict[SSAValue, Lane]]] = field(default_factory=list)
    """The rows of a panel, with body values that are the same for all columns."""
    rows: list[dict[SSAValue, Lane]] = field(default_factory=list)
    """Body values of each jammed row that are the same along the innermost loop."""
    in_turns: bool = False
    """Whether rows are added to several accumulators in turn."""
    fill: linalg.GenericOp | None = None
    """The fill of the output, which is erased with this op."""
    start: arith.ConstantOp | None = None
    """The initial value of the accumulators, if it need not be loaded."""
    consumer: Neighbour | None = None
    """The elementwise consumer, fused while results are in registers."""
    after: Nest | None = None
    """The consumer, vectorized along the same loop."""
    producer: Neighbour | None = None
    """The elementwise producer of an input, fused where the input is read."""
    before: Nest | None = None
    """The producer, vectorized along the same loop."""

    # --- choosing the loop to vectorize ------------------------------------------------

    def choose(self) -> None:
        """Picks the loop to vectorize and the number of lanes. Raises NotVectorizableError."""
        if writes_along_reduction(self.op):
            raise NotVectorizableError("the output is indexed by a reduction loop")
        self.require_lanes()
        reasons: list[str] = []
        for axis in self._candidates():
            strides = self.strides(axis)
            if "other" in strides:
                reasons.append(f"loop {axis} is strided")
                continue
            outputs = strides[self.inputs :]
            if self.kinds[axis] == "parallel" and self.is_contiguous(axis):
                self.take(axis)
                return
            if self.kinds[axis] == "reduction" and all(s == "uniform" for s in outputs):
                if self.combiners() is None:
                    reasons.append("the reduction has no known combiner")
                    continue
                # Sums of integers wrap: any order gives the same bits.
                exact = all(isinstance(element_type(o), IntegerType) for o in self.op.outputs)
                if not self.reassociate and not exact:
                    reasons.append("fp=strict keeps the order of a reduction")
                    continue
                self.take(axis)
                if self.fit_lanes(axis):
                    return
                self.axis = None
                reasons.append(f"loop {axis} is shorter than a vector")
        raise NotVectorizableError("; ".join(reasons) or "no loop is contiguous")

    def _moving(self) -> set[int]:
        """
        Returns the innermost loops: reductions, the jammed loop and the vectorized one. Without
        any, the last loop, if it reads a table of an outer one.
        """
        reductions = {i for i, k in enumerate(self.kinds) if k != "parallel"}
        chosen = (self.axis, self.jam, self.beside, self.inner)
        moving = reductions | {x for x in chosen if x is not None}
        last = {len(self.kinds) - 1}
        if not moving and len(self.kinds) > 1 and invariants(self.op, last)[0]:
            return last
        return moving

    def _candidates(self) -> list[int]:
        parallel = [i for i, k in enumerate(self.kinds) if k == "parallel"]
        reduction = [i for i, k in enumerate(self.kinds) if k != "parallel"]
        return parallel[::-1] + reduction[::-1]

    def combiners(self) -> list[Operation] | None:
        """Returns the combiner of each output, or None if one has none."""
        return combiners(self.op)

    # --- building the loops ------------------------------------------------------------

    def build(self) -> None:
        """Replaces the op with its loops."""
        here = IndexBuilder(InsertPoint.before(self.op))
        self.sizes = self.trip_counts(here)
        parallel, reduction = self._loop_order()
        self.reduction = reduction
        if reduction:
            self._choose_reduction(parallel, here)
        elif self.axis is None and self.inner is None:
            self._choose_rows(parallel)
        self._parallel(parallel, {}, here)
        # Erase last: a body may turn out to have no vector form.
        self._erase_fused()

    def _choose_reduction(self, parallel: Sequence[int], here: IndexBuilder) -> None:
        """Chooses how a reduction runs, and what is fused with it."""
        columns = self.axis in parallel
        if columns:
            self._choose_jam(parallel[:-1])
            choose_sliding(self, parallel[:-1])
            self.in_panels = self.jam is None and takes_panels(self)
            self.in_turns = not self.in_panels and takes_turns(self)
        if not self.in_panels:
            self._take_fill()
        if self.axis is not None:
            self._take_producer()
        if columns and not self.in_panels:
            self._take_consumer()
        if self.axis in self.reduction and self.producer is None:
            self._choose_streams(parallel, here)

    def _loop_order(self) -> tuple[list[int], list[int]]:
        """Returns the outer and the inner loops of the nest; the vectorized one is last of its."""
        kinds = list(enumerate(self.kinds))
        parallel = [i for i, k in kinds if k == "parallel"]
        reduction = [i for i, k in kinds if k != "parallel"]
        if writes_along_reduction(self.op):
            parallel, reduction = [*parallel, *reduction], []
        for loops in (parallel, reduction):
            loops.sort(key=lambda loop: loop == self.axis)
        if not reduction:
            self.inner = sharing_loop(self.op, parallel)
            if self.inner is None:
                self.inner = self._channels(parallel)
            parallel.sort(key=lambda loop: loop == self.inner)
        return parallel, reduction

    def _channels(self, parallel: Sequence[int]) -> int | None:
        """
        Returns the loop over the elements of short rows that vectors along the loop over rows take
        apart. All its iterations read the same lines.

        out[c, i] = x[i, c]: all c read the rows i.
        """
        if self.axis is None:
            return None
        for state, indexing in zip(self.strides(self.axis), self.maps, strict=True):
            last = indexing.results[-1] if indexing.results else None
            if state == "short" and isinstance(last, AffineDimExpr) and last.position in parallel:
                return last.position if last.position != self.axis else None
        return None

    def _choose_rows(self, parallel: Sequence[int]) -> None:
        """
        Chooses a loop of a scalar nest for unroll and jam whose iterations share a part of the body
        that depends on the innermost loop, and is thus computed again for each of them.

        out[i, j] = x[i, index[j]]: all rows i share the index and its check.
        """
        written = {root(o) for o in self.op.outputs}
        read = (loaded(o) for o in self.block.ops)
        if any(buffer is not None and root(buffer) in written for buffer in read):
            return
        several = [loop for loop in parallel[:-1] if self.sizes[loop] != 1]
        shared = {loop: self._shared(loop, parallel[-1]) for loop in several}
        rows = {loop: self._whole_rows(loop) for loop in several}
        best = max(several, key=lambda loop: (shared[loop], rows[loop]), default=None)
        if best is None or shared[best] < CPU.jammed_shared_ops:
            return
        self.jam, self.points = best, rows[best]

    def _whole_rows(self, loop: int) -> int:
        """The largest number of rows, of which there is a whole multiple, that run in one loop."""
        size, most = self.sizes[loop], CPU.jammed_rows
        return next(
            (n for n in range(most, 1, -1) if isinstance(size, int) and size % n == 0), most
        )

    def _shared(self, loop: int, last: int) -> int:
        """Returns how many inputs and ops are the same along `loop`, but not along `last`."""
        along, both = invariants(self.op, {loop}), invariants(self.op, {loop, last})
        reads, hoisted = ([i for i in x[0] if self.reads(i)] for x in (along, both))
        return len(reads) - len(hoisted) + len(along[1]) - len(both[1])

    def _erase_fused(self) -> None:
        """Erases the op and those fused with it, with the buffers between them."""
        inputs, output = list(self.op.inputs), self.op.outputs[0]
        for check in self.checked:
            check.erase()
        Rewriter.erase_op(self.op)
        if self.fill is not None:
            Rewriter.erase_op(self.fill)
        if self.consumer is not None:
            erase_with_buffer(self.consumer, output)
        if self.producer is not None:
            erase_with_buffer(self.producer, inputs[self.producer.source])

    def _take_fill(self) -> None:
        """Fuses the fill before the op."""
        fill = fill_of(self.op) if len(self.op.outputs) == 1 else None
        if fill is not None:
            self.fill, self.start = fill[0], fill[1].clone()
            Rewriter.insert_op(self.start, InsertPoint.before(self.op))

    def _take_producer(self) -> None:
        """Fuses the elementwise producer."""
        fill = fill_of(self.op) if len(self.op.outputs) == 1 else None
        producer = find_producer(self.op, fill and fill[0])
        if producer is not None and (before := self._beside(producer)) is not None:
            self.producer, self.before = producer, before

    def _take_consumer(self) -> None:
        """Fuses the elementwise consumer."""
        consumer = find_consumer(self.op) if len(self.op.outputs) == 1 else None
        if consumer is not None and (after := self._beside(consumer)) is not None:
            self.consumer, self.after = consumer, after

    def _beside(self, neighbour: Neighbour) -> Nest | None:
        """Returns the nest of a producer or consumer along the same loop, or None."""
        if not has_vector_form(neighbour.op, self.lanes):
            return None
        nest = Nest(neighbour.op, self.vector_bytes, self.lanes, reassociate=self.reassociate)
        theirs = {ours: loop for loop, ours in neighbour.rename.items()}
        assert self.axis is not None
        nest.axis = theirs.get(self.axis)
        if nest.axis is None:
            return None
        strides = nest.strides(nest.axis)
        if "other" in strides or "short" in strides:
            return None
        return nest if all(s == "unit" for s in strides[nest.inputs :]) else None

    def _choose_jam(self, parallel: Sequence[int]) -> None:
        """
        Chooses the innermost loop whose iterations share an input for unroll and jam.

        out[c, w] += in[c, w + k] * filter[c, k]: all w share the filter, and adjacent ones most of
        the image.
        """
        loop = next((x for x in reversed(parallel) if self.sizes[x] != 1), None)
        if loop is None or not self._shares_input(loop):
            return
        # Windows are unrolled: the epilogues of many dynamic rows would be long.
        size, points = self.sizes[loop], CPU.jammed_results // (2 if self._slides(loop) else 1)
        if isinstance(size, int):
            divisors = (n for n in range(CPU.jammed_results, 1, -1) if size % n == 0)
            points = next(divisors, min(points, size))
        self.jam, self.points = loop, points

    def _shares_input(self, loop: int) -> bool:
        """Whether iterations of a loop read the same elements of an input, at least in part."""
        read = [m for i, m in enumerate(self.maps[: self.inputs]) if self.reads(i)]
        return any(loop not in m.used_dims() for m in read) or self._slides(loop)

    def _slides(self, loop: int) -> bool:
        """Whether windows along a loop are read."""
        read = [e for i in range(self.inputs) if self.reads(i) for e in self.maps[i].results]
        return any(loop in e.used_dims() and len(e.used_dims()) > 1 for e in read)

    def _choose_streams(self, parallel: Sequence[int], here: IndexBuilder) -> None:
        """
        Splits the innermost loop into jammed parts if a large input is streamed once.

        out[n] += x[k] * W[n, k]: row n of W together with row n + N/4, ...
        """
        loop = next((x for x in reversed(parallel) if self.sizes[x] != 1), None)
        assert self.axis is not None
        if loop is None or len(self.op.outputs) != 1:
            return
        most = [upper_bound(size) for size in self.sizes]
        if (most[loop] or 0) < CPU.streams * CPU.streams:
            return
        for position in range(self.inputs):
            loops = self.maps[position].used_dims()
            if not {loop, self.axis} <= loops or not self.reads(position):
                continue
            elements = prod(most[x] or 1 for x in loops)
            if elements * lane_bytes(self.block.args[position].type) >= CPU.streamed_bytes:
                self.jam, self.points = loop, CPU.streams
                self.apart = here.floordiv(self.sizes[loop], CPU.streams)
                return

    def reads(self, position: int) -> bool:
        """Whether the body uses an input; inputs that only give a window its shape are unused."""
        return bool(self.block.args[position].uses)

    def _parallel(self, loops: Sequence[int], ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Emits the remaining loops, each after the values that are invariant in it."""
        with self.scope():
            if loops and loops[0] != self.axis and self._moving():
                jammed = {x for x in (self.jam, self.beside) if x is not None}
                self._compute({*loops, *self.reduction, *jammed}, ivs, at)
            self._loops(loops, ivs, at)

    @contextmanager
    def scope(self) -> Generator[None]:
        """Forgets at its end what is computed within: values of a loop do not exist after it."""
        known = self.computed
        self.computed = dict(known)
        yield
        self.computed = known

    def _loops(self, loops: Sequence[int], ivs: dict[int, Size], at: IndexBuilder) -> None:
        if not loops:
            self._hoist(ivs, at)
            self._point(ivs, at, lanes=1)
            return
        loop, rest = loops[0], loops[1:]
        size = self.sizes[loop]
        if isinstance(size, int) and size == 1 and loop != self.axis:
            self._parallel(rest, {**ivs, loop: 0}, at)
            return
        if loop == self.jam and self.points > 1:
            self._jammed(loop, rest, ivs, at)
            return
        if loop != self.axis:
            if not rest and self.axis is None and not self.reduction:
                self.rows = self._rows(loop, ivs, at)
            body, iv, inner = for_loop(at, 0, size, self.widths if loop == self.beside else 1)
            self._parallel(rest, {**ivs, loop: iv}, inner)
            body()
            self.rows = []
            return
        if self.in_panels:
            reduce_panels(self, ivs, at)
            return
        self.columns(ivs, at)

    def _rows(
        self, loop: int, ivs: dict[int, Size], at: IndexBuilder
    ) -> list[dict[SSAValue, Lane]]:
        """Emits what is the same along the innermost loop, for each jammed row."""
        found: list[dict[SSAValue, Lane]] = []
        for number in range(self.points if self.jam is not None else 0):
            with self.scope():
                self._compute({loop}, self.shifted(ivs, number, at), at)
                found.append(self.computed)
        return found

    def columns(self, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Emits the vectorized loop with its epilogue."""
        assert self.axis is not None
        loop, size = self.axis, self.sizes[self.axis]
        self._hoist(ivs, at)
        main = at.mul(at.floordiv(size, self.lanes), self.lanes)
        if not (isinstance(main, int) and main == 0):
            body, iv, inner = for_loop(at, 0, main, self.lanes)
            self._points({**ivs, loop: iv}, inner, lanes=self.lanes)
            body()
        if isinstance(main, int) and isinstance(size, int):
            self._rest(loop, main, size, ivs, at)
            return
        if not self._repeats():
            self._halves(loop, main, size, ivs, at)
            return
        close, several, few = if_both(at, at.at_least(size, self.lanes))
        self._last(loop, main, size, ivs, several, lanes=self.lanes)
        self._few(loop, size, ivs, few)
        close()

    def _last(
        self, loop: int, start: Size, size: Size, ivs: dict[int, Size], at: IndexBuilder, *,
        lanes: int,
    ) -> None:  # fmt: skip
        """Emits a vector that ends at the last element, if `start` is not the end."""
        body, _, inner = for_loop(at, start, size, lanes)
        self._points({**ivs, loop: inner.sub(size, lanes)}, inner, lanes=lanes)
        body()

    def _few(self, loop: int, size: Size, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """
        Emits a loop that is shorter than a vector: two vectors of half as many lanes, which may
        overlap, or of fewer; else single iterations.
        """
        lanes = self.lanes // 2
        closers: list[Callable[[], None]] = []
        while lanes >= CPU.least_lanes:
            close, several, at = if_both(at, at.at_least(size, lanes))
            closers.append(close)
            main = several.whole(size, lanes)
            body, iv, inner = for_loop(several, 0, main, lanes)
            self._points({**ivs, loop: iv}, inner, lanes=lanes)
            body()
            self._last(loop, main, size, ivs, several, lanes=lanes)
            lanes //= 2
        self._ones(loop, 0, size, ivs, at)
        for close in reversed(closers):
            close()

    def _halves(
        self, loop: int, start: Size, stop: Size, ivs: dict[int, Size], at: IndexBuilder
    ) -> None:
        """
        Emits a dynamic epilogue: vectors of half as many lanes each time, then single iterations.
        Only a reduction has vectors, since its iterations are long.
        """
        lanes = self.lanes // 2
        while lanes >= CPU.least_lanes and not is_parallel(self.op):
            end = at.mul(at.floordiv(stop, lanes), lanes)
            body, iv, inner = for_loop(at, start, end, lanes)
            self._points({**ivs, loop: iv}, inner, lanes=lanes)
            body()
            start, lanes = end, lanes // 2
        self._ones(loop, start, stop, ivs, at)

    def _ones(
        self, loop: int, start: Size, stop: Size, ivs: dict[int, Size], at: IndexBuilder
    ) -> None:
        """Emits iterations one by one."""
        body, iv, inner = for_loop(at, start, stop, 1)
        self._points({**ivs, loop: iv}, inner, lanes=1)
        body()

    def _jammed(
        self, loop: int, rest: Sequence[int], ivs: dict[int, Size], at: IndexBuilder
    ) -> None:
        """Emits the jammed loop and its epilogue."""
        size, points = self.sizes[loop], self.points
        main, adjacent = at.whole(size, points), isinstance(self.apart, int) and self.apart == 1
        if not (isinstance(main, int) and main == 0):
            begins = main if adjacent else self.apart
            body, iv, inner = for_loop(at, 0, begins, points if adjacent else 1)
            self._parallel(rest, {**ivs, loop: iv}, inner)
            body()
        if remainder(size, points) == 0:
            return
        start = main
        for rows in [1] if isinstance(size, int) or not adjacent else rest_rows(points):
            self.points = rows
            stop = size if rows == 1 else at.add(start, at.whole(at.sub(size, start), rows))
            body, iv, inner = for_loop(at, start, stop, rows)
            self._parallel(rest, {**ivs, loop: iv}, inner)
            body()
            start = stop
        self.points = points

    def _rest(
        self, loop: int, start: int, size: int, ivs: dict[int, Size], at: IndexBuilder
    ) -> None:
        """
        Emits the static epilogue: a vector that ends at the last element and computes some elements
        again, or vectors of half as many lanes each time.
        """
        lanes = self.lanes // 2
        if (size - start).bit_count() > 1 and self._repeats():
            if start > 0:
                self._points({**ivs, loop: size - self.lanes}, at, lanes=self.lanes)
                return
            while lanes > size:
                lanes //= 2
            self._points({**ivs, loop: 0}, at, lanes=lanes)
            self._points({**ivs, loop: size - lanes}, at, lanes=lanes)
            return
        while start < size:
            if start + lanes <= size:
                self._points({**ivs, loop: start}, at, lanes=lanes)
                start += lanes
            else:
                lanes //= 2

    def _repeats(self) -> bool:
        """Whether a vector may compute elements again."""
        return self._restarts() if self.reduction else self.may_repeat()

    def may_repeat(self) -> bool:
        """Whether elements may be computed and stored again: nothing that is written is read."""
        written = {root(o) for o in self.op.outputs}
        inits = self.block.args[self.inputs :]
        read = [*self.op.inputs, *(b for o in self.block.ops if (b := loaded(o)) is not None)]
        return not any(a.uses for a in inits) and not written & set(map(root, read))

    def _restarts(self) -> bool:
        """
        Whether a reduction and what is fused with it may be computed again: it starts from a
        constant, and nothing reads from memory what is written. Strided loads are left alone: each
        is several accesses to prove.
        """
        if self.start is None or self.axis is None or "short" in self.strides(self.axis):
            return False
        nests = [(self, {self.inputs, self.producer.source if self.producer else self.inputs})]
        if self.before is not None:
            nests.append((self.before, set()))
        if self.after is not None and self.consumer is not None:
            nests.append((self.after, {self.consumer.source}))
        written = {root(output) for nest, _ in nests for output in nest.op.outputs}
        return not any(written & nest.buffers_read(passed) for nest, passed in nests)

    def buffers_read(self, passed: Collection[int]) -> set[SSAValue]:
        """Returns what the body reads from memory; operands `passed` are in registers."""
        found = [b for o in self.block.ops if (b := loaded(o)) is not None]
        for number, (operand, argument) in enumerate(zip(self.op.operands, self.block.args)):
            if argument.uses and number not in passed:
                found.append(operand)
        return set(map(root, found))

    def _hoist(self, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Hoists invariants out of the innermost loops."""
        moving = self._moving()
        if not moving:
            return
        self._compute(moving, ivs, at)
        if moving == {self.jam} or (moving == {self.inner} and self._runs(self.inner)):
            self._check_once(at)
        if self.producer is not None and self.before is not None:
            rename = self.producer.rename
            theirs = {loop: ivs[ours] for loop, ours in rename.items() if ours in ivs}
            self.before.computed = {}
            self.before._compute({x for x, ours in rename.items() if ours in moving}, theirs, at)

    def _runs(self, loop: int | None) -> bool:
        """Whether a loop is known to have an iteration."""
        return loop is not None and isinstance(size := self.sizes[loop], int) and size > 0

    def _check_once(self, at: IndexBuilder) -> None:
        """Emits asserts that are the same for all jammed rows, and takes them out of the body."""
        values = {k: v.value for k, v in self.computed.items()}
        for op in [o for o in self.block.ops if isinstance(o, cf.AssertOp) and o.arg in values]:
            op.detach()
            self.checked.append(op)
        for op in self.checked:
            at.insert(op.clone(value_mapper=values))

    def _compute(
        self, moving: set[int], ivs: dict[int, Size], at: IndexBuilder, lanes: int = 1
    ) -> None:
        """Emits the values that are invariant in the loops `moving`."""
        inputs, ops = invariants(self.op, moving)
        for position in inputs:
            argument = self.block.args[position]
            if argument.uses and argument not in self.computed:
                self.computed[argument] = self._read(position, ivs, at, lanes)
        unknown = [op for op in ops if op.results[0] not in self.computed]
        hoist(unknown, self.computed, lanes, at.insert, partial(self._index, ivs, at, lanes))

    def _index(self, ivs: dict[int, Size], at: IndexBuilder, lanes: int, loop: int) -> Lane:
        """Returns the index of a loop."""
        kind = Kind.IOTA if loop == self.axis and lanes > 1 else Kind.UNIFORM
        return Lane(at.value(ivs.get(loop, 0)), kind)

    def _read(self, position: int, ivs: dict[int, Size], at: IndexBuilder, lanes: int) -> Lane:
        return self.read(position, ivs, at, lanes, self.axis)

    def apply(
        self, accs: Sequence[Lane], ivs: dict[int, Size], at: IndexBuilder, lanes: int
    ) -> list[Lane]:
        """Emits the body for one iteration, or for `lanes` of them."""
        arguments = [
            Lane(self.op.operands[i], Kind.UNIFORM)
            if not self.block.args[i].uses or self.block.args[i] in self.computed
            else self._produced(ivs, at, lanes)
            if self.producer is not None and i == self.producer.source
            else self._read(i, ivs, at, lanes)
            for i in range(self.inputs)
        ]
        index_of = partial(self._index, ivs, at, lanes)
        return evaluate(self.block, [*arguments, *accs], lanes, at.insert, index_of, self.computed)

    def _points(self, ivs: dict[int, Size], at: IndexBuilder, lanes: int) -> None:
        """
        Emits a vector of iterations, for each iteration of the loop inside of the vectorized one if
        there is one, after what all of these share.
        """
        if self.inner is None:
            self._point(ivs, at, lanes)
            return
        with self.scope():
            self._compute({self.inner}, ivs, at, lanes)
            body, iv, inside = for_loop(at, 0, self.sizes[self.inner], 1)
            self._point({**ivs, self.inner: iv}, inside, lanes)
            body()

    def _point(self, ivs: dict[int, Size], at: IndexBuilder, lanes: int) -> None:
        outputs = len(self.op.outputs)
        places = [self.shifted(ivs, n, at) for n in range(self.points * self.widths)]
        if not self.reduction:
            # All are computed before any is stored: C compilers move no load across a store.
            values = []
            for number, place in enumerate(places):
                with self.scope():
                    self.computed |= self.rows[number] if self.rows else {}
                    values.append(self._mapped(place, at, lanes))
            for place, results in zip(places, values, strict=True):
                for i, value in enumerate(results):
                    self.write(i, value, place, at)
            return
        if self.axis in self.reduction:
            accs = [lane.value for place in places for lane in self._start(place, at, 1)]
            results = reduce_lanes(self, accs, places, at)
            for number, value in enumerate(results):
                self.write(number % outputs, value, places[number // outputs], at)
            return
        start = self._accumulators(places, at, lanes)
        results = self._reduced(start, ivs, at, lanes)
        for number, place in enumerate(places):
            mine = results[number * outputs : (number + 1) * outputs]
            self._finish(mine, place, at, lanes)

    def _mapped(self, ivs: dict[int, Size], at: IndexBuilder, lanes: int) -> list[SSAValue]:
        """Emits the body of a nest without reductions; returns what is to be stored."""
        accs = [
            self._read(self.inputs + i, ivs, at, lanes)
            if self.block.args[self.inputs + i].uses
            else Lane(output, Kind.UNIFORM)
            for i, output in enumerate(self.op.outputs)
        ]
        results = self.apply(accs, ivs, at, lanes)
        return [materialize(r, lanes, at.insert) if lanes > 1 else r.value for r in results]

    def shifted(self, ivs: dict[int, Size], number: int, at: IndexBuilder) -> dict[int, Size]:
        """Returns the induction variables of a jammed iteration; those of `jam` are adjacent."""
        if self.jam is None or number == 0:
            return ivs
        across, number = divmod(number, self.points)
        moved = {**ivs, self.jam: at.add(ivs[self.jam], at.mul(self.apart, number))}
        if self.beside is not None and across:
            moved[self.beside] = at.add(ivs[self.beside], across)
        return moved

    def _start(self, ivs: dict[int, Size], at: IndexBuilder, lanes: int) -> list[Lane]:
        """Returns the initial values of the accumulators."""
        if self.start is not None:
            return [Lane(self.start.result, Kind.UNIFORM)]
        return [self._read(self.inputs + i, ivs, at, lanes) for i in range(len(self.op.outputs))]

    def _accumulators(
        self, places: Sequence[dict[int, Size]], at: IndexBuilder, lanes: int
    ) -> list[SSAValue]:
        """Returns the accumulators of some results, as vectors if there are several lanes."""
        found = [lane for place in places for lane in self._start(place, at, lanes)]
        return [materialize(x, lanes, at.insert) if lanes > 1 else x.value for x in found]

    def _finish(
        self, values: Sequence[SSAValue], ivs: dict[int, Size], at: IndexBuilder, lanes: int
    ) -> None:
        """Stores the results, and those of the fused consumer."""
        if self.consumer is None or self.after is None or self.consumer.keeps_source:
            for i, value in enumerate(values):
                self.write(i, value, ivs, at)
        if self.consumer is None or self.after is None:
            return
        after = self.after
        theirs = {loop: ivs.get(ours, 0) for loop, ours in self.consumer.rename.items()}
        kind = Kind.VECTOR if lanes > 1 else Kind.UNIFORM
        arguments = [
            Lane(values[0], kind)
            if i == self.consumer.source
            else after._read(i, theirs, at, lanes)
            if after.block.args[i].uses
            else Lane(operand, Kind.UNIFORM)
            for i, operand in enumerate(after.op.operands)
        ]

        for i, value in enumerate(self.consumer.values(arguments, lanes, at)):
            after.write(i, value, theirs, at)

    def _produced(self, ivs: dict[int, Size], at: IndexBuilder, lanes: int) -> Lane:
        """Returns the value of the fused producer; also stores it if it has other readers."""
        assert self.producer is not None
        assert self.before is not None
        before = self.before
        theirs = {loop: ivs.get(ours, 0) for loop, ours in self.producer.rename.items()}
        arguments = [
            before._read(i, theirs, at, lanes)
            if before.block.args[i].uses and before.block.args[i] not in before.computed
            else Lane(operand, Kind.UNIFORM)
            for i, operand in enumerate(before.op.operands)
        ]
        (value,) = self.producer.values(arguments, lanes, at, before.computed)
        if self.producer.keeps_source:
            before.write(0, value, theirs, at)
        return Lane(value, Kind.VECTOR if lanes > 1 else Kind.UNIFORM)

    def _reduced(
        self, accs: Sequence[SSAValue], ivs: dict[int, Size], at: IndexBuilder, lanes: int
    ) -> Sequence[SSAValue]:
        """Emits the reduction loops, or adds the rows of a panel to the accumulators."""
        if not self.in_panels:
            return self._reduce(self.reduction, accs, ivs, at, lanes)
        for row, computed in self.panel:
            with self.scope():
                self.computed = computed
                accs = self.add_row(accs, {**ivs, self.reduction[-1]: row}, at, lanes)
        return accs

    def hoist_rows(self, rows: int, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Emits what is the same for all columns of a row, such as its place in a table."""
        assert self.axis is not None
        loop, self.panel = self.reduction[-1], []
        for number in range(rows):
            row = at.add(ivs[loop], number)
            with self.scope():
                self._compute({self.axis}, {**ivs, loop: row}, at)
                self.panel.append((row, self.computed))

    def _reduce(
        self,
        loops: Sequence[int],
        accs: Sequence[SSAValue],
        ivs: dict[int, Size],
        at: IndexBuilder,
        lanes: int,
    ) -> Sequence[SSAValue]:
        if loops[0] == self.sliding:
            return slide(self, accs, ivs, at, lanes)
        if len(loops) == 1 and self.in_turns:
            return reduce_in_turns(self, accs, ivs, at, lanes)
        if len(loops) == 1:
            return self.reduce_rows(accs, (0, self.sizes[loops[0]]), ivs, at, lanes)
        body, iv, inner = for_loop(at, 0, self.sizes[loops[0]], 1, accs)
        carried = body.arguments
        return body(self._reduce(loops[1:], carried, {**ivs, loops[0]: iv}, inner, lanes))

    def reduce_rows(
        self,
        accs: Sequence[SSAValue],
        rows: tuple[Size, Size],
        ivs: dict[int, Size],
        at: IndexBuilder,
        lanes: int,
    ) -> list[SSAValue]:
        """Emits a part of the innermost reduction loop, with the accumulators in registers."""
        start, stop = rows
        if start == stop:
            return list(accs)
        body, iv, inner = for_loop(at, start, stop, 1, accs)
        place = {**ivs, self.reduction[-1]: iv}
        return body(self.add_row(body.arguments, place, inner, lanes))

    def add_row(
        self, accs: Sequence[SSAValue], ivs: dict[int, Size], at: IndexBuilder, lanes: int
    ) -> list[SSAValue]:
        """Emits the body for one iteration of the reduction loops; returns the accumulators."""
        width = len(self.op.outputs)
        found: list[SSAValue] = []
        for number in range(len(accs) // width):
            mine = accs[number * width : (number + 1) * width]
            found += self.add_point(mine, self.shifted(ivs, number, at), at, lanes)
        return found

    def add_point(
        self, accs: Sequence[SSAValue], ivs: dict[int, Size], at: IndexBuilder, lanes: int
    ) -> list[SSAValue]:
        """Emits the body for one iteration and one jammed row; returns its accumulators."""
        kind = Kind.VECTOR if lanes > 1 else Kind.UNIFORM
        results = self.apply([Lane(a, kind) for a in accs], ivs, at, lanes)
        return [materialize(r, lanes, at.insert) if lanes > 1 else r.value for r in results]
