"""Transposes a square matrix in registers with shuffles of vector pairs."""

from __future__ import annotations

from xdsl.dialects import vector
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import SSAValue

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
