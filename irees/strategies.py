"""
Strategies of plug-ins: classes that choose the tile sizes of a group of ops.

    class Panels:
        order = 50

        @staticmethod
        def applies(group, target) -> Config | str:
            if target.vector_bytes < 64:
                return "the vectors are too short"
            return Config(tiles=(8, 32))

    PLUGIN = Plugin(name="acme", strategies={"cpu": ("acme.panels:Panels",)})

The ops of a kernel are partitioned into groups (`irees.analysis.distribution.Group`):
`group.members` has their loops, `group.classes` the loops that are tiled together, and
`group.extents()` their trip counts, -1 if dynamic. A candidate returns one tile size per class, 0
for a loop that is not tiled, or the reason why it does not apply, which becomes a remark. The
candidates of a target are tried before those of irees, sorted by `order`, then by name; the first
that applies is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import index
from typing import TYPE_CHECKING, Any

from irees.errors import IreesError, PluginError
from irees.plugins import line_of, offered_lists, resolve
from irees.remarks import remark

if TYPE_CHECKING:
    from irees.analysis.distribution import Group
    from irees.target import Target


LARGEST_TILE = (1 << 31) - 1
"""Largest tile: the product of two tiles fits in 64 bits."""
MOST_THREADS = 1024
"""Most threads of a workgroup that CUDA has."""


@dataclass(frozen=True)
class Config:
    """
    The tile size of each class of a group, and the threads per workgroup on a GPU.

    `entries` maps the number of a member to further entries of its
    `#iree_codegen.lowering_config`.
    """

    tiles: Sequence[int]
    threads: int | None = None
    entries: Mapping[int, Mapping[str, int | Sequence[int]]] = field(default_factory=dict)


def config_of_plugins(group: Group, target: Target, name: str) -> Config | None:
    """
    Returns the config of the first plug-in candidate that applies to a group, or None.

    `name` is the calling pass. Emits a remark for each candidate that does not apply. Raises
    PluginError for a candidate that fails, or returns tiles for another number of classes.
    """
    op = group.members[-1].op
    for home, candidate in candidates(target.accelerator or target.kind.partition("-")[0]):
        try:
            found = candidate.applies(group, target)
        except IreesError:
            raise
        except Exception as error:
            place = line_of(error)
            text = f"{home} failed: {type(error).__name__}: {error} ({place})"
            raise PluginError(text, op=op) from error
        if isinstance(found, str):
            remark("missed", name, op, f"{home.rpartition(':')[2]}: {found}")
            continue
        if not isinstance(found, Config):
            kind = type(found).__name__
            raise PluginError(
                f"{home} returns a {kind}, but must return a Config or why not", op=op
            )
        if not _are_entries(found.entries, len(group.members)):
            text = f"{home} returns the entries {found.entries!r}, but must map numbers of members"
            raise PluginError(f"{text} to names with an int, or several", op=op)
        return _checked(found, len(group.classes), home, op)
    return None


def _are_entries(given: Any, members: int) -> bool:
    """Whether these are entries of the lowering configs of some of the members."""
    if not isinstance(given, Mapping) or not all(number in range(members) for number in given):
        return False
    named = list(given.values())
    if not all(isinstance(each, Mapping) for each in named):
        return False
    return all(
        isinstance(name, str) and _is_entry(value) for each in named for name, value in each.items()
    )


def _is_entry(value: Any) -> bool:
    values = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(v, int) and -(1 << 63) <= v < 1 << 63 for v in values)


def _checked(found: Config, wanted: int, home: str, op: Any) -> Config:
    """Returns a config with ints. Raises PluginError for one that is not valid."""

    def number(value: Any, what: str, most: int) -> int:
        try:
            found = index(value)
        except TypeError:
            found = -1
        if not 0 <= found <= most:
            text = f"{home} returns {what} {value!r}, but must return an int from 0 to {most}"
            raise PluginError(text, op=op)
        return found

    tiles = list(found.tiles) if isinstance(found.tiles, Iterable) else []
    if len(tiles) != wanted:
        text = f"{home} returns the tiles {found.tiles} for {wanted} classes of loops"
        text = f"{text}; return one tile for each of group.classes"
        raise PluginError(text, op=op)
    threads = None if found.threads is None else number(found.threads, "the threads", MOST_THREADS)
    return replace(
        found, tiles=[number(tile, "the tile", LARGEST_TILE) for tile in tiles], threads=threads
    )


@cache
def candidates(target: str) -> tuple[tuple[str, Any], ...]:
    """Returns the candidates of plug-ins for a target, with their names. Raises PluginError."""
    found = [(home, resolve(home)) for home in offered_lists("strategies", target)]
    for home, candidate in found:
        if not callable(getattr(candidate, "applies", None)):
            raise PluginError(f"{home} has no applies(group, target)")
    return tuple(sorted(found, key=lambda each: (getattr(each[1], "order", 0), each[0])))
