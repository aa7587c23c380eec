"""
Least-significant-digit radix sort of one row. Part of `irees-lower-linalg-ext-to-loops`.

Numbers are mapped to unsigned integers of the same order. One pass counts all digits; then one pass
per digit moves every element to the position that the prefix sums give. The sort is stable and
linear in the length of the row. A digit that all elements share is skipped. Knuth, TAOCP 3, 5.2.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, MemRefType, i32, i64
from xdsl.ir import SSAValue

from irees.targets.common import COMMON
from irees.transforms.codegen.common.utils.radix_keys import RadixKey, as_key
from irees.transforms.codegen.common.utils.rows import (
    as_type,
    compare,
    load,
    scratch,
    select,
    store,
)
from irees.transforms.utils.loops import for_loop, if_else, if_values
from irees.transforms.utils.shapes import IndexBuilder, Size


@dataclass(frozen=True)
class Numbers:
    """Double-buffered keys and origins, and the count of each digit."""

    keys: SSAValue
    origins: SSAValue
    counts: SSAValue
    digit: int
    digits: int


def numbers_for(key: RadixKey, size: Size, double: Size, at: IndexBuilder) -> Numbers:
    """Allocates scratch memory for rows of that size; `double` is 2 * size."""
    is_long = isinstance(size, int) and size >= COMMON.wide_digit_row
    digit = min(key.width, COMMON.wide_digit if is_long else COMMON.digit)
    digits = -(-key.width // digit)
    index = i32 if isinstance(size, int) and size < 1 << 31 else IndexType()
    return Numbers(
        scratch(IntegerType(key.width), double, at),
        scratch(index, double, at),
        scratch(IndexType(), digits << digit, at),
        digit,
        digits,
    )


def sort_numbers(
    key: RadixKey, numbers: Numbers, size: Size,
    read: Callable[[SSAValue, IndexBuilder], SSAValue], at: IndexBuilder,
) -> SSAValue:  # fmt: skip
    """Sorts read(0), read(1), ...; returns the offset of the sorted half (0 or size)."""
    count_digits(key, numbers, size, read, at)
    # An empty row has no first element to load below.
    passes: Size = numbers.digits
    if not isinstance(size, int):
        passes = select(compare(size, 0, "sgt", at), passes, 0, at)
    close, number, b = for_loop(at, 0, passes, 1, [at.value(0)])
    (start,) = close.arguments
    first = b.mul(number, 1 << numbers.digit)
    shift = b.insert(
        arith.IndexCastOp(b.value(b.mul(number, numbers.digit)), IntegerType(key.width))
    ).results[0]
    # If all elements share the first one's digit, the pass is skipped.
    digit = digit_of(numbers, load(numbers.keys, [start], b), shift, b)
    shared = compare(load(numbers.counts, [b.add(first, digit)], b), size, "eq", b)
    end, _, no = if_values(b, shared, [IndexType()])
    target = no.sub(size, start)
    add_up(numbers, first, target, no)
    move(numbers, first, start, shift, size, no)
    (result,) = end([start], [no.value(target)])
    return close([result])[0]


def digit_of(numbers: Numbers, key: SSAValue, shift: SSAValue, b: IndexBuilder) -> SSAValue:
    """Returns one digit of a key, as an index."""
    mask = IntegerAttr((1 << numbers.digit) - 1, key.type, truncate_bits=True)
    shifted = b.insert(arith.ShRUIOp(key, shift)).results[0]
    masked = b.insert(arith.AndIOp(shifted, b.insert(arith.ConstantOp(mask)).results[0])).results[0]
    # Zero-extend: a digit may fill its type, and its top bit is not a sign.
    wide = masked if masked.type == i64 else b.insert(arith.ExtUIOp(masked, i64)).results[0]
    return b.insert(arith.IndexCastOp(wide, IndexType())).results[0]


def count_digits(
    key: RadixKey, numbers: Numbers, size: Size,
    read: Callable[[SSAValue, IndexBuilder], SSAValue], at: IndexBuilder,
) -> None:  # fmt: skip
    """Writes the keys and origins of a row, and the histogram of every digit."""
    close, i, b = for_loop(at, 0, numbers.digits << numbers.digit, 1)
    store(b.value(0), numbers.counts, [i], b)
    close()
    close, i, b = for_loop(at, 0, size, 1)
    bits = as_key(key, read(i, b), b)
    store(bits, numbers.keys, [i], b)
    origin = numbers.origins.type
    assert isinstance(origin, MemRefType)
    store(as_type(i, origin.element_type, b), numbers.origins, [i], b)
    for number in range(numbers.digits):
        shift = IntegerAttr(number * numbers.digit, bits.type)
        shift = b.insert(arith.ConstantOp(shift)).results[0]
        digit = digit_of(numbers, bits, shift, b)
        place = b.add(digit, number << numbers.digit)
        store(b.value(b.add(load(numbers.counts, [place], b), 1)), numbers.counts, [place], b)
    close()


def add_up(numbers: Numbers, first: Size, target: Size, at: IndexBuilder) -> None:
    """Replaces the counts of one digit with exclusive prefix sums: the start positions."""
    close, i, b = for_loop(at, 0, 1 << numbers.digit, 1, [at.value(target)])
    place = b.add(first, i)
    count = load(numbers.counts, [place], b)
    store(close.arguments[0], numbers.counts, [place], b)
    close([b.value(b.add(close.arguments[0], count))])


def move(
    numbers: Numbers, first: Size, start: Size, shift: SSAValue, size: Size, at: IndexBuilder
) -> None:
    """Moves every element to the next position of its digit, in the other half."""
    double = at.mul(size, 2)
    close, i, b = for_loop(at, 0, size, 1)
    here = b.add(start, i)
    key, origin = load(numbers.keys, [here], b), load(numbers.origins, [here], b)
    slot = b.add(first, digit_of(numbers, key, shift, b))
    place = load(numbers.counts, [slot], b)
    # No proof follows that counted places are in bounds. A branch is predicted: it delays no store.
    close_inside, c = if_else(b, compare(place, double, "ult", b))
    store(key, numbers.keys, [place], c)
    store(origin, numbers.origins, [place], c)
    close_inside()
    store(b.value(b.add(place, 1)), numbers.counts, [slot], b)
    close()
