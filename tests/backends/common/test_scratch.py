"""Places of scratch memory, and sizes in bytes, as the C of a host computes them."""

from __future__ import annotations

from ctypes import CDLL, c_int64

import pytest

from irees.backends.common.program_text import host_support
from irees.backends.common.toolchain import compile_library

TOO_MUCH, NEGATIVE = 1 << 60, 1 << 61
TEXT = f"""{host_support()}
__attribute__((visibility("default"))) int64_t bytes_of(int64_t a, int64_t b) {{ return irees_bytes(a, b); }}
__attribute__((visibility("default"))) int64_t after(int64_t place, int64_t bytes) {{ return irees_after(place, bytes, 64); }}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> CDLL:
    path = tmp_path_factory.mktemp("scratch") / "scratch.so"
    path.write_bytes(compile_library({"scratch.c": TEXT}))
    made = CDLL(str(path))
    for function in (made.bytes_of, made.after):
        function.argtypes, function.restype = [c_int64, c_int64], c_int64
    return made


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (4, 1000, 4000),
        (0, 1000, 0),
        (4, -1, NEGATIVE),
        (0, -1, NEGATIVE),
        (-1, -1, NEGATIVE),
        (NEGATIVE, 0, NEGATIVE),
        (NEGATIVE, 4, NEGATIVE),
        (TOO_MUCH, 0, 0),
        (TOO_MUCH, 4, TOO_MUCH),
        (1 << 32, 1 << 32, TOO_MUCH),
        (1 << 59, 1, 1 << 59),
    ],
)
def test_sizes_saturate(library, a, b, expected):
    assert library.bytes_of(a, b) == expected


def test_places_saturate(library):
    """Sixteen buffers of 2^60 bytes are not none: 64-bit sums would be 0."""
    assert library.after(0, 1) == 64
    assert library.after(64, 64) == 128
    place = 0
    for _ in range(16):
        place = library.after(place, TOO_MUCH)
    assert place == TOO_MUCH
