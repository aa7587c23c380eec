"""
Lowers attention to a loop over tiles of keys and values with online softmax.

A workgroup owns a tile of queries. For each tile of keys and values it computes the scores, updates
the running row maxima, and adds the exponentials times the values to the running result, which it
rescales when a maximum grows. Only the scores of one tile are ever stored. The steps are structured
ops on workgroup buffers. Later passes distribute them to threads: contractions in blocks, with
matrix instructions if queries, keys and values are f16 or bf16; row maxima and sums by warps.

    iree_linalg_ext.attention ins(%q, %k, %v, %scale) outs(%o)   // 64 rows of queries
  =>
    %m = -inf ; %s = 0 ; %r = 0
    scf.for %i = 0 to 2048 step 64 {
      %t = %q . %k[%i] * %scale * log2(e)             // 64 x 64
      %n = max(%m, max(%t)) ; %f = exp2(%m - %n) ; %m = %n
      %s = %s * %f + sum(exp2(%t - %n))
      %r = %r * %f + exp2(%t - %n) . %v[%i]
    }
    %o = %r / %s

If the target copies to shared memory asynchronously, and f16 or bf16 operands have a layout that
matrix instructions can load, scores never leave registers (`register_attention.py`), and if TMA can
copy them, warpgroups compute both products (`warpgroup_attention.py`).

A row whose scores are all -infinity so far contributes nothing; if all of them are, the result is
NaN (0 / 0), or 0 with `zero_masked_rows`. With f16 or bf16 operands, the exponentials are rounded
to that type before the second product. `irees-decompose-attention` leaves this pass only ops that
are large enough to pay off, and none with `fp=strict`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, IntegerType, MemRefType, ModuleOp, f32, f64, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.attention import loops_in, roles_of
from irees.dialects import iree_linalg_ext as ext
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.irees_target import gpu_of, matrix_kinds_of
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.gpu_lower_attention.powers import (
    divisor,
    maximum,
    power,
    score_for_powers,
)
from irees.transforms.codegen.gpu.gpu_lower_attention.register_attention import (
    RegisterAttention,
)
from irees.transforms.codegen.gpu.gpu_lower_attention.warpgroup_attention import (
    WarpgroupAttention,
)
from irees.transforms.codegen.gpu.utils.attention_forms import (
    fewest_workgroups,
    why_no_warpgroups,
    why_no_warps,
    why_not_one_tile,
)
from irees.transforms.codegen.gpu.utils.blocking import (
    ATTENTION_BLOCKING,
    ATTENTION_MATRIX_BLOCKING,
    AttentionBlocking,
)
from irees.transforms.codegen.gpu.utils.segments import (
    is_mapped,
    set_fewest_workgroups,
    set_threads,
)
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.scores import score_of
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim
from irees.transforms.utils.structured import generic
from irees.transforms.utils.tensors import ScalarBuilder
from irees.transforms.utils.views import subview

Loops = Sequence[int]
Body = Callable[[ScalarBuilder, list[SSAValue]], SSAValue]


@dataclass
class Attention:
    """The lowering of one attention op."""

    op: ext.AttentionOp
    matrix_kinds: Sequence[str]
    at: IndexBuilder
    sizes: list[Size] = field(default_factory=list)

    def __post_init__(self) -> None:
        roles = roles_of(self.op)
        assert roles is not None
        self.roles = roles
        (self.k2,) = roles.k2
        self.rows = (*roles.batch, *roles.m)
        self.maps = [loops_in(m.data) for m in self.op.indexing_maps]
        kinds = [v.type.element_type for v in (self.op.query, self.op.key, self.op.value)]
        self.wide: Attribute = f64 if f64 in kinds else f32
        whole = len(set(kinds)) == 1 and str(kinds[0]) in self.matrix_kinds
        self.narrow: Attribute = kinds[0] if whole else self.wide
        blocking = ATTENTION_MATRIX_BLOCKING if whole else ATTENTION_BLOCKING
        self.config = LoweringConfigAttr.of(**blocking.as_entries())
        configured = AttentionBlocking.on(self.op)
        self.most_rows = NVIDIA.attention_rows if configured is None else configured.rows

    def lower(self) -> None:
        """Replaces the op with a loop over tiles of keys and values."""
        op, at = self.op, self.at
        for loop in range(len(self.roles.sizes)):
            operand, dims = next(
                (v, m) for v, m in zip(op.operands, self.maps, strict=True) if loop in m
            )
            self.sizes.append(buffer_dim(operand, dims.index(loop), at))
        scores = (*self.rows, self.k2)
        result = (*self.rows, *self.roles.n)
        self.most, self.next, self.factor, self.total = (
            self._buffer(self.rows, self.wide, at) for _ in range(4)
        )
        self.result = self._buffer(result, self.wide, at)
        self.values = self._buffer(scores, self.wide, at)
        self.raw = self._buffer(scores, self.wide, at)
        self.powers = (
            self.values if self.narrow == self.wide else self._buffer(scores, self.narrow, at)
        )
        for buffer, loops, start in (
            (self.most, self.rows, -inf), (self.total, self.rows, 0.0), (self.result, result, 0.0),
        ):  # fmt: skip
            self._compute([], buffer, loops, [], at, self._constant(start))
        whole = self.sizes[self.k2]
        assert isinstance(whole, int)
        columns = NVIDIA.attention_columns
        end = whole // columns * columns
        if end:
            body, first, inside = for_loop(at, 0, end, columns)
            self._tile(first, columns, inside)
            body()
        if end < whole:
            self._tile(end, whole - end, at)
        if op.zero_masked_rows is not None:
            self._compute([], self.total, self.rows, [], at, lambda s, v: divisor(v[0], s))
        self._compute(
            [(self.result, result), (self.total, self.rows)], op.output, self.maps[-1], [], at,
            lambda s, v: s.cast(s.op(arith.DivfOp, v[0], v[1]), v[2].type),
        )  # fmt: skip
        Rewriter.erase_op(op)

    def _constant(self, value: float) -> Body:
        return lambda s, v: s.number(value, v[-1].type)

    def _tile(self, first: Size, columns: int, at: IndexBuilder) -> None:
        """Emits one step: `columns` keys and values, starting at `first`."""
        op, rows, k2 = self.op, self.rows, self.k2
        scores, n = (*rows, k2), self.roles.n
        query, key, value, _, *mask = zip(op.operands, self.maps, strict=True)
        key, value, *mask = (
            self._part(*side, first, columns, at) for side in (key, value, *mask[:-1])
        )
        raw, values, powers = (
            self._part(buffer, scores, 0, columns, at)
            for buffer in (self.raw, self.values, self.powers)
        )
        self._compute([], *raw, [], at, self._constant(0.0))
        self._contract(query, key, raw, at)

        def score(s: ScalarBuilder, v: list[SSAValue]) -> SSAValue:
            value = score_of(op, v[0], op.scale, self.wide, s)
            return score_for_powers(self._masked(value, v[1], s) if mask else value, s)

        self._compute([raw, *mask], *values, [], at, score)
        most, following = (self.most, rows), (self.next, rows)
        self._compute([most], *following, [], at, lambda s, v: v[0])
        self._compute([values], *following, [k2], at, lambda s, v: s.insert(maximum(*v)).results[0])

        def shifted(s: ScalarBuilder, x: SSAValue, largest: SSAValue) -> SSAValue:
            # If all scores so far are -inf, shift by 0: -inf - -inf is NaN, but exp2(-inf) is 0.
            zero, lowest = s.number(0.0, self.wide), s.number(-inf, self.wide)
            nothing = s.op(arith.CmpfOp, largest, lowest, arg="oeq")
            shift = s.select(nothing, zero, largest)
            return power(s.op(arith.SubfOp, x, shift), s)

        factor = (self.factor, rows)
        self._compute([most, following], *factor, [], at, lambda s, v: shifted(s, v[0], v[1]))
        self._compute([following], *most, [], at, lambda s, v: v[0])
        for buffer, loops in ((self.total, rows), (self.result, (*rows, *n))):
            self._compute(
                [factor], buffer, loops, [], at, lambda s, v: s.op(arith.MulfOp, v[1], v[0])
            )
        self._compute(
            [values, most], self.total, rows, [k2], at,
            lambda s, v: s.op(arith.AddfOp, v[2], shifted(s, v[0], v[1])),
        )  # fmt: skip
        if powers[0] is values[0]:
            self._compute([most], *values, [], at, lambda s, v: shifted(s, v[1], v[0]))
        else:
            self._compute(
                [values, most], *powers, [], at,
                lambda s, v: s.cast(shifted(s, v[0], v[1]), self.narrow),
            )  # fmt: skip
        self._contract(powers, value, (self.result, (*rows, *n)), at)

    def _masked(self, score: SSAValue, mask: SSAValue, s: ScalarBuilder) -> SSAValue:
        """Returns score + mask; a false mask bit is -infinity, a true one 0."""
        if isinstance(mask.type, IntegerType):
            zero, lowest = (s.number(x, score.type) for x in (0.0, -inf))
            mask = s.select(s.cast(mask, IntegerType(1)), zero, lowest)
        return s.op(arith.AddfOp, score, s.cast(mask, score.type))

    # --- buffers and ops on them -----------------------------------------------------------------

    def _buffer(self, loops: Loops, element: Attribute, at: IndexBuilder) -> SSAValue:
        """Allocates a workgroup buffer of static size; returns a view of the tile's size."""
        shape: list[int] = []
        for loop in loops:
            size = self.sizes[loop]
            most = NVIDIA.attention_columns if loop == self.k2 else size
            shape.append(most if isinstance(most, int) else self.most_rows)
        buffer = at.insert(memref.AllocOp([], [], MemRefType(element, shape))).results[0]
        sizes = [n if d == self.k2 else self.sizes[d] for d, n in zip(loops, shape, strict=True)]
        if all(isinstance(n, int) for n in sizes):
            return buffer
        rank = len(loops)
        return at.insert(subview(buffer, [0] * rank, sizes, [1] * rank)).results[0]

    def _part(
        self, buffer: SSAValue, loops: Loops, first: Size, columns: int, at: IndexBuilder
    ) -> tuple[SSAValue, Loops]:
        """Returns a view of `columns` keys from `first` on, and its loops."""
        if self.k2 not in loops:
            return buffer, loops
        offsets: list[Size] = [first if d == self.k2 else 0 for d in loops]
        sizes: list[Size] = [columns if d == self.k2 else self.sizes[d] for d in loops]
        kind = buffer.type
        assert isinstance(kind, MemRefType)
        if tuple(sizes) == tuple(kind.get_shape()) and first == 0 and isinstance(first, int):
            return buffer, loops
        view = subview(buffer, offsets, sizes, [1] * len(loops))
        return at.insert(view).results[0], loops

    def _compute(
        self,
        inputs: Sequence[tuple[SSAValue, Loops]],
        output: SSAValue,
        loops: Loops,
        folded: Loops,
        at: IndexBuilder,
        body: Body,
    ) -> None:
        """Emits output = body(inputs, output), reducing over the loops `folded`."""
        order = [*loops, *folded]
        maps = [
            AffineMap(len(order), 0, tuple(AffineDimExpr(order.index(d)) for d in own))
            for own in (*(own for _, own in inputs), loops)
        ]
        operands = [*(value for value, _ in inputs), output]
        block = Block(arg_types=[v.type.element_type for v in operands])  # type: ignore
        s = ScalarBuilder(block)
        s.insert(linalg.YieldOp(body(s, list(block.args))))
        kinds = ["parallel"] * len(loops) + ["reduction"] * len(folded)
        self.last = generic(operands[:-1], operands[-1:], maps, kinds, Region(block))
        at.insert(self.last)

    def _contract(
        self,
        lhs: tuple[SSAValue, Loops],
        rhs: tuple[SSAValue, Loops],
        output: tuple[SSAValue, Loops],
        at: IndexBuilder,
    ) -> None:
        """Emits output += lhs . rhs."""
        summed = sorted({*lhs[1], *rhs[1]} - {*output[1]})
        self._compute(
            [lhs, rhs], *output, summed, at,
            lambda s, v: s.op(
                arith.AddfOp,
                v[2],
                s.op(arith.MulfOp, s.cast(v[0], self.wide), s.cast(v[1], self.wide)),
            ),
        )  # fmt: skip
        self.last.attributes["lowering_config"] = self.config


@dataclass(frozen=True)
class GpuLowerAttentionPass(ModulePass):
    """Lowers attention to a loop over tiles of keys and values."""

    name = "irees-gpu-lower-attention"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [o for o in op.walk() if is_mapped(o, BlockMappingAttr)]:
            found = [o for o in loop.regions[0].block.ops if isinstance(o, ext.AttentionOp)]
            for inner in found:
                self._lower(loop, inner, IndexBuilder(InsertPoint.before(inner)))

    def _lower(self, loop: Operation, op: ext.AttentionOp, at: IndexBuilder) -> None:
        gpu, kinds, blocking = gpu_of(op), matrix_kinds_of(op), AttentionBlocking.on(op)
        if blocking is not None:
            room = gpu.shared_opt_in_bytes
            reason = why_no_warpgroups(op, gpu.warpgroup_kinds, blocking.rows, room)
            reason = reason or why_not_one_tile(op, blocking.rows)
            if reason is None and may_rewrite(self.name, op, "by warpgroups"):
                set_threads(loop, blocking.threads)
                self._bound(loop, room, fewest_workgroups(op, blocking))
                WarpgroupAttention(op, room).lower(at)
                return
            remark("missed", self.name, op, f"not using wgmma: {reason}")
        room = gpu.matrix_shared_bytes
        self._bound(loop, room, NVIDIA.attention_workgroups)
        reason = "the target has no asynchronous copies to shared memory"
        if gpu.asynchronous_copies:
            reason = why_no_warps(op, kinds, room)
        if reason is None and may_rewrite(self.name, op, "in registers"):
            RegisterAttention(op, room).lower(at)
            return
        if reason is not None:
            remark("missed", self.name, op, f"scores are kept in shared memory: {reason}")
        Attention(op, kinds, at).lower()

    def _bound(self, loop: Operation, shared_bytes: int, workgroups: int) -> None:
        """Sets the shared memory of a workgroup, and how many share a multiprocessor."""
        loop.attributes["shared_bytes"] = IntegerAttr(shared_bytes, i64)
        set_fewest_workgroups(loop, workgroups)
