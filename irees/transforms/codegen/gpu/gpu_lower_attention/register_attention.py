"""
Lowers one f16/bf16 attention with scores in registers. Part of `irees-gpu-lower-attention`.

A warp holds 16 rows of queries as `mma.sync` fragments. Tiles of keys and values are copied to
shared memory while the previous tile is in use. The accumulator layout of one product equals the
left-operand layout of the next, so scores are exponentiated and multiplied with the values in
place: a lane's vector of four holds two adjacent scores of a row and two of the row 8 below. The
four lanes that share a row reduce its maximum and sum with shuffles.

Exponentials are computed as `exp2`, which is a GPU instruction: log2(e) is folded into the scale.
Without a mask and with a positive constant scale, maxima are computed on the unscaled products, and
an exponential is exp2(product * scale - maximum * scale), with one FMA.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from xdsl.dialects import arith, math, memref, vector
from xdsl.dialects.builtin import (
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    f32,
    i1,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from irees.analysis.attention import loops_in, roles_of
from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees import MmaSyncOp
from irees.dialects.nvgpu import (
    DeviceAsyncCopyOp,
    DeviceAsyncCreateGroupOp,
    DeviceAsyncWaitOp,
    LdMatrixOp,
)
from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr, BarrierOp, ShuffleOp
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.gpu_lower_attention.powers import (
    APPROXIMATE,
    LOG2_E,
    is_positive,
    maximum,
)
from irees.transforms.codegen.gpu.utils.attention_forms import ACCESS, STAGES, columns_of
from irees.transforms.codegen.gpu.utils.blocking import PADDING_BYTES
from irees.transforms.codegen.gpu.utils.segments import threads
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim


@dataclass
class RegisterAttention:
    """The lowering of one op; `room` is the available shared memory in bytes."""

    op: ext.AttentionOp
    room: int

    threads = NVIDIA.threads
    """Threads per workgroup: a warp per 16 rows."""

    def lower(self, at: IndexBuilder) -> None:
        """iree_linalg_ext.attention  =>  a loop over tiles of keys"""
        op = self.op
        roles = roles_of(op)
        assert roles is not None
        self.roles = roles
        self.maps = [loops_in(m.data) for m in op.indexing_maps]
        self.m, (self.k1,), (self.k2,), (self.n,) = roles.row, roles.k1, roles.k2, roles.n
        self.keys, self.depth, self.width = (roles.sizes[x] for x in (self.k2, self.k1, self.n))
        self.columns = self._keys_per_tile()
        assert isinstance(op.query.type, MemRefType)
        self.narrow: Attribute = op.query.type.element_type
        self.sums = vector_of(f32, 4)
        self.rows = buffer_dim(op.query, self.maps[0].index(self.m), at)
        self._allocate(at)
        close, thread, b = threads(at, self.threads)
        self._find_place(thread, b)
        scale, log2_e = self._splat(self._as_f32(op.scale, b), b), self._number(LOG2_E, b)
        self.scale = self._apply(arith.MulfOp, scale, log2_e, at=b)
        self.raw = op.mask is None and is_positive(op.scale)
        self._loop(b)
        close()
        Rewriter.replace_op(op, BarrierOp())

    def _keys_per_tile(self) -> int:
        columns = columns_of(self.op, self.room)
        assert columns is not None
        return columns

    def _allocate(self, at: IndexBuilder) -> None:
        """Allocates the tiles of keys and values."""
        self.tiles = [self._tile(size, at) for size in (self.depth, self.width)]

    def _tile(self, features: int, at: IndexBuilder) -> SSAValue:
        shape = [STAGES, self.columns, features + PADDING_BYTES // 2]
        space = AddressSpaceAttr(AddressSpace.WORKGROUP)
        kind = MemRefType(self.narrow, shape, memory_space=space)
        return at.insert(memref.AllocOp([], [], kind)).results[0]

    def _find_place(self, thread: SSAValue, at: IndexBuilder) -> None:
        """Computes this lane's two rows, its first column, and its `ldmatrix` row address."""
        self.thread = thread
        warp, lane = at.floordiv(thread, WARP), at.rem(thread, WARP)
        first = at.add(at.mul(warp, 16), at.floordiv(lane, 4))
        self.mine = [first, at.add(first, 8)]
        self.inside = [at.minimum(row, at.sub(self.rows, 1)) for row in self.mine]
        self.pair = at.mul(at.rem(lane, 4), 2)
        self.line, number = at.rem(lane, 8), at.floordiv(lane, 8)
        self.low, self.high = at.mul(at.rem(number, 2), 8), at.mul(at.floordiv(number, 2), 8)

    def _loop(self, at: IndexBuilder) -> None:
        self._begin(at)
        zero, lowest = (self._number(x, at) for x in (0.0, -inf))
        start = [lowest, zero, *[zero] * (self.width // 8)]
        body, first, b = for_loop(at, 0, self.keys, self.columns, start)
        most, total, *results = body.arguments
        slot = self._take(first, b)
        scores = self._scores(slot, first, b)
        following = self._apply(maximum, most, self._row_maximum(scores, b), at=b)
        # If all scores so far are -inf, shift by 0: exp(-inf - 0) is 0, but -inf - -inf is NaN.
        nothing = b.insert(arith.CmpfOp(following, lowest, "oeq")).results[0]
        shift = b.insert(arith.SelectOp(nothing, zero, following)).results[0]
        if self.raw:
            less = self._apply(arith.MulfOp, self.scale, self._number(-1.0, b), at=b)
            shift = self._apply(arith.MulfOp, shift, less, at=b)
        factor = self._power(most, shift, b)
        powers = [self._power(score, shift, b) for score in scores]
        total = self._apply(arith.MulfOp, total, factor, at=b)
        for power in powers:
            total = self._apply(arith.AddfOp, total, power, at=b)
        results = [self._apply(arith.MulfOp, result, factor, at=b) for result in results]
        words = [word for power in powers for word in self._narrowed(power, b)]
        results = self._times_values(words, results, slot, b)
        _, total, *results = body([following, total, *results])
        self._end(at)
        total = self._row_sum(total, at)
        if self.op.zero_masked_rows is not None:
            masked = at.insert(arith.CmpfOp(total, zero, "oeq")).results[0]
            total = at.insert(arith.SelectOp(masked, self._number(1.0, at), total)).results[0]
        self._store(total, results, at)

    def _begin(self, at: IndexBuilder) -> None:
        """Loads the queries, and starts to copy the first tile of keys and values."""
        self.queries = [self._query(step, at) for step in range(0, self.depth, 16)]
        self.begun = self._copy(0, 0, at)

    def _take(self, first: SSAValue, at: IndexBuilder) -> Size:
        """Waits for a tile, and starts to copy the next one; returns the slot of the tile."""
        part = at.floordiv(first, self.columns)
        slot = at.rem(part, STAGES)
        at.insert(DeviceAsyncWaitOp(self.begun, 0))
        # Makes all copies visible, and no thread still reads the slot that is overwritten next.
        at.insert(BarrierOp())
        self._copy(at.add(first, self.columns), at.rem(at.add(part, 1), STAGES), at)
        return slot

    def _end(self, at: IndexBuilder) -> None:
        """Drains the copies in flight."""
        at.insert(DeviceAsyncWaitOp(self.begun, 0))

    # --- operands --------------------------------------------------------------------------------

    def _indices(self, position: int, ivs: dict[int, Size], at: IndexBuilder) -> list[SSAValue]:
        return [at.value(ivs.get(loop, 0)) for loop in self.maps[position]]

    def _query(self, step: int, at: IndexBuilder) -> list[SSAValue]:
        """Loads the left operand of one step: two words of each of the two rows."""
        kind = vector_of(self.narrow, 2)
        return [
            at.insert(
                vector.LoadOp(
                    self.op.query,
                    self._indices(0, {self.m: row, self.k1: at.add(self.pair, step + n)}, at),
                    kind,
                )
            ).results[0]
            for n in (0, 8)
            for row in self.inside
        ]

    def _copy(self, first: Size, slot: Size, at: IndexBuilder) -> SSAValue:
        """Starts to copy a tile of keys and values from `first` on, zero-filled past the end."""
        begun: list[SSAValue] = []
        sources = ((1, self.op.key, self.k1, self.depth), (2, self.op.value, self.n, self.width))
        for (position, source, loop, size), tile in zip(sources, self.tiles, strict=True):
            across = size // ACCESS
            for number in range(self.columns * across // NVIDIA.threads):
                index = at.add(self.thread, number * NVIDIA.threads)
                row, feature = at.floordiv(index, across), at.mul(at.rem(index, across), ACCESS)
                key = at.add(first, row)
                some = at.value(ACCESS)
                if not isinstance(first, int) or self.keys % self.columns:
                    test = at.insert(
                        arith.CmpiOp(at.value(key), at.value(self.keys), "slt")
                    ).results[0]
                    some = at.insert(arith.SelectOp(test, some, at.value(0))).results[0]
                    key = at.minimum(key, self.keys - 1)
                where = self._indices(position, {self.k2: key, loop: feature}, at)
                target = [at.value(i) for i in (slot, row, feature)]
                copy = DeviceAsyncCopyOp(source, where, tile, target, ACCESS, some)
                begun.append(at.insert(copy).results[0])
        return at.insert(DeviceAsyncCreateGroupOp(begun)).results[0]

    def _words(
        self, tile: SSAValue, place: Sequence[Size], at: IndexBuilder, *, turned: bool
    ) -> list[SSAValue]:
        """Loads the right operands of two adjacent products."""
        where = [at.value(i) for i in place]
        words = at.insert(LdMatrixOp(tile, where, transpose=turned)).results[0]
        kind = vector_of(self.narrow, 2)
        return [at.insert(vector.ExtractOp(words, [i], kind)).results[0] for i in range(4)]

    # --- scores ----------------------------------------------------------------------------------

    def _products(self, slot: Size, at: IndexBuilder) -> list[SSAValue]:
        """q . k for this lane's rows and a tile of keys, 8 keys per vector"""
        sums = [self._number(0.0, at)] * (self.columns // 8)
        for step, left in enumerate(self.queries):
            for key in range(0, self.columns, 16):
                line = at.add(at.add(self.high, key), self.line)
                column = at.add(self.low, 16 * step)
                right = self._words(self.tiles[0], (slot, line, column), at, turned=False)
                for half in (0, 1):
                    number = key // 8 + half
                    op = MmaSyncOp(left, right[2 * half : 2 * half + 2], sums[number])
                    sums[number] = at.insert(op).results[0]
        return sums

    def _scores(self, slot: Size, first: Size, at: IndexBuilder) -> list[SSAValue]:
        """scale * q . k + mask, or q . k if `raw`, for this lane's rows and a tile of keys"""
        found: list[SSAValue] = []
        for number, score in enumerate(self._products(slot, at)):
            scaled = score if self.raw else self._apply(arith.MulfOp, score, self.scale, at=at)
            columns = [at.add(at.add(first, self.pair), 8 * number + n) for n in (0, 1)]
            found.append(self._hidden(self._masked(scaled, columns, at), columns, at))
        return found

    def _masked(self, score: SSAValue, columns: list[Size], at: IndexBuilder) -> SSAValue:
        """score + mask, where a boolean mask element is 0 or -infinity"""
        if self.op.mask is None:
            return score
        found: list[SSAValue] = []
        for row in self.inside:
            for column in columns:
                inside = at.minimum(column, self.keys - 1)
                where = self._indices(4, {self.m: row, self.k2: inside}, at)
                value = at.insert(memref.LoadOp.get(self.op.mask, where)).results[0]
                found.append(self._as_f32(value, at))
        mask, log2_e = self._vector(found, at), self._number(LOG2_E, at)
        if isinstance(self.op.mask.type.element_type, IntegerType):  # type: ignore
            return self._apply(arith.AddfOp, score, mask, at=at)
        return self._apply(math.FmaOp, mask, log2_e, score, at=at)

    def _hidden(self, score: SSAValue, columns: list[Size], at: IndexBuilder) -> SSAValue:
        """score, or -infinity past the last key"""
        if self.keys % self.columns == 0:
            return score
        lowest = self._scalar(-inf, at)
        found: list[SSAValue] = []
        for lane, column in enumerate(columns * 2):
            value = at.insert(vector.ExtractOp(score, [lane], f32)).results[0]
            test = arith.CmpiOp(at.value(column), at.value(self.keys), "slt")
            inside = at.insert(test).results[0]
            found.append(at.insert(arith.SelectOp(inside, value, lowest)).results[0])
        return self._vector(found, at)

    def _times_values(
        self, words: list[SSAValue], results: list[SSAValue], slot: Size, at: IndexBuilder
    ) -> list[SSAValue]:
        """results + powers . v, with the powers as the left operand, without a layout change"""
        for step in range(len(words) // 4):
            left = words[4 * step : 4 * step + 4]
            for feature in range(0, self.width, 16):
                line = at.add(at.add(self.low, 16 * step), self.line)
                column = at.add(self.high, feature)
                right = self._words(self.tiles[1], (slot, line, column), at, turned=True)
                for half in (0, 1):
                    number = feature // 8 + half
                    op = MmaSyncOp(left, right[2 * half : 2 * half + 2], results[number])
                    results[number] = at.insert(op).results[0]
        return results

    def _narrowed(self, power: SSAValue, at: IndexBuilder) -> list[SSAValue]:
        """Returns the words of two rows, truncated to the operand type."""
        values = [at.insert(vector.ExtractOp(power, [i], f32)).results[0] for i in range(4)]
        kind = vector_of(self.narrow, 2)
        return [
            at.insert(arith.TruncFOp(self._vector(pair, at), kind)).results[0]
            for pair in (values[:2], values[2:])
        ]

    # --- rows ------------------------------------------------------------------------------------

    def _row_maximum(self, scores: list[SSAValue], at: IndexBuilder) -> SSAValue:
        most = scores[0]
        for score in scores[1:]:
            most = self._apply(maximum, most, score, at=at)
        return self._folded(maximum, most, at)

    def _row_sum(self, total: SSAValue, at: IndexBuilder) -> SSAValue:
        return self._folded(arith.AddfOp, total, at)

    def _folded(
        self, kind: Callable[..., Operation], values: SSAValue, at: IndexBuilder
    ) -> SSAValue:
        """Reduces over the four lanes of a row, for both rows; broadcasts to both columns."""
        found: list[SSAValue] = []
        for row in (0, 1):
            pair = [
                at.insert(vector.ExtractOp(values, [2 * row + n], f32)).results[0] for n in (0, 1)
            ]
            value = self._apply(kind, *pair, at=at)
            for offset in (1, 2):
                distance, width = (
                    at.insert(arith.ConstantOp(IntegerAttr(n, i32))).results[0]
                    for n in (offset, WARP)
                )
                theirs = at.insert(ShuffleOp(value, distance, width)).results[0]
                value = self._apply(kind, value, theirs, at=at)
            found += [value, value]
        return self._vector(found, at)

    def _power(self, value: SSAValue, shift: SSAValue, at: IndexBuilder) -> SSAValue:
        if self.raw:
            less = self._apply(math.FmaOp, value, self.scale, shift, at=at)
        else:
            less = self._apply(arith.SubfOp, value, shift, at=at)
        return at.insert(math.Exp2Op(less, APPROXIMATE)).results[0]

    def _store(self, total: SSAValue, results: list[SSAValue], at: IndexBuilder) -> None:
        output = self.op.output
        assert isinstance(output.type, MemRefType)
        element = output.type.element_type
        finished = [self._apply(arith.DivfOp, result, total, at=at) for result in results]
        for row, mine in enumerate(self.mine):
            test = at.insert(arith.CmpiOp(at.value(mine), at.value(self.rows), "slt")).results[0]
            close, b = if_else(at, test)
            for number, result in enumerate(finished):
                values = [
                    b.insert(vector.ExtractOp(result, [2 * row + n], f32)).results[0]
                    for n in (0, 1)
                ]
                if not isinstance(element, Float32Type):
                    values = [b.insert(arith.TruncFOp(v, element)).results[0] for v in values]
                place = {self.m: mine, self.n: b.add(self.pair, 8 * number)}
                where = self._indices(len(self.maps) - 1, place, b)
                b.insert(vector.StoreOp(self._vector(values, b), output, where))
            close()

    # --- helpers ---------------------------------------------------------------------------------

    def _apply(
        self, kind: Callable[..., Operation], *operands: SSAValue, at: IndexBuilder
    ) -> SSAValue:
        return at.insert(kind(*operands)).results[0]

    def _scalar(self, value: float, at: IndexBuilder) -> SSAValue:
        return at.insert(arith.ConstantOp(FloatAttr(value, f32))).results[0]

    def _splat(self, value: SSAValue, at: IndexBuilder) -> SSAValue:
        return at.insert(vector.BroadcastOp(value, self.sums)).results[0]

    def _number(self, value: float, at: IndexBuilder) -> SSAValue:
        return self._splat(self._scalar(value, at), at)

    def _vector(self, values: Sequence[SSAValue], at: IndexBuilder) -> SSAValue:
        kind = vector_of(values[0].type, len(values))
        found = at.insert(vector.BroadcastOp(values[0], kind)).results[0]
        for lane, value in enumerate(values[1:], 1):
            found = at.insert(vector.InsertOp(value, found, [lane])).results[0]
        return found

    def _as_f32(self, value: SSAValue, at: IndexBuilder) -> SSAValue:
        """Converts a scale or mask element to f32; a false mask bit becomes -infinity."""
        kind = value.type
        if isinstance(kind, IntegerType):
            if kind.width.data != 1:
                value = at.insert(arith.TruncIOp(value, i1)).results[0]
            shown, hidden = self._scalar(0.0, at), self._scalar(-inf, at)
            return at.insert(arith.SelectOp(value, shown, hidden)).results[0]
        if isinstance(kind, Float32Type):
            return value
        width = kind.bitwidth  # type: ignore[attr-defined]
        change = arith.ExtFOp if width < 32 else arith.TruncFOp
        return at.insert(change(value, f32)).results[0]
