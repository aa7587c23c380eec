"""
One contraction as packed, register-blocked loops. Part of `irees-lower-contractions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StridedLayoutAttr,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineMap,
)
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.contractions import MultiplyAdd, roles
from irees.transforms.utils.lanes import has_lanes, lane_bytes, vector_of
from irees.transforms.utils.loops import for_loop, if_both, if_else
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.structured import linear_form, loop_sources, maps

KC = 256
"""Rows of a panel: 256 x 48 floats are 48 KiB, which stays in the L2 cache."""


@dataclass
class Operand:
    """A buffer as a flat array: the step of each loop, in elements."""

    flat: SSAValue
    steps: list[Size]

    def at(self, ivs: dict[int, Size], builder: IndexBuilder) -> Size:
        """The address of a point; loops without a value count as 0."""
        total: Size = 0
        for loop, value in ivs.items():
            total = builder.add(total, builder.mul(value, self.steps[loop]))
        return total


class Unsuitable(Exception):
    """Why a contraction is left to the vectorizer; a reason for a remark."""


def strides(buffer: SSAValue, builder: IndexBuilder) -> list[Size]:
    """The strides of a buffer in elements."""
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    if isinstance(kind.layout, StridedLayoutAttr):
        known = [getattr(s, "data", None) for s in kind.layout.strides]
    else:
        known = []
        step: int | None = 1
        for size in reversed(kind.get_shape()):
            known.append(step)
            step = None if step is None or size < 0 else step * size
        known.reverse()
    if all(isinstance(s, int) for s in known):
        return list(known)
    metadata = builder.insert(memref.ExtractStridedMetaDataOp(buffer))
    rank = len(known)
    return [
        s if isinstance(s, int) else metadata.results[2 + rank + i] for i, s in enumerate(known)
    ]


def flatten(buffer: SSAValue, builder: IndexBuilder) -> SSAValue:
    """The buffer as memref<?xT>, from its first element on."""
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    metadata = builder.insert(memref.ExtractStridedMetaDataOp(buffer))
    flat = MemRefType(
        kind.element_type, [DYNAMIC_INDEX], StridedLayoutAttr([1], None), kind.memory_space
    )
    size = builder.value((1 << 62) - 1)
    return builder.insert(
        memref.ReinterpretCastOp.from_dynamic(
            metadata.results[0], [metadata.results[1]], [size], [1], flat
        )
    ).results[0]


@dataclass
class Blocking:
    """Register block of a micro-kernel: MR rows by `vectors` vectors."""

    rows: int
    vectors: int


def packed_columns(indexing: AffineMap) -> int | None:
    """NR of an operand that `irees-pack-constant-operands` laid out in panels, or None."""
    for expr in indexing.results:
        if isinstance(expr, AffineBinaryOpExpr) and expr.kind is AffineBinaryOpKind.Mod:
            return expr.rhs.value if isinstance(expr.rhs, AffineConstantExpr) else None
    return None


def choose_blocking(
    m: Size, n: Size, lanes: int, registers: int, vectors_given: int | None = None
) -> Blocking:
    """
    The register block with the least estimated time for this M and N.

    Per k, a block costs its multiply-adds, or its loads when those are more (two of either
    a cycle); blocks at the edges cost as much as full ones of the narrower width.
    """
    rows = m if isinstance(m, int) else 1 << 10
    columns = n if isinstance(n, int) else 1 << 10
    best, best_cost = Blocking(1, 1), float("inf")
    for vectors in (4, 3, 2, 1) if vectors_given is None else (vectors_given,):
        for block in range(1, 15):
            if block * vectors + vectors + 1 > registers or block > rows:
                continue
            if vectors_given is None and vectors > 1 and columns <= (vectors - 1) * lanes:
                continue

            def cost(r: int, v: int) -> float:
                latency = 4.0 if r * v < 8 else 0.0
                return max(r * v, r + v, latency * 2) + 0.3

            full, rest = divmod(columns, vectors * lanes)
            width = full * vectors, -(-rest // lanes)
            total = 0.0
            for r, count in ((block, rows // block), (rows % block, 1)):
                if r and count:
                    total += count * (width[0] / vectors * cost(r, vectors))
                    total += count * (cost(r, width[1]) if width[1] else 0)
            if total < best_cost:
                best, best_cost = Blocking(block, vectors), total
    return best


class Lowering:
    """One contraction being lowered."""

    def __init__(self, op: linalg.GenericOp, parts: MultiplyAdd, vector_bytes: int, registers: int):
        self.op = op
        self.parts = parts
        output = op.outputs[0].type
        assert isinstance(output, MemRefType)
        self.element: Attribute = output.element_type
        if not has_lanes(self.element) or lane_bytes(self.element) < 4:
            raise Unsuitable(f"no vectors of {self.element}")
        self.lanes = vector_bytes // lane_bytes(self.element)
        self.registers = registers
        self.maps = maps(op)
        self._roles()

    def _roles(self) -> None:
        found = roles(self.op, self.parts)
        last = self.maps[-1].results[-1].used_dims() if self.maps[-1].results else set()
        if last & set(found.n):
            self.n, self.m = list(found.n), list(found.m)
            self.a, self.b = self.parts.lhs, self.parts.rhs
            self.widen = self.parts.widen_lhs, self.parts.widen_rhs
        elif last & set(found.m):
            self.n, self.m = list(found.m), list(found.n)
            self.a, self.b = self.parts.rhs, self.parts.lhs
            self.widen = self.parts.widen_rhs, self.parts.widen_lhs
        else:
            raise Unsuitable("the output is not contiguous along M or N")
        self.batch, self.k = list(found.batch), list(found.k)
        if not self.k:
            raise Unsuitable("no reduction")
        for position in (self.a, self.b, len(self.op.operands) - 1):
            operand = self.op.operands[position]
            if not isinstance(operand.type, MemRefType):
                raise Unsuitable("an operand is a scalar")
            if position == self.b and packed_columns(self.maps[position]) is not None:
                continue
            if any(linear_form(e) is None for e in self.maps[position].results):
                raise Unsuitable("an operand is not indexed linearly")

    def build(self) -> None:
        """Replaces the op by its loops. Raises Unsuitable before anything is changed."""
        at = IndexBuilder(InsertPoint.before(self.op))
        self.sizes = self._sizes(at)
        self.operand_a = self._operand(self.a, at)
        self.packed = packed_columns(self.maps[self.b])
        self.operand_b = self._operand(self.b, at)
        self.operand_c = self._operand(len(self.op.operands) - 1, at)
        self._order(self.operand_c, self.n)
        self._order(self.operand_a, self.k)
        flat_n = self._flat_suffix(self.n, [self.operand_c], innermost=1)
        if not flat_n:
            raise Unsuitable("the output is not contiguous")
        flat_k = self._flat_suffix(self.k, [self.operand_a], innermost=None)
        outer_n = [x for x in self.n if x not in flat_n]
        outer_k = [x for x in self.k if x not in flat_k]
        flat_m = self.m[-1:]
        outer_m = self.m[:-1]
        self.flat_n, self.flat_k, self.flat_m = flat_n, flat_k, flat_m
        self.size_n = at.product([self.sizes[x] for x in flat_n])
        self.size_k = at.product([self.sizes[x] for x in flat_k])
        self.size_m: Size = self.sizes[flat_m[0]] if flat_m else 1
        if isinstance(self.size_n, int) and self.size_n < self.lanes // 2:
            raise Unsuitable("too few columns for a vector")
        few_rows = isinstance(self.size_m, int) and self.size_m <= 4 and not outer_m
        contiguous = self.packed is not None or (
            len(flat_n) == 1 and self.operand_b.steps[flat_n[0]] == 1 and not self.widen[1]
        )
        if few_rows and not contiguous:
            raise Unsuitable("too few rows to pack for")
        self.direct = few_rows or self.packed is not None
        if self.packed is not None and (len(flat_n) != 1 or self.packed % self.lanes):
            raise Unsuitable("packed for another vector width")
        vectors = None if self.packed is None else self.packed // self.lanes
        self.block = choose_blocking(self.size_m, self.size_n, self.lanes, self.registers, vectors)
        zero_kind = vector_of(self.element, self.lanes)
        self.zero = at.insert(
            vector.BroadcastOp(at.insert(zero(self.element)).results[0], zero_kind)
        ).results[0]
        self.panel = at.insert(
            memref.AllocOp([], [], MemRefType(self.element, [KC * self.block.vectors * self.lanes]))
        ).results[0]
        self.lane_offsets = at.insert(
            memref.AllocaOp.get(IndexType(), shape=[self.lanes * self.block.vectors])
        ).results[0]

        def inside(ivs: dict[int, Size], b: IndexBuilder) -> None:
            self._columns(ivs, outer_m, b)

        self._loops([*self.batch, *outer_n, *outer_k], {}, at, inside)
        Rewriter.erase_op(self.op)

    # --- addresses ----------------------------------------------------------------------

    def _sizes(self, at: IndexBuilder) -> list[Size]:
        sizes: list[Size] = []
        for source in loop_sources(self.op):
            if source is None:
                raise Unsuitable("a loop has no bound")
            operand = self.op.operands[source[0]]
            assert isinstance(operand.type, MemRefType)
            size = operand.type.get_shape()[source[1]]
            sizes.append(
                size
                if size >= 0
                else at.insert(memref.DimOp(operand, at.value(source[1]))).results[0]
            )
        return sizes

    def _operand(self, position: int, at: IndexBuilder) -> Operand:
        buffer = self.op.operands[position]
        steps: list[Size] = [0] * len(self.sizes)
        by_dim = strides(buffer, at)
        for expr, stride in zip(self.maps[position].results, by_dim, strict=True):
            form = linear_form(expr)
            if form is None:
                # A packed operand: `n floordiv NR` selects the panel, `n mod NR` the column in it.
                if (
                    isinstance(expr, AffineBinaryOpExpr)
                    and expr.kind is AffineBinaryOpKind.FloorDiv
                ):
                    self.panel_step = stride
                continue
            if form[1]:
                raise Unsuitable("an operand starts at an offset")
            for loop, factor in form[0].items():
                steps[loop] = at.add(steps[loop], at.mul(stride, factor))
        return Operand(flatten(buffer, at), steps)

    def _order(self, operand: Operand, loops: list[int]) -> None:
        """Sorts loops by falling step, so that a contiguous suffix can be found."""
        steps = operand.steps
        if all(isinstance(steps[x], int) for x in loops):
            loops.sort(key=lambda x: -steps[x])

    def _flat_suffix(
        self, loops: list[int], operands: Sequence[Operand], innermost: int | None
    ) -> list[int]:
        """The longest suffix of loops that runs through each operand as one loop would."""
        if not loops:
            return []
        if innermost is not None and any(o.steps[loops[-1]] != innermost for o in operands):
            return []
        suffix = [loops[-1]]
        for loop in reversed(loops[:-1]):
            inner = suffix[0]
            size = self.sizes[inner]
            for operand in operands:
                step, outer = operand.steps[inner], operand.steps[loop]
                if not (isinstance(size, int) and isinstance(step, int) and isinstance(outer, int)):
                    return suffix
                if outer != step * size:
                    return suffix
            suffix.insert(0, loop)
        return suffix

    def _spread(self, loops: Sequence[int], index: Size, operand: Operand, b: IndexBuilder) -> Size:
        """The address of point `index` of flattened loops: digits of the index times steps."""
        total: Size = 0
        rest = index
        for position, loop in enumerate(reversed(loops)):
            digit = rest if position == len(loops) - 1 else b.rem(rest, self.sizes[loop])
            total = b.add(total, b.mul(digit, operand.steps[loop]))
            if position < len(loops) - 1:
                rest = b.floordiv(rest, self.sizes[loop])
        return total

    def _linear(self, loops: Sequence[int], operand: Operand) -> Size | None:
        """The one step of flattened loops through an operand, or None when there is none."""
        flat = self._flat_suffix(list(loops), [operand], None)
        return operand.steps[loops[-1]] if len(flat) == len(loops) else None

    # --- loops --------------------------------------------------------------------------

    def _loops(
        self, loops: Sequence[int], ivs: dict[int, Size], at: IndexBuilder,
        inside: Callable[[dict[int, Size], IndexBuilder], None],
    ) -> None:  # fmt: skip
        if not loops:
            inside(ivs, at)
            return
        if self.sizes[loops[0]] == 1:
            self._loops(loops[1:], {**ivs, loops[0]: 0}, at, inside)
            return
        close, iv, b = for_loop(at, 0, self.sizes[loops[0]], 1)
        self._loops(loops[1:], {**ivs, loops[0]: iv}, b, inside)
        close()

    def _columns(self, ivs: dict[int, Size], outer_m: Sequence[int], at: IndexBuilder) -> None:
        width = self.block.vectors * self.lanes
        main = at.mul(at.floordiv(self.size_n, width), width)
        if main != 0 or not isinstance(main, int):
            close, j, b = for_loop(at, 0, main, width)
            self._panel(ivs, outer_m, j, self.block.vectors, None, b)
            close()
        if isinstance(main, int) and main == self.size_n:
            return
        rest = at.sub(self.size_n, main)
        if isinstance(rest, int):
            self._panel(ivs, outer_m, main, -(-rest // self.lanes), rest, at)
            return
        some = at.insert(arith.CmpiOp(at.value(rest), at.value(0), "ne")).results[0]
        close, b = if_else(at, some)
        self._panel(ivs, outer_m, main, self.block.vectors, rest, b)
        close()

    def _panel(
        self, ivs: dict[int, Size], outer_m: Sequence[int], j: Size, vectors: int,
        rest: Size | None, at: IndexBuilder,
    ) -> None:  # fmt: skip
        """One panel of columns: all of K, all of M. `rest` columns are valid, None for all."""
        base_b = self.operand_b.at(ivs, at)
        if self.packed is not None:
            base_b = at.add(base_b, at.mul(at.floordiv(j, self.packed), self.panel_step))
        if not self.direct:
            self._lane_offsets(j, vectors, rest, at)
        close, k0, b = for_loop(at, 0, self.size_k, KC)
        depth = b.minimum(KC, b.sub(self.size_k, k0)) if not self._divides(KC, self.size_k) else KC
        if not self.direct:
            self._pack(base_b, j, vectors, rest, k0, depth, b)

        def rows(inner: dict[int, Size], c: IndexBuilder) -> None:
            self._rows(inner, j, vectors, rest, k0, depth, base_b, c)

        self._loops(outer_m, ivs, b, rows)
        close()

    @staticmethod
    def _divides(tile: int, size: Size) -> bool:
        return isinstance(size, int) and size % tile == 0

    # --- packing ------------------------------------------------------------------------

    def _lane_offsets(self, j: Size, vectors: int, rest: Size | None, at: IndexBuilder) -> None:
        """Writes down where in B each column lies; columns past the end repeat the last."""
        self.step_n = self._linear(self.flat_n, self.operand_b)
        if self.step_n == 1 and rest is None:
            return
        close, lane, b = for_loop(at, 0, vectors * self.lanes, 1)
        column = b.add(j, lane)
        if rest is not None:
            column = b.minimum(column, b.sub(self.size_n, 1))
        offset = self._spread(self.flat_n, column, self.operand_b, b)
        b.insert(memref.StoreOp.get(b.value(offset), self.lane_offsets, [lane]))
        close()

    def _pack(
        self,
        base: Size,
        j: Size,
        vectors: int,
        rest: Size | None,
        k0: Size,
        depth: Size,
        at: IndexBuilder,
    ) -> None:
        lanes = self.lanes
        neighbours: list[SSAValue | None] = []
        simple = self.step_n == 1 and rest is None
        possible = self.operand_b.steps[self.flat_n[-1]] == 1
        for v in range(vectors if not simple else 0):
            if not possible:
                neighbours.append(None)
                continue
            first = at.insert(memref.LoadOp.get(self.lane_offsets, [at.value(v * lanes)])).results[
                0
            ]
            final = at.insert(
                memref.LoadOp.get(self.lane_offsets, [at.value(v * lanes + lanes - 1)])
            ).results[0]
            span = at.value(at.sub(final, first))
            neighbours.append(at.insert(arith.CmpiOp(span, at.value(lanes - 1), "eq")).results[0])
        close, kk, b = for_loop(at, 0, depth, 1)
        at_k = b.add(base, self._spread(self.flat_k, b.add(k0, kk), self.operand_b, b))
        row = b.mul(kk, vectors * lanes)
        for v in range(vectors):
            place = b.value(b.add(row, v * lanes))
            if simple:
                source = b.add(at_k, b.add(j, v * lanes))
                self._pack_vector(source, place, b)
                continue
            together = neighbours[v]
            if together is None:
                self._pack_lanes(at_k, v, place, b)
                continue
            end, yes, no = if_both(b, together)
            first = yes.insert(
                memref.LoadOp.get(self.lane_offsets, [yes.value(v * lanes)])
            ).results[0]
            self._pack_vector(yes.add(at_k, first), place, yes)
            self._pack_lanes(at_k, v, place, no)
            end()
        close()

    def _pack_vector(self, source: Size, place: SSAValue, b: IndexBuilder) -> None:
        assert isinstance(self.operand_b.flat.type, MemRefType)
        kind = vector_of(self.operand_b.flat.type.element_type, self.lanes)
        value = b.insert(vector.LoadOp(self.operand_b.flat, [b.value(source)], kind)).results[0]
        value = self._widened(value, 1, b)
        b.insert(vector.StoreOp(value, self.panel, [place]))

    def _pack_lanes(self, at_k: Size, v: int, place: SSAValue, b: IndexBuilder) -> None:
        close, lane, c = for_loop(b, 0, self.lanes, 1)
        offset = c.insert(
            memref.LoadOp.get(self.lane_offsets, [c.value(c.add(lane, v * self.lanes))])
        ).results[0]
        value = c.insert(
            memref.LoadOp.get(self.operand_b.flat, [c.value(c.add(at_k, offset))])
        ).results[0]
        value = self._widened(value, 1, c)
        c.insert(memref.StoreOp.get(value, self.panel, [c.value(c.add(place, lane))]))
        close()

    def _widened(self, value: SSAValue, side: int, b: IndexBuilder) -> SSAValue:
        for cast in reversed(self.widen[side]):
            target = cast.results[0].type
            if not isinstance(value.type, MemRefType) and hasattr(value.type, "get_shape"):
                target = vector_of(target, self.lanes)
            value = b.insert(
                type(cast).create(
                    operands=[value], result_types=[target], properties=dict(cast.properties)
                )
            ).results[0]
        return value

    # --- the micro-kernel ---------------------------------------------------------------

    def _rows(
        self, ivs: dict[int, Size], j: Size, vectors: int, rest: Size | None, k0: Size, depth: Size,
        base_b: Size, at: IndexBuilder,
    ) -> None:  # fmt: skip
        size, block = self.size_m, self.block.rows
        main = at.mul(at.floordiv(size, block), block)
        if not (isinstance(main, int) and main == 0):
            close, i, b = for_loop(at, 0, main, block)
            self._kernel(ivs, i, j, block, vectors, rest, k0, depth, base_b, b)
            close()
        if isinstance(main, int) and isinstance(size, int):
            if size > main:
                self._kernel(ivs, main, j, size - main, vectors, rest, k0, depth, base_b, at)
            return
        close, i, b = for_loop(at, main, size, 1)
        self._kernel(ivs, i, j, 1, vectors, rest, k0, depth, base_b, b)
        close()

    def _kernel(
        self, ivs: dict[int, Size], i: Size, j: Size, rows: int, vectors: int, rest: Size | None,
        k0: Size, depth: Size, base_b: Size, at: IndexBuilder,
    ) -> None:  # fmt: skip
        m_loop = self.flat_m
        here = {**ivs, m_loop[0]: i} if m_loop else ivs
        step_m = self.operand_a.steps[m_loop[0]] if m_loop else 0
        step_mc = self.operand_c.steps[m_loop[0]] if m_loop else 0
        step_k = self.operand_a.steps[self.flat_k[-1]]
        base_a = at.add(self.operand_a.at(here, at), at.mul(k0, step_k))
        base_c = at.add(self.operand_c.at(here, at), j)
        places = [
            [
                at.value(at.add(base_c, at.add(at.mul(step_mc, r), v * self.lanes)))
                for v in range(vectors)
            ]
            for r in range(rows)
        ]
        whole = [self._is_whole(v, rest) for v in range(vectors)]
        kind = vector_of(self.element, self.lanes)
        accs = [
            at.insert(vector.LoadOp(self.operand_c.flat, [places[r][v]], kind)).results[0]
            if whole[v]
            else self.zero
            for r in range(rows)
            for v in range(vectors)
        ]
        rows_a = [at.add(base_a, at.mul(step_m, r)) for r in range(rows)]
        close, kk, b = for_loop(at, 0, depth, 1, accs)
        carried = close.arguments
        if self.direct:
            source = self.operand_b.flat
            column = 0 if self.packed is not None else j
            start = b.add(
                base_b, b.add(column, self._spread(self.flat_k, b.add(k0, kk), self.operand_b, b))
            )
        else:
            source, start = self.panel, b.mul(kk, vectors * self.lanes)
        columns = [
            self._column(source, b.add(start, v * self.lanes), whole[v], rest, v, b)
            for v in range(vectors)
        ]
        out: list[SSAValue] = []
        at_k = b.mul(kk, step_k)
        for r in range(rows):
            place = b.value(b.add(rows_a[r], at_k))
            scalar = b.insert(memref.LoadOp.get(self.operand_a.flat, [place])).results[0]
            splat = b.insert(vector.BroadcastOp(self._widened(scalar, 0, b), kind)).results[0]
            for v in range(vectors):
                product = b.insert(same(self.parts.multiply, splat, columns[v])).results[0]
                out.append(
                    b.insert(same(self.parts.add, carried[r * vectors + v], product)).results[0]
                )
        results = close(out)
        for r in range(rows):
            for v in range(vectors):
                value = results[r * vectors + v]
                if whole[v]:
                    at.insert(vector.StoreOp(value, self.operand_c.flat, [places[r][v]]))
                else:
                    self._add_lanes(value, places[r][v], v, rest, at)

    def _is_whole(self, v: int, rest: Size | None) -> bool:
        """Whether every lane of vector `v` of a panel is a column of the output."""
        return rest is None or (isinstance(rest, int) and (v + 1) * self.lanes <= rest)

    def _column(
        self, source: SSAValue, start: Size, whole: bool, rest: Size | None, v: int, b: IndexBuilder
    ) -> SSAValue:
        kind = vector_of(self.element, self.lanes)
        if whole or not self.direct or self.packed is not None:
            return b.insert(vector.LoadOp(source, [b.value(start)], kind)).results[0]
        # Unpacked columns past the end are not ours to read.
        count = self._count(v, rest, b)
        close, lane, c = for_loop(b, 0, count, 1, [self.zero])
        place = c.value(c.add(start, lane))
        value = c.insert(memref.LoadOp.get(source, [place])).results[0]
        return close([c.insert(vector.InsertOp(value, close.arguments[0], [lane])).results[0]])[0]

    def _count(self, v: int, rest: Size | None, b: IndexBuilder) -> Size:
        assert rest is not None
        return b.maximum(b.minimum(b.sub(rest, v * self.lanes), self.lanes), 0)

    def _add_lanes(
        self, value: SSAValue, place: SSAValue, v: int, rest: Size | None, at: IndexBuilder
    ) -> None:
        """C += the valid lanes of a vector"""
        count = self._count(v, rest, at)
        close, lane, b = for_loop(at, 0, count, 1)
        target = b.value(b.add(place, lane))
        part = b.insert(vector.ExtractOp(value, [lane], self.element)).results[0]
        old = b.insert(memref.LoadOp.get(self.operand_c.flat, [target])).results[0]
        total = b.insert(same(self.parts.add, old, part)).results[0]
        b.insert(memref.StoreOp.get(total, self.operand_c.flat, [target]))
        close()


def same(op: Operation, lhs: SSAValue, rhs: SSAValue) -> Operation:
    """The op on other operands, scalars or vectors."""
    return type(op).create(
        operands=[lhs, rhs], result_types=[lhs.type], properties=dict(op.properties)
    )


def zero(element: Attribute) -> arith.ConstantOp:
    """The constant 0 of a type."""
    if isinstance(element, IntegerType | IndexType):
        return arith.ConstantOp(IntegerAttr(0, element))
    return arith.ConstantOp(FloatAttr(0.0, element))
