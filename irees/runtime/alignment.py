"""
Memory that begins where vectors do, and in large pages where there is much of it.

A kernel that reads megabytes once waits for the addresses of its pages more than for the data when
they are of 4 KiB: reads are up to twice as fast from huge pages, and a system often gives those to
memory only that asks for them.
"""

from __future__ import annotations

import mmap
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


def is_well_placed(array: np.ndarray[Any, Any]) -> bool:
    """Whether a dense array begins with a cache line and, if it is large, is a mapping of pages."""
    if array.ctypes.data % CACHE_LINE:
        return False
    owner: Any = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return array.nbytes < HUGE_PAGE or isinstance(owner, mmap.mmap)
