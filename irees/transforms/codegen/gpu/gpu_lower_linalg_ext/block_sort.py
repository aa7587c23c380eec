"""
Sorting network for one row, or its first k elements, with all threads of a workgroup. Part of
`irees-gpu-lower-linalg-ext`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType, i32, i64
from xdsl.ir import Attribute, SSAValue

from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.common.utils.rows import as_type, compare, load, scratch, store
from irees.transforms.codegen.gpu.utils.segments import for_each
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.orders import Order
from irees.transforms.utils.shapes import IndexBuilder, Size


@dataclass(frozen=True)
class Keys:
    """The keys of a row and their origins."""

    keys: SSAValue
    origins: SSAValue
    size: Size
    order: Order

    @staticmethod
    def allocate(element: Attribute, size: Size, order: Order, at: IndexBuilder) -> Keys:
        """Allocates a workgroup's buffers for rows of that size."""
        index = i32 if isinstance(size, int) and size < 1 << 31 else i64
        return Keys(scratch(element, size, at), scratch(index, size, at), size, order)

    @property
    def operand(self) -> int:
        """The index of the op's operand that holds the keys."""
        assert self.order.operand is not None
        return self.order.operand

    def put(self, place: SSAValue, key: SSAValue, at: IndexBuilder) -> None:
        """Stores the key of the row element at a place."""
        store(key, self.keys, [place], at)
        kind = self.origins.type.element_type  # type: ignore[attr-defined]
        store(as_type(place, kind, at), self.origins, [place], at)

    def origin(self, place: Size, at: IndexBuilder) -> SSAValue:
        """Returns the original index of the element at a place."""
        return as_type(load(self.origins, [place], at), IndexType(), at)

    def exchange(self, i: Size, j: Size, at: IndexBuilder) -> None:
        """Compare-exchanges two places; `j` may be past the end."""
        close, b = if_else(at, compare(j, self.size, "slt", at))
        keys = [load(self.keys, [x], b) for x in (i, j)]
        origins = [load(self.origins, [x], b) for x in (i, j)]
        lhs, rhs = ([k] * (self.operand + 1) for k in keys)
        stays = self.order.first_stays(lhs, rhs, b)
        goes = self.order.first_stays(rhs, lhs, b)
        one = b.insert(arith.ConstantOp.from_int_and_width(1, 1)).results[0]
        before = b.insert(arith.CmpiOp(origins[1], origins[0], "slt")).results[0]
        unequal = b.insert(arith.XOrIOp(stays, one)).results[0]
        late = b.insert(arith.OrIOp(unequal, before)).results[0]
        end, c = if_else(b, b.insert(arith.AndIOp(goes, late)).results[0])
        for buffer, (first, second) in ((self.keys, keys), (self.origins, origins)):
            store(second, buffer, [i], c)
            store(first, buffer, [j], c)
        end()
        close()


def sort_keys(keys: Keys, at: IndexBuilder) -> None:
    """Sorts all keys with the network."""
    steps = _logarithm(keys.size, at)
    _sort_runs(keys, steps, steps, at)


def _sort_runs(keys: Keys, steps: Size, stages: Size, at: IndexBuilder) -> None:
    """Sorts runs of 2^stages of up to 2^steps keys."""
    pairs = _shifted(1, at.sub(steps, 1), at) if not isinstance(steps, int) else 1 << steps >> 1

    def step(half: SSAValue, b: IndexBuilder, *, flip: bool) -> None:
        mask = b.value(b.sub(half, 1))

        def pair(t: SSAValue, c: IndexBuilder) -> None:
            # Runs of 2 * half places are consecutive, so that masks replace divisions.
            inside = c.insert(arith.AndIOp(t, mask)).results[0]
            i = c.sub(c.mul(t, 2), inside)
            if flip:
                j = c.sub(c.add(i, c.sub(c.mul(half, 2), 1)), c.mul(inside, 2))
            else:
                j = c.add(i, half)
            keys.exchange(i, j, c)

        for_each(b, pairs, pair)

    body, stage, b = for_loop(at, 0, stages, 1)
    half = _shifted(1, stage, b)
    step(half, b, flip=True)
    inner, number, c = for_loop(b, 0, stage, 1)
    shift = c.value(c.add(number, 1))
    step(c.insert(arith.ShRUIOp(half, shift)).results[0], c, flip=False)
    inner()
    body()


def select_keys(keys: Keys, count: Size, at: IndexBuilder) -> None:
    """
    Puts the first `count` of the sorted keys into the first places.

    Sorts runs of `count` keys (rounded up to a power of 2), then merges pairs of runs: the better
    half of two runs is kept and re-sorted with a few steps. Each round halves the keys.
    """
    size = keys.size
    ratio = NVIDIA.selection_ratio
    if not isinstance(size, int) or not isinstance(count, int) or ratio * count > size:
        sort_keys(keys, at)
        return
    stages = max(0, count - 1).bit_length()
    width = 1 << stages
    _sort_runs(keys, _logarithm(size, at), stages, at)
    runs = (-(-size // width) - 1).bit_length()
    body, number, b = for_loop(at, 0, runs, 1)
    apart = b.mul(_shifted(1, number, b), width)
    left = b.insert(arith.ShRUIOp(b.value(1 << runs >> 1), number)).results[0]

    def better(t: SSAValue, c: IndexBuilder) -> None:
        inside = c.rem(t, width)
        first = c.mul(c.floordiv(t, width), c.mul(apart, 2))
        keys.exchange(c.add(first, inside), c.add(first, c.sub(c.add(apart, width - 1), inside)), c)

    for_each(b, b.mul(left, width), better)
    if stages:
        inner, step, c = for_loop(b, 0, stages, 1)
        half = c.insert(arith.ShRUIOp(c.value(width >> 1), step)).results[0]

        def clean(t: SSAValue, d: IndexBuilder) -> None:
            number = d.value(d.rem(t, width >> 1))
            inside = d.insert(arith.AndIOp(number, d.value(d.sub(half, 1)))).results[0]
            first = d.mul(d.floordiv(t, width >> 1), d.mul(apart, 2))
            i = d.add(first, d.sub(d.mul(number, 2), inside))
            keys.exchange(i, d.add(i, half), d)

        for_each(c, c.mul(left, width >> 1), clean)
        inner()
    body()


def _shifted(value: int, by: Size, at: IndexBuilder) -> SSAValue:
    return at.insert(arith.ShLIOp(at.value(value), at.value(by))).results[0]


def _logarithm(size: Size, at: IndexBuilder) -> Size:
    """Returns ceil(log2(size))."""
    if isinstance(size, int):
        return max(0, size - 1).bit_length()
    last = at.value(at.sub(at.maximum(size, 1), 1))
    wide = at.insert(arith.IndexCastOp(last, i64)).results[0]
    zeros = at.insert(math.CountLeadingZerosOp(wide)).results[0]
    count = at.insert(arith.IndexCastOp(zeros, IndexType())).results[0]
    return at.sub(64, count)
