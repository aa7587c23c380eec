"""
Jams and unrolls the taps of a window that slides along jammed rows, as in a depthwise convolution.
Part of `irees-vectorize-structured-ops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from irees.analysis.affine_steps import linear_form
from irees.analysis.window_blocking import choose_block, in_order_of_reads
from irees.targets.cpu import CPU
from irees.transforms.utils.shapes import IndexBuilder, Size

if TYPE_CHECKING:
    from irees.transforms.codegen.cpu.vectorize_structured_ops.nest import Nest


def choose_sliding(nest: Nest, parallel: Sequence[int]) -> None:
    """
    Chooses a reduction that slides along the jammed loop, and how many rows are jammed.

    out[h, w] += in[h + y, w] * filter[y]: 7 rows h and 7 taps y read 13 rows, not 49.

    An outer loop whose iterations read the same window is jammed, too.

    out[f, h, w] += in[h + y, w] * filter[f, y]: 2 features f of 7 rows read 9 rows, not 18.
    """
    jam = nest.jam
    if jam is None:
        return
    taps, size = _choose_taps(nest, jam), nest.sizes[jam]
    read = [m.used_dims() for m in nest.maps[: nest.inputs] if nest.axis in m.used_dims()]
    if not read or not all(jam in loops for loops in read):
        return
    loop, features = _features(nest, [x for x in parallel if x not in set[int]().union(*read)])
    if taps > 1 or features > 1:
        rows = size if isinstance(size, int) else None
        nest.points, nest.widths = choose_block(rows, features, taps, nest.registers, nest.points)
        nest.beside = loop if nest.widths > 1 else None


def _features(nest: Nest, loops: Sequence[int]) -> tuple[int | None, int]:
    """Returns the innermost of some loops that is static, with its trip count."""
    static = [(x, n) for x in loops if isinstance(n := nest.sizes[x], int)]
    return static[-1] if static else (None, 1)


def _choose_taps(nest: Nest, jam: int) -> int:
    """
    Chooses the reduction loop to unroll as the innermost one; returns its trip count, 1 if there is
    none. That changes the order of the reduction, so its combiner must be known.
    """
    if not nest.reassociate or nest.combiners() is None:
        return 1
    for loop in nest.reduction:
        taps = nest.sizes[loop]
        if not isinstance(taps, int) or not 1 < taps * nest.points <= CPU.unrolled_window:
            continue
        if _window(nest, jam, loop) is not None:
            nest.reduction = [*(x for x in nest.reduction if x != loop), loop]
            nest.sliding = loop
            return taps
    return 1


def _window(nest: Nest, jam: int, loop: int) -> AffineExpr | None:
    """Returns an index of an input that both loops move, or None."""
    read = [e for m in nest.maps[: nest.inputs] for e in m.results]
    return next((e for e in read if {jam, loop} <= e.used_dims()), None)


def slide(
    nest: Nest, accs: Sequence[SSAValue], ivs: dict[int, Size], at: IndexBuilder, lanes: int
) -> list[SSAValue]:
    """Emits all taps of all jammed rows, in the order of the elements that they read."""
    loop, jam, width, found = nest.sliding, nest.jam, len(nest.op.outputs), list(accs)
    assert loop is not None
    assert jam is not None
    taps, window = nest.sizes[loop], _window(nest, jam, loop)
    assert isinstance(taps, int)
    assert window is not None
    form = linear_form(window)
    steps = (0, 1) if form is None else (form[0][jam], form[0][loop])
    for row, tap in in_order_of_reads(nest.points, taps, steps):
        for number in range(row, nest.points * nest.widths, nest.points):
            mine = slice(number * width, (number + 1) * width)
            place = nest.shifted({**ivs, loop: tap}, number, at)
            found[mine] = nest.add_point(found[mine], place, at, lanes)
    return found
