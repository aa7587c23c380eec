"""
Selects the tiles of a kernel that skips masked columns. Part of `irees-select-strategy`.

A tile of rows computes each column that one of its rows sees, so a high tile computes more hidden
elements, and a low one packs the columns more often.
"""

from __future__ import annotations

from collections.abc import Sequence

from irees.analysis.distribution import Group
from irees.analysis.masked_columns import Masked
from irees.strategies import Config
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.select_strategy.chunks import even
from irees.transforms.codegen.cpu.select_strategy.contraction_tiles import Machine, problem_of


def masked_config(
    group: Group, masked: Masked, contractions: Sequence[int], machine: Machine
) -> Config:
    """
    Returns the config of a group with these contractions. Its entry `columns` is the loop of each
    op of which `irees-skip-masked-columns` skips iterations, and `mask` is 1 where the mask is.
    """
    first = problem_of(group, contractions[0], machine)
    last = max((loop for loop in first.loops if loop in first.rows), default=-1)
    extents = zip(first.loops, group.extents(), strict=True)
    tiles = [_rows(extent) if loop == last else 1 for loop, extent in extents]
    entries: dict[int, dict[str, int | Sequence[int]]] = {
        number: {"columns": loop} for number, loop in masked.loops.items()
    }
    entries[masked.mask]["mask"] = 1
    for number in contractions:
        block = problem_of(group, number, machine).tile_block(CPU.masked_tile_rows)
        entries.setdefault(number, {})["block"] = block
    return Config(tiles, entries=entries)


def _rows(extent: int) -> int:
    """Returns the rows of a tile, 0 for all."""
    most = CPU.masked_tile_rows
    return 0 if 0 <= extent <= most else even(extent, most)
