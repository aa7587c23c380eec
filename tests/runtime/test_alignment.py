"""Where memory for vectors begins, and that nothing of its contents is lost."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from irees.runtime.alignment import CACHE_LINE, HUGE_PAGE, aligned_copy, aligned_room, placed


@pytest.mark.parametrize("size", [1, 100, HUGE_PAGE - 1, HUGE_PAGE, HUGE_PAGE + 7])
def test_a_room_begins_with_a_line_or_a_page(size):
    room = aligned_room(size)
    assert room.nbytes == size
    room[:] = 7
    large = size >= HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE")
    assert room.ctypes.data % (HUGE_PAGE if large else CACHE_LINE) == 0


@pytest.mark.parametrize("shape", [(), (1, 3), (3, 5), (1100, 1000)])
def test_a_copy_is_dense_and_equal(shape):
    array = np.random.default_rng(0).standard_normal(shape).T
    copy = aligned_copy(array)
    np.testing.assert_array_equal(copy, array)
    assert copy.flags.c_contiguous
    assert copy.ctypes.data % CACHE_LINE == 0


def test_constants_are_placed_next_to_each_other():
    random = np.random.default_rng(0)
    given = {str(n): random.integers(0, 255, n, np.uint8) for n in (0, 1, 64, 65, 1000)}
    given["turned"] = random.standard_normal((6, 7)).T
    found = placed(given)
    assert list(found) == list(given)
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].ctypes.data % CACHE_LINE == 0
    begins = sorted(array.ctypes.data for array in found.values())
    assert begins[-1] - begins[0] < sum(a.nbytes for a in given.values()) + CACHE_LINE * len(given)


def test_what_is_mapped_stays_where_it_is(tmp_path):
    path = tmp_path / "constants"
    path.write_bytes(bytes(range(128)))
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = np.frombuffer(data, np.uint8)
    assert placed({"x": array})["x"].ctypes.data == array.ctypes.data
    behind = array[1:]
    moved = placed({"x": behind})["x"]
    np.testing.assert_array_equal(moved, behind)
    assert moved.ctypes.data % CACHE_LINE == 0
