"""Which point a thread does, from its number."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from irees.transforms.utils.shapes import IndexBuilder, Size


def delinearize(
    index: SSAValue, loops: Sequence[int], sizes: Sequence[Size], at: IndexBuilder
) -> dict[int, Size]:
    """The loops' values at a point, from its number in the order of the loops."""
    found: dict[int, Size] = {}
    rest: Size = index
    for loop in reversed(loops):
        if sizes[loop] == 1:
            found[loop] = 0
        elif loop == loops[0] or all(sizes[x] == 1 for x in loops[: list(loops).index(loop)]):
            found[loop] = rest
        else:
            found[loop] = at.rem(rest, sizes[loop])
            rest = at.floordiv(rest, sizes[loop])
    return found
