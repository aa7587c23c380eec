"""Transposes matrices in registers with shuffles of vector pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import DenseArrayBase, VectorType, i64
from xdsl.ir import SSAValue

from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.shapes import IndexBuilder


def transposed(rows: list[SSAValue], at: IndexBuilder) -> list[SSAValue]:
    """Returns the transpose of N vectors of N lanes; N is a power of two."""
    count, bit = len(rows), 1
    while bit < count:
        swapped = list(rows)
        for r in range(count):
            if r & bit:
                continue
            low = [c + count - bit if c & bit else c for c in range(count)]
            high = [c + count if c & bit else c + bit for c in range(count)]
            for target, mask in ((r, low), (r | bit, high)):
                shuffle = vector.ShuffleOp(
                    rows[r],
                    rows[r | bit],
                    DenseArrayBase.from_list(i64, mask),
                    result_type=rows[r].type,
                )
                swapped[target] = at.insert(shuffle).results[0]
        rows, bit = swapped, bit * 2
    return rows


def parts_of_columns(
    rows: Sequence[Sequence[SSAValue]], lanes: int, at: IndexBuilder
) -> Iterator[tuple[int, int, SSAValue]]:
    """
    Transposes a matrix with several vectors in each row. Yields parts of its columns: the number of
    the column, the first row, and a vector of so many rows.

    The parts of columns whose rows are no power of two overlap, and the tile that is transposed
    repeats rows: columns of 7 rows come from rows 0, 1, 2, 3, 3, 4, 5, 6. Several vectors of short
    columns share a tile.
    """
    vectors = len(rows[0])
    for chunk in range(0, len(rows), lanes):
        count = min(lanes, len(rows) - chunk)
        width = 1 << (count.bit_length() - 1)
        firsts = tuple(dict.fromkeys((0, count - width)))
        places = [first + i for first in firsts for i in range(width)]
        together = max(1, lanes // len(places))
        for v in range(0, vectors, together):
            some = range(v, min(v + together, vectors))
            tile = [rows[chunk + place][each] for each in some for place in places]
            tile += [tile[-1]] * (lanes - len(tile))
            for t, column in enumerate(transposed(tile, at)):
                for lane in range(0, len(some) * len(places), width):
                    each, part = divmod(lane, len(places))
                    number = (v + each) * lanes + t
                    yield number, chunk + firsts[part // width], _lanes(column, lane, width, at)


def _lanes(value: SSAValue, first: int, count: int, at: IndexBuilder) -> SSAValue:
    """Returns some lanes of a vector."""
    assert isinstance(value.type, VectorType)
    if value.type.get_shape() == (count,):
        return value
    mask = DenseArrayBase.from_list(i64, list(range(first, first + count)))
    kind = vector_of(value.type.element_type, count)
    return at.insert(vector.ShuffleOp(value, value, mask, result_type=kind)).results[0]
