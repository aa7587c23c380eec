"""
Reduces columns: several vectors of them in panels of rows, few with several accumulators. Part of
`irees-vectorize-structured-ops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from irees.dialects.storage import loaded
from irees.targets.cpu import CPU
from irees.transforms.utils.combiners import combined, further_accumulators
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size

if TYPE_CHECKING:
    from irees.transforms.codegen.cpu.vectorize_structured_ops.nest import Nest


def takes_panels(nest: Nest) -> bool:
    """
    Whether a reduction visits its rows in panels: it is vectorized along a parallel loop of several
    vectors, has enough rows, and adjacent results read different elements, if not of a table.
    """
    assert nest.axis is not None
    columns, rows = nest.sizes[nest.axis], nest.sizes[nest.reduction[-1]]
    if isinstance(columns, int) and columns < CPU.panel_columns * nest.lanes:
        return False
    if isinstance(rows, int) and rows < CPU.panel_rows * CPU.least_panels:
        return False
    both = {nest.axis, nest.reduction[-1]}
    if any(loaded(o) for o in nest.block.ops):
        return True
    return any(both <= nest.maps[i].used_dims() for i in range(nest.inputs))


def reduce_panels(nest: Nest, ivs: dict[int, Size], at: IndexBuilder) -> None:
    """Emits the reduction loops of a nest, the innermost in panels, with the columns inside."""
    _outer(nest, nest.reduction[:-1], ivs, at)


def _outer(nest: Nest, loops: list[int], ivs: dict[int, Size], at: IndexBuilder) -> None:
    if loops:
        body, iv, inner = for_loop(at, 0, nest.sizes[loops[0]], 1)
        _outer(nest, loops[1:], {**ivs, loops[0]: iv}, inner)
        body()
        return
    size = nest.sizes[nest.reduction[-1]]
    main = at.mul(at.floordiv(size, CPU.panel_rows), CPU.panel_rows)
    _panels(nest, (0, main, CPU.panel_rows), ivs, at)
    if not isinstance(size, int) or not isinstance(main, int):
        _panels(nest, (main, size, 1), ivs, at)
        return
    # The rows that are left are one panel.
    if size > main:
        _panel(nest, size - main, {**ivs, nest.reduction[-1]: main}, at)


def _panels(
    nest: Nest, rows: tuple[Size, Size, int], ivs: dict[int, Size], at: IndexBuilder
) -> None:
    """Emits the panels of `step` rows from `start` to `stop`."""
    start, stop, step = rows
    if start == stop:
        return
    body, iv, inner = for_loop(at, start, stop, step)
    _panel(nest, step, {**ivs, nest.reduction[-1]: iv}, inner)
    body()


def _panel(nest: Nest, rows: int, ivs: dict[int, Size], at: IndexBuilder) -> None:
    with nest.scope():
        nest.hoist_rows(rows, ivs, at)
        nest.columns(ivs, at)


def takes_turns(nest: Nest) -> bool:
    """Whether rows are added to several accumulators in turn: one waits for its combiner."""
    rows = nest.sizes[nest.reduction[-1]]
    few = isinstance(rows, int) and rows < CPU.accumulators * CPU.least_panels
    return nest.reassociate and nest.jam is None and not few and nest.combiners() is not None


def reduce_in_turns(
    nest: Nest, accs: Sequence[SSAValue], ivs: dict[int, Size], at: IndexBuilder, lanes: int
) -> list[SSAValue]:
    """Emits the innermost reduction loop with several accumulators of each result."""
    found = nest.combiners()
    assert found is not None
    loop, many, width = nest.reduction[-1], CPU.accumulators, len(accs)
    size = nest.sizes[loop]
    main = at.mul(at.floordiv(size, many), many)
    if isinstance(main, int) and main == 0:
        return nest.reduce_rows(accs, (0, size), ivs, at, lanes)
    others = further_accumulators(found, accs, lanes, at)
    body, iv, inner = for_loop(at, 0, main, many, [*accs, *others * (many - 1)])
    added: list[SSAValue] = []
    for turn in range(many):
        mine = body.arguments[turn * width : (turn + 1) * width]
        added += nest.add_row(mine, {**ivs, loop: inner.add(iv, turn)}, inner, lanes)
    carried = body(added)
    totals = [combined(c, carried[i::width], at) for i, c in enumerate(found)]
    return nest.reduce_rows(totals, (main, size), ivs, at, lanes)
