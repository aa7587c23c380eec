"""Whole programs in the cache: what was stored comes back, cheaply."""

from __future__ import annotations

import os
import subprocess
import sys

import ml_dtypes
import numpy as np

from irees.blobs import Blob
from irees.program_cache import Built, find, store
from irees.runtime.alignment import CACHE_LINE, HUGE_PAGE, placed
from irees.runtime.cache import key_of

SOURCE = np.arange(5, dtype=np.float32)


def built() -> Built:
    random = np.random.default_rng(0)
    constants = {
        "odd": random.integers(0, 255, 67, np.uint8),
        "half": random.standard_normal((3, 5)).astype(ml_dtypes.bfloat16),
        "turned": random.standard_normal((6, 7)).T,
        "given": SOURCE,
        "empty": np.zeros((0, 4), np.float32),
        "truth": np.array(True),
        "large": random.standard_normal(HUGE_PAGE // 8 + 1),
    }
    return Built(b"library", {"kernels": []}, {"k": "text"}, constants, {"given": "w"}, {"k": b"i"})


def test_what_is_stored_is_found():
    key, put = key_of("test_what_is_stored_is_found"), built()
    store(key, put)
    found = find(key, {"w": Blob.from_array("w", SOURCE)})
    assert found is not None
    for name in ("library", "manifest", "texts", "from_source", "cubins"):
        assert getattr(found, name) == getattr(put, name)
    assert list(found.constants) == list(put.constants)
    for name, array in put.constants.items():
        assert found.constants[name].dtype == array.dtype
        np.testing.assert_array_equal(found.constants[name], array)


def test_constants_that_were_read_are_used_where_they_lie():
    key = key_of("test_constants_that_were_read_are_used_where_they_lie")
    store(key, built())
    found = find(key, {"w": Blob.from_array("w", SOURCE)})
    assert found is not None
    moved = placed(found.constants)
    for name in found.constants.keys() - found.from_source.keys():
        begin = found.constants[name].ctypes.data
        assert begin % CACHE_LINE == 0
        assert moved[name].ctypes.data == begin


def test_a_program_with_a_failed_pass_is_not_kept():
    key, put = key_of("test_a_program_with_a_failed_pass_is_not_kept"), built()
    put.failed_passes = frozenset({"irees-x"})
    store(key, put)
    assert find(key, {}) is None


def test_a_program_that_is_found_needs_nothing_that_knows_ir(tmp_path):
    code = """
import sys
import numpy as np
import irees
text = "func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {"
text += "%y = arith.addf %x, %x : tensor<3xf32> return %y : tensor<3xf32> }"
print(irees.compile(text)(np.arange(3, dtype=np.float32)), "xdsl" in sys.modules)
"""
    for knows_ir in (True, False):
        answer = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"IREES_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert answer.stdout == f"[0. 2. 4.] {knows_ir}\n"
