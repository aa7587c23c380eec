"""
Lowers topk with a large K: finds a bound that few more than K elements of a row meet, and orders
those. Part of `irees-lower-linalg-ext-to-loops`.

    lo, hi = least and greatest key            the best element has the least key
    while more than 2 K keys are <= hi, and lo < hi:
      mid = lo + (hi - lo) / 2
      hi = mid if at least K keys are <= mid, else lo = mid + 1
    survivors = elements whose keys are <= hi; of those equal to hi, the first ones
    result[rank of s among the survivors] = s

A row is read by structured ops only, which count keys. Ranks are counted, too, with vectors of
survivors. Keys are those of radix sort. Most rows take a dozen counts; a row whose K-th key is a
frequent one takes as many as a key has bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    i32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import target_of
from irees.targets.cpu import CPU
from irees.transforms.codegen.common.utils.radix_keys import RadixKey, as_key, radix_key
from irees.transforms.codegen.common.utils.rows import (
    as_type,
    below,
    compare,
    load,
    outside,
    place,
    scratch,
    store,
)
from irees.transforms.utils.loops import for_loop, if_else, while_loop
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim
from irees.transforms.utils.structured import generic
from irees.transforms.utils.tensors import select_dims
from irees.transforms.utils.views import subview

LONGEST_I32 = (1 << 31) - 1
"""Longest row whose elements can be counted in i32."""


def threshold_key(op: ext.TopkV2Op, order: Order) -> RadixKey | None:
    """
    Returns the key to select by a bound, or None. A row of random elements inserts about
    k * (1 + log(n / k)) of them, and each moves half of what is kept.
    """
    dim = op.dimension.value.data
    k, size = (x.type.get_shape()[dim] for x in (op.output_values, op.values))
    if target_of(op).gpu is not None or k < CPU.topk_selected:
        return None
    if size != DYNAMIC_INDEX:
        moves = k * k / 2 * (1 + log(max(size, k) / k))
        if moves < CPU.topk_moves * size:
            return None
    return radix_key(order, [op.values])


@dataclass(frozen=True)
class Threshold:
    """The selection of the first k elements of each row by a bound of their keys."""

    op: ext.TopkV2Op
    key: RadixKey
    k: int
    size: Size
    keys: SSAValue
    kept: SSAValue
    """Buffer of the survivors' keys."""
    numbers: SSAValue
    """Buffer of their places in the row."""
    ranks: SSAValue

    @staticmethod
    def of(op: ext.TopkV2Op, key: RadixKey, at: IndexBuilder) -> Threshold:
        """Allocates the buffers of a selection."""
        dim = op.dimension.value.data
        k, size = op.output_values.type.get_shape()[dim], buffer_dim(op.values, dim, outside(op))
        kind = IntegerType(key.width)
        room = CPU.topk_spare * k
        return Threshold(
            op, key, k, size, scratch(kind, size, at), scratch(kind, room, at),
            scratch(IndexType(), room, at), scratch(i32, room, at),
        )  # fmt: skip

    @property
    def counted(self) -> IntegerType:
        """The type of counts of a row's elements."""
        return i32 if isinstance(self.size, int) and self.size <= LONGEST_I32 else i64

    def row(self, ivs: dict[int, Size], at: IndexBuilder) -> None:
        """Emits the selection of one row; nothing is selected of an empty one."""
        close, b = if_else(at, compare(self.size, 0, "sgt", at))
        self._make_keys(ivs, b)
        bound, total = self._bound(b)
        below_bound = self._count(bound, "ult", b)
        room = self._number(CPU.topk_spare * self.k, b)
        many = b.insert(arith.CmpiOp(total, room, "sgt")).results[0]
        wanted = self._number(self.k, b)
        survivors = b.insert(arith.SelectOp(many, wanted, total)).results[0]
        equals = as_type(b.insert(arith.SubiOp(survivors, below_bound)).results[0], IndexType(), b)
        count = self._collect(bound, equals, b)
        self._rank(count, b)
        self._write(ivs, count, b)
        close()

    def _number(self, value: int, b: IndexBuilder) -> SSAValue:
        return b.insert(arith.ConstantOp(IntegerAttr(value, self.counted))).results[0]

    def _make_keys(self, ivs: dict[int, Size], b: IndexBuilder) -> None:
        """keys[i] = key of the element at i"""
        source, dim = self.op.values, self.op.dimension.value.data
        rank = len(source.type.get_shape())
        sizes = [self.size if d == dim else 1 for d in range(rank)]
        view = subview(source, place(ivs, dim, 0), sizes, [1] * rank, [dim])
        values = b.insert(view).results[0]
        block = Block(arg_types=[source.type.element_type, IntegerType(self.key.width)])
        c = IndexBuilder(InsertPoint.at_end(block))
        c.insert(linalg.YieldOp(as_key(self.key, block.args[0], c)))
        one = AffineMap.identity(1)
        b.insert(generic([values], [self.keys], [one, one], ["parallel"], Region(block)))

    def _extreme(self, combine: type[arith.MinUIOp | arith.MaxUIOp], b: IndexBuilder) -> SSAValue:
        first = load(self.keys, [0], b)
        return _reduced(
            self.keys, first, lambda key, so_far, c: c.insert(combine(key, so_far)).results[0], b
        )

    def _count(self, bound: SSAValue, predicate: str, b: IndexBuilder) -> SSAValue:
        """Returns how many keys compare that way with a bound."""
        kind = self.counted

        def add(key: SSAValue, so_far: SSAValue, c: IndexBuilder) -> SSAValue:
            found = c.insert(arith.CmpiOp(key, bound, predicate)).results[0]
            one = c.insert(arith.ExtUIOp(found, kind)).results[0]
            return c.insert(arith.AddiOp(one, so_far)).results[0]

        return _reduced(self.keys, self._number(0, b), add, b)

    def _bound(self, at: IndexBuilder) -> tuple[SSAValue, SSAValue]:
        """Returns a bound that at least k keys meet, if there are as many, and how many do."""
        low, high = self._extreme(arith.MinUIOp, at), self._extreme(arith.MaxUIOp, at)
        total = as_type(at.value(self.size), self.counted, at)
        room, wanted = (self._number(n, at) for n in (CPU.topk_spare * self.k, self.k))
        one = at.insert(arith.ConstantOp(IntegerAttr(1, low.type))).results[0]

        def goes_on(values: list[SSAValue], b: IndexBuilder) -> SSAValue:
            many = b.insert(arith.CmpiOp(values[2], room, "sgt")).results[0]
            open_ = b.insert(arith.CmpiOp(values[0], values[1], "ult")).results[0]
            return b.insert(arith.AndIOp(many, open_)).results[0]

        close, (low, high, total), b = while_loop(at, [low, high, total], goes_on)
        width = b.insert(arith.SubiOp(high, low)).results[0]
        half = b.insert(arith.ShRUIOp(width, one)).results[0]
        middle = b.insert(arith.AddiOp(low, half)).results[0]
        found = self._count(middle, "ule", b)
        enough = b.insert(arith.CmpiOp(found, wanted, "sge")).results[0]
        above = b.insert(arith.AddiOp(middle, one)).results[0]
        pairs = ((low, above), (middle, high), (found, total))
        _, high, total = close([b.insert(arith.SelectOp(enough, *p)).results[0] for p in pairs])
        return high, total

    def _collect(self, bound: SSAValue, equals: SSAValue, at: IndexBuilder) -> SSAValue:
        """
        Appends the keys below a bound, and the first ones of those equal to it, in the order of the
        row; returns how many.
        """
        taken = at.insert(memref.AllocaOp.get(IndexType(), shape=[2])).results[0]
        for number in range(2):
            store(at.value(0), taken, [number], at)
        begin: Size = 0
        groups = CPU.topk_groups
        for level, count in enumerate(groups):
            whole = at.mul(at.floordiv(at.sub(self.size, begin), count), count)
            close, start, b = for_loop(at, 0, whole, count)
            self._collect_group(b.add(begin, start), groups[level:], (bound, equals, taken), b)
            close()
            begin = at.add(begin, whole)
        self._append(begin, self.size, (bound, equals, taken), at)
        return load(taken, [0], at)

    def _collect_group(
        self, begin: Size, counts: tuple[int, ...], taking: tuple[SSAValue, SSAValue, SSAValue],
        b: IndexBuilder,
    ) -> None:  # fmt: skip
        """Looks for survivors in a group; if there are any, in its subgroups."""
        count, *parts = counts
        keys = b.insert(subview(self.keys, [begin], [count], [1])).results[0]
        zero = b.insert(arith.ConstantOp(IntegerAttr(0, i32))).results[0]

        def meets(key: SSAValue, so_far: SSAValue, c: IndexBuilder) -> SSAValue:
            found = c.insert(arith.CmpiOp(key, taking[0], "ule")).results[0]
            number = c.insert(arith.ExtUIOp(found, i32)).results[0]
            return c.insert(arith.OrIOp(number, so_far)).results[0]

        found = _reduced(keys, zero, meets, b)
        close_if, c = if_else(b, b.insert(arith.CmpiOp(found, zero, "ne")).results[0])
        if parts:
            close, start, d = for_loop(c, 0, count, parts[0])
            self._collect_group(d.add(begin, start), tuple(parts), taking, d)
            close()
        else:
            self._append(begin, c.add(begin, count), taking, c)
        close_if()

    def _append(
        self, begin: Size, end: Size, taking: tuple[SSAValue, SSAValue, SSAValue], at: IndexBuilder
    ) -> None:
        bound, equals, taken = taking
        close, i, b = for_loop(at, begin, end, 1)
        key = load(self.keys, [i], b)
        close_if, c = if_else(b, b.insert(arith.CmpiOp(key, bound, "ule")).results[0])
        # `taken` has the number of survivors, and of those equal to the bound.
        number, ties = (load(taken, [n], c) for n in range(2))
        is_equal = c.insert(arith.CmpiOp(key, bound, "eq")).results[0]
        full = c.insert(arith.AndIOp(is_equal, compare(ties, equals, "sge", c))).results[0]
        open_ = compare(number, CPU.topk_spare * self.k, "slt", c)
        one = c.insert(arith.ConstantOp.from_int_and_width(1, 1)).results[0]
        free = c.insert(arith.XOrIOp(full, one)).results[0]
        end_if, d = if_else(c, c.insert(arith.AndIOp(free, open_)).results[0])
        store(key, self.kept, [number], d)
        store(i, self.numbers, [number], d)
        store(d.value(d.add(number, 1)), taken, [0], d)
        tie = d.insert(
            arith.IndexCastOp(d.insert(arith.ExtUIOp(is_equal, i64)).results[0], IndexType())
        )
        store(d.insert(arith.AddiOp(ties, tie.results[0])).results[0], taken, [1], d)
        end_if()
        close_if()
        close()

    def _rank(self, count: SSAValue, b: IndexBuilder) -> None:
        """ranks[i] = number of survivors that precede survivor i"""
        keys, ranks = (
            b.insert(subview(x, [0], [count], [1])).results[0] for x in (self.kept, self.ranks)
        )
        zero = Block(arg_types=[i32])
        c = IndexBuilder(InsertPoint.at_end(zero))
        c.insert(linalg.YieldOp(c.insert(arith.ConstantOp(IntegerAttr(0, i32))).results[0]))
        b.insert(generic([], [ranks], [AffineMap.identity(1)], ["parallel"], Region(zero)))
        block = Block(arg_types=[keys.type.element_type] * 2 + [i32])
        mine, other, so_far = block.args
        c = IndexBuilder(InsertPoint.at_end(block))
        i, j = (
            c.insert(arith.IndexCastOp(c.insert(linalg.IndexOp(d)).results[0], i32)).results[0]
            for d in range(2)
        )
        first = c.insert(arith.CmpiOp(other, mine, "ult")).results[0]
        equal = c.insert(arith.CmpiOp(other, mine, "eq")).results[0]
        tie = c.insert(arith.AndIOp(equal, c.insert(arith.CmpiOp(j, i, "slt")).results[0])).results[
            0
        ]
        precedes = c.insert(arith.OrIOp(first, tie)).results[0]
        number = c.insert(arith.ExtUIOp(precedes, i32)).results[0]
        c.insert(linalg.YieldOp(c.insert(arith.AddiOp(number, so_far)).results[0]))
        rows, columns = select_dims(2, [0]), select_dims(2, [1])
        kinds = ["parallel", "reduction"]
        b.insert(generic([keys, keys], [ranks], [rows, columns, rows], kinds, Region(block)))

    def _write(self, ivs: dict[int, Size], count: SSAValue, at: IndexBuilder) -> None:
        """Writes the first k survivors, and their indices, at their ranks."""
        op, wanted, dim = self.op, self.op.output_indices, self.op.dimension.value.data
        close, i, b = for_loop(at, 0, count, 1)
        rank = as_type(load(self.ranks, [i], b), IndexType(), b)
        end, c = if_else(b, compare(rank, self.k, "ult", b))
        number = below(load(self.numbers, [i], c), self.size, c)
        store(
            load(op.values, place(ivs, dim, number), c), op.output_values, place(ivs, dim, rank), c
        )
        if wanted is not None:
            if op.indices is not None:
                value = load(op.indices, place(ivs, dim, number), c)
            else:
                value = as_type(number, wanted.type.element_type, c)
            store(value, wanted, place(ivs, dim, rank), c)
        end()
        close()


def _reduced(
    source: SSAValue, start: SSAValue,
    combine: Callable[[SSAValue, SSAValue, IndexBuilder], SSAValue], at: IndexBuilder,
) -> SSAValue:  # fmt: skip
    """Returns the reduction of a buffer of one dim."""
    assert isinstance(source.type, MemRefType)
    kind: Attribute = start.type
    result = at.insert(memref.AllocaOp.get(kind, shape=[])).results[0]
    store(start, result, [], at)
    block = Block(arg_types=[source.type.element_type, kind])
    b = IndexBuilder(InsertPoint.at_end(block))
    b.insert(linalg.YieldOp(combine(block.args[0], block.args[1], b)))
    maps = [AffineMap.identity(1), AffineMap(1, 0, ())]
    at.insert(generic([source], [result], maps, ["reduction"], Region(block)))
    return load(result, [], at)
