"""
Memory aligned for vectors, and in huge pages if it is large.

A kernel that streams megabytes also pays for TLB misses, which are frequent with 4 KiB pages. Huge
pages avoid most of them, and many systems use huge pages only after madvise.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

CACHE_LINE = 64
"""Bytes of a cache line; a vector that crosses a line needs two accesses."""
HUGE_PAGE = 2 << 20
"""Bytes of a huge page, which Linux uses for memory with MADV_HUGEPAGE."""


def aligned_room(size: int) -> np.ndarray[Any, Any]:
    """`size` uninitialized bytes, aligned to a cache line, or to a huge page if large."""
    if size < HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        room = np.empty(size + CACHE_LINE, np.uint8)
        begin = -room.ctypes.data % CACHE_LINE
        return room[begin : begin + size]
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    pages = mmap.mmap(-1, size + HUGE_PAGE, private)
    with suppress(OSError):  # a kernel without huge pages
        pages.madvise(mmap.MADV_HUGEPAGE)
    room = np.frombuffer(pages, np.uint8)
    begin = -room.ctypes.data % HUGE_PAGE
    return room[begin : begin + size]


def aligned_rooms(sizes: Sequence[int]) -> list[np.ndarray[Any, Any]]:
    """Rooms of these sizes in one allocation, so that many small ones use huge pages, too."""
    room, begin = aligned_room(sum(map(_rounded, sizes))), 0
    rooms: list[np.ndarray[Any, Any]] = []
    for size in sizes:
        rooms.append(room[begin : begin + size])
        begin += _rounded(size)
    return rooms


def aligned_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A contiguous aligned copy of an array, first touched by the calling thread."""
    copy = aligned_room(array.nbytes).view(array.dtype).reshape(array.shape)
    np.copyto(copy, array)
    return copy


def placed(arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """
    The same arrays by name, each contiguous and aligned to a cache line.

    Memory-mapped arrays stay in place. The others are copied into one allocation.
    """
    dense = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    moved = {name: array for name, array in dense.items() if not _is_mapped(array)}
    rooms = aligned_rooms([array.nbytes for array in moved.values()])
    for (name, array), room in zip(moved.items(), rooms, strict=True):
        dense[name] = room.view(array.dtype).reshape(array.shape)
        np.copyto(dense[name], array)
    return dense


def _rounded(size: int) -> int:
    return -(-size // CACHE_LINE) * CACHE_LINE


def _is_mapped(array: np.ndarray[Any, Any]) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return isinstance(owner, mmap.mmap) and array.ctypes.data % CACHE_LINE == 0
