"""
Winograd transforms, common to linalg and iree_linalg_ext.

F(m, r) computes m outputs of a filter of size r from m + r - 1 inputs, along each of two axes:

    y = A^T ((G g G^T) * (B^T d B)) A

The dialects differ only in the order of dims. The matrices are MLIR's (`WinogradConv2D.cpp`, with
its factors multiplied in) and IREE's (`WinogradConstants.h`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Operation, SSAValue

Matrix = tuple[tuple[float, ...], ...]


def _rows(text: str, factor: int = 1) -> Matrix:
    """Parses a matrix of fractions, rows separated by `;`."""

    def number(word: str) -> float:
        above, _, below = word.partition("/")
        return factor * int(above) / int(below or 1)

    return tuple(tuple(number(w) for w in line.split()) for line in text.strip().split(";"))


# (m, r): B^T, G, A^T
MATRICES: dict[tuple[int, int], dict[str, Matrix]] = {
    (2, 3): {
        "input": _rows("-1 0 1 0; 0 -1 1 0; 0 1 1 0; 0 -1 0 1"),
        "filter": _rows("-1 0 0; 1/2 -1/2 1/2; 1/2 1/2 1/2; 0 0 1"),
        "output": _rows("1 1 1 0; 0 -1 1 1"),
    },
    (4, 3): {
        "input": _rows(
            "1/4 0 -5/16 0 1/16 0; 0 1/4 -1/4 -1/16 1/16 0; 0 -1/4 -1/4 1/16 1/16 0;"
            "0 1/4 -1/8 -1/4 1/8 0; 0 -1/4 -1/8 1/4 1/8 0; 0 1/4 0 -5/16 0 1/16"
        ),
        "filter": _rows("1 0 0; -1/3 1/3 -1/3; -1/3 -1/3 -1/3; 1/12 -1/6 1/3; 1/12 1/6 1/3; 0 0 1"),
        "output": _rows(
            "1/8 1/4 1/4 1/8 1/8 0; 0 -1/4 1/4 -1/4 1/4 0; 0 1/4 1/4 1/2 1/2 0;0 -1/4 1/4 -1 1 1/2",
            factor=32,
        ),
    },
    (2, 5): {
        "input": _rows(
            "1/8 3/16 -1/4 -3/16 1/8 0; 0 1/8 1/16 -5/16 1/8 0; 0 -1/8 -5/16 -1/16 1/8 0;"
            "0 1/4 -1/8 -1/4 1/8 0; 0 -1/8 -1/4 1/8 1/4 0; 0 1/8 3/16 -1/4 -3/16 1/8"
        ),
        "filter": _rows(
            "1 0 0 0 0; 1/6 -1/6 1/6 -1/6 1/6; -1/6 -1/6 -1/6 -1/6 -1/6;"
            "-4/15 2/15 -1/15 1/30 -1/60; 1/60 1/30 1/15 2/15 4/15; 0 0 0 0 1"
        ),
        "output": _rows("1/2 1 1 2 1 0; 0 -1 1 -1 2 1/2", factor=16),
    },
    (6, 3): {
        "input": _rows(
            "1 0 -21/4 0 21/4 0 -1 0; 0 1 1 -17/4 -17/4 1 1 0; 0 -1 1 17/4 -17/4 -1 1 0;"
            "0 1/2 1/4 -5/2 -5/4 2 1 0; 0 -1/2 1/4 5/2 -5/4 -2 1 0; 0 2 4 -5/2 -5 1/2 1 0;"
            "0 -2 4 5/2 -5 -1/2 1 0; 0 -1 0 21/4 0 -21/4 0 1"
        ),
        "filter": _rows(
            "1 0 0; -2/9 -2/9 -2/9; -2/9 2/9 -2/9; 1/90 1/45 2/45; 1/90 -1/45 2/45;"
            "32/45 16/45 8/45; 32/45 -16/45 8/45; 0 0 1"
        ),
        "output": _rows(
            "1 1 1 1 1 1 1 0; 0 1 -1 2 -2 1/2 -1/2 0; 0 1 1 4 4 1/4 1/4 0;"
            "0 1 -1 8 -8 1/8 -1/8 0; 0 1 1 16 16 1/16 1/16 0; 0 1 -1 32 -32 1/32 -1/32 1"
        ),
    },
}


@dataclass(frozen=True)
class Transform:
    """A Winograd transform, independent of the dialect."""

    kind: str
    """`input`, `filter` or `output`."""
    m: int
    r: int
    image: tuple[int, int]
    """The transformed dims of the image or filter."""
    rest: tuple[tuple[int, int], ...]
    """Pairs of an untransformed dim and its dim in the tiles, whose first two dims are the tile."""
    counts: tuple[int, int] | None
    """Dims of the tiles that count tiles along the image; None for a filter, which is one tile."""
    whole: tuple[bool, bool]
    """Per axis, whether it is transformed; otherwise the tile size is 1."""
    accumulates: bool
    """Whether the result is added to the output's old contents."""

    def matrix(self, axis: int) -> Matrix:
        """Returns the matrix that an axis is multiplied by."""
        return MATRICES[self.m, self.r][self.kind] if self.whole[axis] else ((1.0,),)

    def outputs(self, axis: int) -> int:
        """Returns the number of image elements that a tile yields along an axis."""
        return self.m if self.whole[axis] else 1


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, ShapedType)
    return value.type.get_shape()


def _of_linalg(op: Operation, kind: str) -> Transform | None:
    m, r = op.m_and_r  # type: ignore[attr-defined]
    flat, tiles = (op.operands[i] for i in ((1, 0) if kind == "output" else (0, 1)))
    if len(_shape(flat)) != 4 or len(_shape(tiles)) != (4 if kind == "filter" else 6):
        return None
    if kind == "filter":
        rest, counts, sizes = ((3, 2), (0, 3)), None, _shape(flat)[1:3]
    else:
        rest, counts, sizes = ((0, 4), (3, 5)), (2, 3), _shape(tiles)[:2]
    whole = sizes[0] != 1, sizes[1] != 1
    return Transform(kind, m, r, (1, 2), rest, counts, whole, kind == "output")


_SIZES = ("output_tile_size", "kernel_size")


def _of_iree(op: Operation, kind: str, image: Sequence[int]) -> Transform | None:
    size: list[int] = [op.properties[n].value.data for n in _SIZES]  # type: ignore[attr-defined]
    m, r = size
    flat, tiles = (op.operands[i] for i in ((1, 0) if kind == "output" else (0, 1)))
    if len(_shape(flat)) != 4 or len(_shape(tiles)) != (4 if kind == "filter" else 6):
        return None
    layouts = {
        ("filter", (0, 1)): ((2, 2), (3, 3)),
        ("filter", (2, 3)): ((1, 2), (0, 3)),
        ("image", (1, 2)): ((0, 2), (3, 5)),
        ("image", (2, 3)): ((0, 2), (1, 5)),
    }
    what = kind if kind == "filter" else "image"
    rest = layouts.get((what, tuple(image)))  # type: ignore[arg-type]
    if rest is None or (m, r) != (6, 3):
        return None
    counts = None if kind == "filter" else (3, 4)
    return Transform(kind, m, r, (image[0], image[1]), rest, counts, (True, True), False)


def transform_of(op: Operation) -> Transform | None:
    """Returns the transform of a Winograd op, or None for unsupported sizes and layouts."""
    dialect, _, name = op.name.partition(".")
    kind = name.removeprefix("winograd.").removeprefix("winograd_").removesuffix("_transform")
    if dialect == "linalg":
        return _of_linalg(op, kind)
    dims = op.properties["kernel_dimensions" if kind == "filter" else "image_dimensions"]
    return _of_iree(op, kind, dims.get_values())  # type: ignore[attr-defined]
