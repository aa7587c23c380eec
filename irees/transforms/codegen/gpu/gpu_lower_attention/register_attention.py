"""
Lowers one f16/bf16 attention with scores in registers. Part of `irees-gpu-lower-attention`.

A warp holds 16 rows of queries as `mma.sync` fragments. Tiles of keys and values are copied to
shared memory while the previous tile is in use. The accumulator layout of one product equals the
left-operand layout of the next, so scores are exponentiated and multiplied with the values in
place: a lane's vector of four holds two adjacent scores of a row and two of the row 8 below. The
four lanes that share a row reduce its maximum and sum with shuffles.

Exponentials are computed as `exp2`, which is a GPU instruction: log2(e) is folded into the scale.
Without a mask and with a positive constant scale, maxima are taken of the unscaled products, and an
exponential is exp2(product * scale - maximum * scale), with one FMA.
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
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from irees.analysis.attention import AttentionRoles, loops_in, roles_of
from irees.analysis.distribution import root
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
from irees.transforms.codegen.gpu.utils.blocking import PADDING_BYTES
from irees.transforms.codegen.gpu.utils.points import ACCESS_BYTES, alignment
from irees.transforms.codegen.gpu.utils.segments import threads
from irees.transforms.codegen.gpu.utils.tiles import WARP
from irees.transforms.utils.lanes import unit_stride, vector_of
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim

ACCESS = ACCESS_BYTES // 2
"""Elements (f16/bf16) per copy."""

STAGES = 2
"""Stages of key and value tiles: one in use, one in flight."""


def shared_bytes(roles: AttentionRoles, columns: int) -> int:
    """Returns the bytes of the key and value tiles."""
    features = roles.sizes[roles.k1[0]] + roles.sizes[roles.n[0]]
    return STAGES * columns * (2 * features + 2 * PADDING_BYTES)


def columns_of(op: ext.AttentionOp, room: int) -> int | None:
    """Returns the keys per tile that fit into `room` bytes of shared memory, or None."""
    roles = roles_of(op)
    assert roles is not None
    wide = (roles.sizes[roles.k1[0]], roles.sizes[roles.n[0]])
    for columns in NVIDIA.register_keys:
        whole = all(columns * n // ACCESS % NVIDIA.threads == 0 for n in wide)
        if whole and shared_bytes(roles, columns) <= room:
            return columns
    return None


def why_not(op: ext.AttentionOp, kinds: Sequence[str], room: int) -> str | None:
    """Returns why the scores of an op cannot stay in registers, or None."""
    roles = roles_of(op)
    assert roles is not None
    operands = op.query, op.key, op.value
    elements = {str(v.type.element_type) for v in operands}  # type: ignore[attr-defined]
    if len(elements) != 1 or not elements <= {"f16", "bf16"} & set(kinds):
        return "no halves, or no matrix instructions for them"
    if any(len(r) != 1 for r in (roles.m, roles.k1, roles.k2, roles.n)):
        return "several loops have one role"
    if any(roles.sizes[loop] != 1 for loop in roles.batch) or roles.sizes[roles.k2[0]] <= 0:
        return "several batches, or an unknown number of keys"
    if roles.sizes[roles.m[0]] > NVIDIA.attention_rows:
        return f"more than {NVIDIA.attention_rows} rows"
    block = op.body.block
    if len(block.ops) != 1 or block.last_op.operands[0] is not block.args[0]:  # type: ignore
        return "scores are computed with"
    wide = (roles.sizes[roles.k1[0]], roles.sizes[roles.n[0]])
    most = NVIDIA.register_features
    if any(size % 16 or not 0 < size <= most for size in wide):
        return f"rows of {wide[0]} and {wide[1]} features, not of 16 to {most} in steps of 16"
    maps = [loops_in(m.data) for m in op.indexing_maps]
    ends = (roles.k1[0], roles.k1[0], roles.n[0], roles.n[0])
    if any(own[-1] != last for own, last in zip((*maps[:3], maps[-1]), ends, strict=True)):
        return "features do not lie side by side"
    for operand, lanes in ((op.query, 2), (op.key, ACCESS), (op.value, ACCESS), (op.output, 2)):
        if not unit_stride(operand.type) or alignment(operand) % lanes:
            return "an operand is not aligned"
    if not all(isinstance(root(v), BlockArgument) for v in (op.key, op.value)):
        return "keys or values are made by the workgroup"
    if columns_of(op, room) is None:
        least = shared_bytes(roles, NVIDIA.register_keys[-1])
        return f"{least} bytes of shared memory, and {room} at most"
    return None


@dataclass
class RegisterAttention:
    """The lowering of one op; `room` is the available shared memory in bytes."""

    op: ext.AttentionOp
    room: int

    def lower(self, at: IndexBuilder) -> None:
        """iree_linalg_ext.attention  =>  a loop over tiles of keys, for four warps"""
        op = self.op
        roles, columns = roles_of(op), columns_of(op, self.room)
        assert roles is not None
        assert columns is not None
        self.roles, self.columns = roles, columns
        self.maps = [loops_in(m.data) for m in op.indexing_maps]
        (self.m,), (self.k1,), (self.k2,), (self.n,) = roles.m, roles.k1, roles.k2, roles.n
        self.keys, self.depth, self.width = (roles.sizes[x] for x in (self.k2, self.k1, self.n))
        assert isinstance(op.query.type, MemRefType)
        self.narrow: Attribute = op.query.type.element_type
        self.sums = vector_of(f32, 4)
        self.rows = buffer_dim(op.query, self.maps[0].index(self.m), at)
        self.tiles = [self._tile(size, at) for size in (self.depth, self.width)]
        close, thread, b = threads(at, NVIDIA.threads)
        self._find_place(thread, b)
        scale, log2_e = self._splat(self._as_f32(op.scale, b), b), self._number(LOG2_E, b)
        self.scale = self._apply(arith.MulfOp, scale, log2_e, at=b)
        self.raw = op.mask is None and is_positive(op.scale)
        self._loop(b)
        close()
        Rewriter.replace_op(op, BarrierOp())

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
        queries = [self._query(step, at) for step in range(0, self.depth, 16)]
        zero, lowest = (self._number(x, at) for x in (0.0, -inf))
        begun = self._copy(0, 0, at)
        start = [lowest, zero, *[zero] * (self.width // 8)]
        body, first, b = for_loop(at, 0, self.keys, self.columns, start)
        most, total, *results = body.arguments
        part = b.floordiv(first, self.columns)
        slot = b.rem(part, STAGES)
        b.insert(DeviceAsyncWaitOp(begun, 0))
        # Makes all copies visible, and no thread still reads the slot that is overwritten next.
        b.insert(BarrierOp())
        self._copy(b.add(first, self.columns), b.rem(b.add(part, 1), STAGES), b)
        scores = self._scores(queries, slot, first, b)
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
        results = self._times_values(powers, results, slot, b)
        _, total, *results = body([following, total, *results])
        at.insert(DeviceAsyncWaitOp(begun, 0))
        self._store(self._row_sum(total, at), results, at)

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

    def _scores(
        self, queries: list[list[SSAValue]], slot: Size, first: Size, at: IndexBuilder
    ) -> list[SSAValue]:
        """scale * q . k + mask, or q . k if `raw`, for this lane's rows and a tile of keys"""
        sums = [self._number(0.0, at)] * (self.columns // 8)
        for step, left in enumerate(queries):
            for key in range(0, self.columns, 16):
                line = at.add(at.add(self.high, key), self.line)
                column = at.add(self.low, 16 * step)
                right = self._words(self.tiles[0], (slot, line, column), at, turned=False)
                for half in (0, 1):
                    number = key // 8 + half
                    op = MmaSyncOp(left, right[2 * half : 2 * half + 2], sums[number])
                    sums[number] = at.insert(op).results[0]
        found: list[SSAValue] = []
        for number, score in enumerate(sums):
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
        self, powers: list[SSAValue], results: list[SSAValue], slot: Size, at: IndexBuilder
    ) -> list[SSAValue]:
        """results + powers . v, with the powers as the left operand, without a layout change"""
        words = [word for power in powers for word in self._narrowed(power, at)]
        for step in range(len(powers) // 2):
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
