"""
Memory that begins where vectors do, and in large pages where there is much of it.

A kernel that reads megabytes once also waits for the addresses of their pages, which are many when
they are of 4 KiB. Huge pages make such reads faster by a third and more, and a system often gives
them only to memory that asks for them.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

CACHE_LINE = 64
"""Bytes; a vector that straddles two lines is read twice."""
HUGE_PAGE = 2 << 20
"""Bytes of the pages that Linux gives to memory that is advised so."""


def aligned_room(size: int) -> np.ndarray[Any, Any]:
    """`size` bytes of any content that begin with a cache line, or with a huge page."""
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


def aligned_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A dense copy of an array, in memory of the calling thread's."""
    copy = aligned_room(array.nbytes).view(array.dtype).reshape(array.shape)
    np.copyto(copy, array)
    return copy


def placed(arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """
    The same data by the same names, each array dense and at a multiple of a cache line.

    A mapping of pages stays where it is; the others are copied next to each other, so that many
    small ones fill huge pages, too.
    """
    dense = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    moved = {name: array for name, array in dense.items() if not _is_mapped(array)}
    room = aligned_room(sum(_rounded(array.nbytes) for array in moved.values()))
    begin = 0
    for name, array in moved.items():
        copy = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(copy, array)
        dense[name] = copy
        begin += _rounded(array.nbytes)
    return dense


def _rounded(size: int) -> int:
    return -(-size // CACHE_LINE) * CACHE_LINE


def _is_mapped(array: np.ndarray[Any, Any]) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return isinstance(owner, mmap.mmap) and array.ctypes.data % CACHE_LINE == 0
